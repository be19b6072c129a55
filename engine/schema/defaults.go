package schema

import (
	"fmt"

	"perigee/engine/exactjson"
)

// How far the defaults within one default may go: a schema that refers to
// itself can ask for more without end.
const (
	maxDefaultDepth = 64
	maxDefaults     = 1000
)

// fill adds what v lacks and the schema has a default for.
func (g *graph) fill(v exactjson.Value) (exactjson.Value, *Violation) {
	if !g.defaults {
		return v, nil
	}
	f := filler{}
	filled := f.value(g.root.all, v)
	if f.endless != nil {
		return v, &Violation{Message: f.message()}
	}
	return filled, nil
}

// endlessDefaults finds the defaults that would never be done, by filling an
// empty object wherever there may be one.
func (g *graph) endlessDefaults() []Problem {
	if !g.defaults {
		return nil
	}
	var problems []Problem
	seen := map[*node]bool{}
	for _, n := range g.nodes {
		f := filler{}
		f.object(n.all, exactjson.EmptyObject)
		if f.endless != nil && !seen[f.endless] {
			seen[f.endless] = true
			problems = append(problems, Problem{
				Path:    exactjson.JoinPointer(f.endless.path, "default"),
				Message: f.message(),
				Hint:    "take the default out of the part that the schema refers back to",
			})
		}
	}
	return problems
}

// filler is one walk through a value.
type filler struct {
	depth   int   // of defaults within defaults
	added   int   // in the outermost default
	endless *node // with the default at which the walk gave up
}

func (f *filler) message() string {
	return fmt.Sprintf("this default fills itself again: more than %d levels or %d values come out of one", maxDefaultDepth, maxDefaults)
}

// value fills v, for which all of set hold.
func (f *filler) value(set []*node, v exactjson.Value) exactjson.Value {
	if len(set) == 0 || f.endless != nil {
		return v
	}
	switch v.Kind() {
	case exactjson.KindObject:
		return f.object(set, v)
	case exactjson.KindArray:
		return f.array(set, v)
	}
	return v
}

func (f *filler) object(set []*node, v exactjson.Value) exactjson.Value {
	present := map[string]bool{}
	dst := append(make([]byte, 0, len(v)), '{')
	changed := false
	for token, member := range v.Tokens() {
		key, _ := token.Text()
		present[key] = true
		filled := f.value(property(set, key), member)
		changed = changed || len(filled) != len(member) // filling only adds
		dst = appendMember(dst, token, filled)
	}
	for _, n := range set {
		for _, name := range n.names {
			if present[name] {
				continue
			}
			parts := property(set, name)
			if filled := f.fallback(parts); !filled.Absent() {
				present[name] = true
				changed = true
				dst = appendMember(dst, exactjson.FromString(name), filled)
			}
		}
	}
	if !changed {
		return v
	}
	return exactjson.Value(append(dst, '}'))
}

func appendMember(dst []byte, token, value exactjson.Value) []byte {
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	dst = append(append(dst, token...), ':')
	return append(dst, value...)
}

func (f *filler) array(set []*node, v exactjson.Value) exactjson.Value {
	dst := append(make([]byte, 0, len(v)), '[')
	changed := false
	index := 0
	for element := range v.Elements() {
		if index > 0 {
			dst = append(dst, ',')
		}
		filled := f.value(item(set, index), element)
		changed = changed || len(filled) != len(element)
		dst = append(dst, filled...)
		index++
	}
	if !changed {
		return v
	}
	return exactjson.Value(append(dst, ']'))
}

// fallback is the first default of set, filled itself; absent without one.
func (f *filler) fallback(set []*node) exactjson.Value {
	for _, n := range set {
		if n.fallback.Absent() {
			continue
		}
		if f.depth == 0 {
			f.added = 0
		}
		f.depth++
		f.added++
		if f.depth > maxDefaultDepth || f.added > maxDefaults {
			if f.endless == nil {
				f.endless = n
			}
			f.depth--
			return n.fallback
		}
		filled := f.value(set, n.fallback)
		f.depth--
		return filled
	}
	return ""
}
