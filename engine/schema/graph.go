package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"perigee/engine/exactjson"
)

// node is what one schema says about the shape of a value, as far as it holds
// for certain: what stands under oneOf, anyOf, not or if is not seen.
type node struct {
	path       string // JSON pointer into the document
	foreign    bool   // of another dialect
	refuses    bool   // the schema false
	object     bool   // the type may be object
	array      bool   // the type may be array
	names      []string
	properties map[string]*node
	required   []string
	additional *node // nil unless it is a schema or true
	closed     bool  // additionalProperties is false
	patterns   []jsonschema.Regexp
	undecided  bool // there are keywords that may list more properties
	prefix     []*node
	items      *node
	fallback   exactjson.Value // the default, absent if there is none
	also       []*node         // $ref and allOf: hold for the same value
	all        []*node         // this one and what is reached by also
}

// graph is the nodes of a schema; refs may make it cyclic.
type graph struct {
	root     *node
	nodes    []*node // in the order in which they are reached
	defaults bool    // there is at least one default
}

// newGraph reads the structure (with its references) from the compiled schema
// and what must keep its order and its tokens from the document.
func newGraph(doc exactjson.Value, compiled *jsonschema.Schema) *graph {
	b := builder{doc: doc, done: map[*jsonschema.Schema]*node{}, graph: &graph{}}
	b.graph.root = b.node(compiled)
	for _, n := range b.graph.nodes {
		n.all = reach(nil, n)
	}
	return b.graph
}

type builder struct {
	doc   exactjson.Value
	done  map[*jsonschema.Schema]*node
	graph *graph
}

func (b *builder) node(s *jsonschema.Schema) *node {
	if n, ok := b.done[s]; ok {
		return n
	}
	n := &node{path: location(s.Location), object: true, array: true, foreign: s.DraftVersion != 2020}
	b.done[s] = n
	b.graph.nodes = append(b.graph.nodes, n)
	if s.Bool != nil {
		n.refuses = !*s.Bool
		return n
	}
	doc := resolve(b.doc, n.path)
	if s.Types != nil {
		types := s.Types.ToStrings()
		n.object, n.array = slices.Contains(types, "object"), slices.Contains(types, "array")
	}
	if n.fallback = doc.Get("default"); !n.fallback.Absent() {
		b.graph.defaults = true
	}
	b.properties(n, s, doc)
	b.elements(n, s)
	if s.Ref != nil {
		n.also = append(n.also, b.node(s.Ref))
	}
	for _, part := range s.AllOf {
		n.also = append(n.also, b.node(part))
	}
	return n
}

func (b *builder) properties(n *node, s *jsonschema.Schema, doc exactjson.Value) {
	n.required = s.Required
	if s.Properties != nil {
		n.properties = make(map[string]*node, len(s.Properties))
	}
	for name := range doc.Get("properties").Members() {
		if part := s.Properties[name]; part != nil {
			n.names = append(n.names, name)
			n.properties[name] = b.node(part)
		}
	}
	for pattern := range s.PatternProperties {
		n.patterns = append(n.patterns, pattern)
	}
	switch additional := s.AdditionalProperties.(type) {
	case bool:
		n.closed = !additional
		if additional {
			n.additional = &node{object: true, array: true}
			n.additional.all = []*node{n.additional}
		}
	case *jsonschema.Schema:
		n.additional = b.node(additional)
		if n.closed = n.additional.refuses; n.closed {
			n.additional = nil
		}
	}
	n.undecided = len(s.AnyOf) > 0 || len(s.OneOf) > 0 || s.If != nil || len(s.DependentSchemas) > 0 ||
		s.DynamicRef != nil || s.UnevaluatedProperties != nil
}

func (b *builder) elements(n *node, s *jsonschema.Schema) {
	for _, part := range s.PrefixItems {
		n.prefix = append(n.prefix, b.node(part))
	}
	if s.Items2020 != nil {
		n.items = b.node(s.Items2020)
	}
}

// resolve is the value at a JSON pointer.
func resolve(v exactjson.Value, pointer string) exactjson.Value {
	if pointer == "" {
		return v
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if v.Kind() == exactjson.KindObject {
			v = v.Get(token)
			continue
		}
		index, err := strconv.Atoi(token)
		if err != nil {
			return ""
		}
		v = element(v, index)
	}
	return v
}

func element(v exactjson.Value, index int) exactjson.Value {
	for e := range v.Elements() {
		if index == 0 {
			return e
		}
		index--
	}
	return ""
}

// foreign finds parts that were written for another dialect.
func (g *graph) foreign() []Problem {
	for _, n := range g.nodes {
		if n.foreign {
			return []Problem{{Path: n.path, Message: "expected JSON Schema 2020-12, this part names another dialect", Hint: "leave $schema out"}}
		}
	}
	return nil
}

// reach adds to set the nodes that hold for a value if n does, n first.
func reach(set []*node, n *node) []*node {
	if slices.Contains(set, n) {
		return set
	}
	set = append(set, n)
	for _, other := range n.also {
		set = reach(set, other)
	}
	return set
}

// union is the set of all that hold if each of parts does.
func union(parts []*node) []*node {
	if len(parts) == 1 {
		return parts[0].all
	}
	var set []*node
	for _, part := range parts {
		set = reach(set, part)
	}
	return set
}

// property is the set of nodes that hold for the member called name of a value
// for which set holds.
func property(set []*node, name string) []*node {
	var parts []*node
	for _, n := range set {
		if part := n.properties[name]; part != nil {
			parts = append(parts, part)
		}
	}
	return union(parts)
}

// item is the set of nodes that hold for the element at index.
func item(set []*node, index int) []*node {
	var parts []*node
	for _, n := range set {
		switch {
		case index < len(n.prefix):
			parts = append(parts, n.prefix[index])
		case n.items != nil:
			parts = append(parts, n.items)
		}
	}
	return union(parts)
}
