package expr

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"perigee/engine/exactjson"
	"perigee/engine/words"
)

// explain says in our words why an evaluation failed. cel-go names the node and
// says "no such key"; which member of what was missing is found out by walking
// the selection at that node once more.
func (e *expression) explain(err error, act *activation, limit uint64) string {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return fmt.Sprintf("the evaluation costs more than %d units; it walks lists that are too long for an expression, do this work in a task", limit)
	}
	message := err.Error()
	var failed *types.Err
	if errors.As(err, &failed) && isSelectionFault(message) {
		for _, s := range selectionsOf(findNode(e.checked.NativeRep().Expr(), failed.NodeID())) {
			if said := explainSelection(s, act, message); said != "" {
				return words.Shorten(said, 500)
			}
		}
	}
	return words.Shorten(translate(message), 500)
}

// translate puts some other messages of cel-go into words for an author.
func translate(message string) string {
	if message == "no such overload" {
		return "expected true or false as an operand of &&, ||, ! or as the condition of ? :"
	}
	if call, ok := strings.CutPrefix(message, "no such overload: "); ok {
		name, given, _ := strings.Cut(call, "(")
		name, _, _ = strings.Cut(name, " ")
		if given = strings.TrimSuffix(given, ")"); given == "" {
			given = "what it was given"
		}
		return name + "() does not take " + given
	}
	if given, ok := strings.CutPrefix(message, "got '"); ok && strings.HasSuffix(given, "', expected iterable type") {
		given, _, _ = strings.Cut(given, "'")
		switch _, kind, _ := strings.Cut(given, "."); kind {
		case "token":
			given = "a number or string"
		default:
			given = strings.ToLower(kind)
		}
		return "a macro such as map or filter walks a list or a map, got " + given
	}
	return message
}

func isSelectionFault(message string) bool {
	return strings.HasPrefix(message, "no such key") || strings.HasPrefix(message, "index out of bounds") ||
		strings.HasPrefix(message, "unable to convert index")
}

func findNode(root ast.Expr, id int64) ast.Expr {
	var found ast.Expr
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if e.ID() == id && found == nil {
			found = e
		}
	}))
	return found
}

// selectionsOf are the selections that a node may have failed at: itself, or
// those of the arms of a condition.
func selectionsOf(node ast.Expr) []selection {
	if node == nil {
		return nil
	}
	if node.Kind() == ast.CallKind && node.AsCall().FunctionName() == operators.Conditional {
		arms := node.AsCall().Args()
		return append(selectionsOf(arms[1]), selectionsOf(arms[2])...)
	}
	s := selectionOf(node)
	if len(s.segments) == 0 {
		return nil
	}
	if s.root.Kind() == ast.CallKind && s.root.AsCall().FunctionName() == operators.Conditional {
		return append(selectionsOf(s.root), s)
	}
	return []selection{s}
}

// explainSelection follows s as far as it goes; "" if it finds no fault.
func explainSelection(s selection, act *activation, fault string) string {
	name := "(…)"
	var value any
	if s.root.Kind() == ast.IdentKind {
		name = strings.TrimPrefix(s.root.AsIdent(), ".")
		value, _ = act.ResolveName(name)
	}
	if value == nil {
		return explainUnknown(name, s, fault)
	}
	path := name
	for i, segment := range s.segments {
		if s.keys[i] != nil {
			rest := selection{segments: s.segments[i:], keys: s.keys[i:]}
			if rest.keys[0].Kind() != ast.LiteralKind {
				return explainUnknown(path, rest, fault)
			}
			next, found := element(value, rest.keys[0].AsLiteral())
			if !found {
				return explainUnknown(path, rest, fault)
			}
			value = next
		} else {
			next, found := member(value, segment.Name)
			if !found {
				if segment.Optional {
					return ""
				}
				return explainMember(path, segment.Name, value, act)
			}
			value = next
		}
		path += s.selector(i, "")
	}
	return ""
}

func member(value any, name string) (next any, found bool) {
	if finder, ok := value.(interface{ FindStringKey(string) (any, bool) }); ok {
		return finder.FindStringKey(name)
	}
	return nil, false
}

func element(value any, index ref.Val) (next any, found bool) {
	list, ok := value.(traits.Lister)
	if !ok {
		return nil, false
	}
	next = list.Get(index)
	return next, !types.IsError(next.(ref.Val))
}

// explainMember is for a member that value does not have.
func explainMember(path, name string, value any, act *activation) string {
	safe := path + field(name, "?")
	if value == types.NullValue {
		because := ""
		if id, ok := stepOutput(path); ok && act.vars.Step != nil {
			because = " because the step " + id + " has no output (yet)"
			if act.vars.Step(id).Skipped {
				because = " because the step " + id + " was skipped"
			}
		}
		return fmt.Sprintf("%s is null%s: it has no %s; write %s, and .orValue(…) behind it, where that can be", path, because, brief(name), safe)
	}
	v, ok := value.(ref.Val)
	if ok && isMap(v) {
		hint := didYouMean(name, keysOf(v))
		if hint != "" {
			hint += " "
		}
		return fmt.Sprintf("%s has no field %s; %swrite %s, and .orValue(…) behind it, if it may be missing", path, brief(name), hint, safe)
	}
	return fmt.Sprintf("%s is of type %s and has no field %s", path, typeName(v), brief(name))
}

// explainUnknown is for a selection whose values are gone: that of a macro's
// variable, or behind a computed key.
func explainUnknown(path string, s selection, fault string) string {
	whole := path
	for i := range s.segments {
		whole += s.selector(i, "")
	}
	if index, ok := strings.CutPrefix(fault, "index out of bounds: "); ok {
		return fmt.Sprintf("%s: there is no element at %s; write [?%s] if it may be missing", whole, index, index)
	}
	missing, ok := strings.CutPrefix(fault, "no such key: ")
	if !ok {
		return whole + ": " + fault
	}
	for i, segment := range s.segments {
		if segment.Name == missing && s.keys[i] == nil {
			return fmt.Sprintf("%s has no field %s, or is null; write %s%s, and .orValue(…) behind it, where that can be", path, brief(missing), path, s.selector(i, "?"))
		}
		path += s.selector(i, "")
	}
	return fmt.Sprintf("%s: there is no %s, or it is behind null; write [?…] where that can be", whole, string(exactjson.FromString(words.Shorten(missing, 60))))
}

// selector is how segment i is written: .name, ["any name"], [0] or […].
func (s selection) selector(i int, optional string) string {
	switch {
	case s.keys[i] == nil:
		return field(s.segments[i].Name, optional)
	case s.keys[i].Kind() == ast.LiteralKind:
		return fmt.Sprintf("[%s%v]", optional, s.keys[i].AsLiteral().Value())
	}
	return "[" + optional + "…]"
}

func field(name, optional string) string {
	for i := 0; i < len(name); i++ {
		if !isWordByte(name[i]) {
			return "[" + optional + string(exactjson.FromString(words.Shorten(name, 60))) + "]"
		}
	}
	return "." + optional + name
}

// stepOutput is the id of the step if path is its output.
func stepOutput(path string) (id string, ok bool) {
	id, ok = strings.CutPrefix(path, "steps.")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(id, ".output")
}

func isMap(v ref.Val) bool {
	_, ok := v.(traits.Mapper)
	return ok
}

// keysOf are some of the keys of a map.
func keysOf(v ref.Val) []string {
	const most = 200
	var keys []string
	for it := v.(traits.Iterable).Iterator(); it.HasNext() == types.True && len(keys) < most; {
		if key, ok := it.Next().(types.String); ok {
			keys = append(keys, string(key))
		}
	}
	return keys
}
