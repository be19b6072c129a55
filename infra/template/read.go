package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Template is template.yaml as plain values: map[string]any, []any, string,
// int64, float64, bool, nil. Intrinsic functions are in their long form, {"Ref": …}.
type Template struct{ root map[string]any }

// Read reads a template. CloudFormation knows no anchors, aliases and merges of
// YAML, though every other reader does: they are an error.
func Read(source []byte) (*Template, error) {
	file, err := parser.ParseBytes(source, 0)
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	if len(file.Docs) != 1 {
		return nil, fmt.Errorf("read template: expected one YAML document, got %d", len(file.Docs))
	}
	value, err := plain(file.Docs[0].Body)
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	root, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("read template: expected a mapping, got %T", value)
	}
	return &Template{root}, nil
}

func plain(node ast.Node) (any, error) {
	switch n := node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		at := node.GetToken().Position
		return nil, fmt.Errorf("line %d: CloudFormation takes no %s of YAML", at.Line, strings.ToLower(node.Type().String()))
	case *ast.MappingNode:
		return mapping(n.Values)
	case *ast.MappingValueNode:
		return mapping([]*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		list := make([]any, len(n.Values))
		for i, element := range n.Values {
			value, err := plain(element)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	case *ast.TagNode:
		value, err := plain(n.Value)
		return map[string]any{longForm(n.Start.Value): value}, err
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.NullNode:
		return nil, nil
	case ast.ScalarNode:
		return n.GetValue(), nil
	}
	return nil, fmt.Errorf("line %d: this YAML is not known to the rules (%s)", node.GetToken().Position.Line, node.Type())
}

func mapping(values []*ast.MappingValueNode) (any, error) {
	m := make(map[string]any, len(values))
	for _, v := range values {
		key, err := plain(v.Key)
		if err != nil {
			return nil, err
		}
		if m[fmt.Sprint(key)], err = plain(v.Value); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// longForm gives the name of a function's long form: !Ref is Ref, !Sub is Fn::Sub.
func longForm(tag string) string {
	name := strings.TrimPrefix(tag, "!")
	if name == "Ref" || name == "Condition" {
		return name
	}
	return "Fn::" + name
}

// resource is one entry of Resources.
type resource struct {
	name, kind string
	all        map[string]any
}

// resources lists those of a kind, or with "" all, by name.
func (t *Template) resources(kind string) (list []resource) {
	all, _ := t.root["Resources"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if r := (resource{name, text(all[name], "Type"), object(all[name])}); kind == "" || r.kind == kind {
			list = append(list, r)
		}
	}
	return list
}

// get finds what a resource's properties hold at a path.
func (r resource) get(path ...string) any {
	return at(r.all["Properties"], path...)
}

func (r resource) fault(format string, args ...any) string {
	return r.name + ": " + fmt.Sprintf(format, args...)
}

// at follows a path of keys through mappings; nil where there is none.
func at(value any, path ...string) any {
	for _, key := range path {
		value = object(value)[key]
	}
	return value
}

func object(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}

func list(value any) []any {
	l, _ := value.([]any)
	return l
}

func text(value any, path ...string) string {
	s, _ := at(value, path...).(string)
	return s
}

// number is a number at a path; 0 where there is none.
func number(value any, path ...string) float64 {
	switch n := at(value, path...).(type) {
	case uint64:
		return float64(n)
	case int64:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

// walk visits a value and all that it holds, with the keys that lead there.
// Elements of lists have the key of their list.
func walk(value any, path []string, visit func(path []string, value any)) {
	visit(path, value)
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walk(v[key], append(slices.Clip(path), key), visit)
		}
	case []any:
		for _, element := range v {
			walk(element, path, visit)
		}
	}
}

// choices are the values that a value may take: the branches of Fn::If.
func choices(value any) []any {
	branches := list(at(value, "Fn::If"))
	if len(branches) != 3 {
		return []any{value}
	}
	return slices.Concat(choices(branches[1]), choices(branches[2]))
}

// references are the names that a value refers to, by Ref, Fn::GetAtt or Fn::Sub.
func references(value any) (names []string) {
	walk(value, nil, func(path []string, v any) {
		s, ok := v.(string)
		if !ok || len(path) == 0 {
			return
		}
		switch path[len(path)-1] {
		case "Ref", "Fn::GetAtt":
			name, _, _ := strings.Cut(s, ".")
			names = append(names, name)
		case "Fn::Sub":
			for _, part := range strings.Split(s, "${")[1:] {
				inner, _, _ := strings.Cut(part, "}")
				name, _, _ := strings.Cut(inner, ".")
				names = append(names, name)
			}
		}
	})
	return names
}
