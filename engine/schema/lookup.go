package schema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Listing says what a schema tells about a field.
type Listing int

// The answers of Lookup.
const (
	Open     Listing = iota // anything may be there, or the schema does not say
	Unlisted                // such a field is not in the schema
	Optional                // it is in the schema and may be absent
	Required                // it is always there: required, or filled by a default
)

var listingNames = [...]string{"open", "unlisted", "optional", "required"}

// String is the answer as a word.
func (l Listing) String() string { return listingNames[l] }

// Each is the step of a path that stands for every element of an array.
const Each = "[]"

// Lookup follows a selection such as items, [], sku through properties, items,
// local $ref and allOf, and tells about its last step, given that what is
// before it is there. The empty path is Required.
func (s *Schema) Lookup(path []string) Listing {
	if s.takesAll() {
		return Open
	}
	s.build()
	if len(s.problems) > 0 {
		return Open
	}
	set, answer := s.graph.root.all, Required
	for _, name := range path {
		if name == Each {
			set, answer = lookupItem(set)
		} else {
			set, answer = lookupProperty(set, name)
		}
		if answer == Unlisted || len(set) == 0 {
			return answer
		}
	}
	return answer
}

func lookupItem(set []*node) ([]*node, Listing) {
	object, array := true, true
	for _, n := range set {
		if n.refuses {
			return nil, Unlisted
		}
		object, array = object && n.object, array && n.array
		if len(n.prefix) > 0 {
			return nil, Open // the elements differ
		}
	}
	if !array {
		if object {
			return nil, Open // a computed key of an object
		}
		return nil, Unlisted
	}
	if parts := item(set, 0); len(parts) > 0 {
		return parts, Required
	}
	return nil, Open
}

func lookupProperty(set []*node, name string) ([]*node, Listing) {
	listing, open := false, false
	var additional []*node
	for _, n := range set {
		if n.refuses || !n.object {
			return nil, Unlisted
		}
		if n.properties[name] != nil {
			continue
		}
		matches := slices.ContainsFunc(n.patterns, func(p jsonschema.Regexp) bool { return p.MatchString(name) })
		switch {
		case matches || n.undecided:
			open = true
		case n.closed:
			return nil, Unlisted
		case n.additional != nil:
			open = true
			additional = append(additional, n.additional)
		case len(n.properties) > 0:
			listing = true
		}
	}
	if parts := property(set, name); len(parts) > 0 {
		return parts, presence(set, parts, name)
	}
	if open || !listing {
		return union(additional), Open
	}
	return nil, Unlisted
}

// presence tells whether a listed property is always there.
func presence(set, parts []*node, name string) Listing {
	answer := Optional
	for _, n := range parts {
		if n.refuses {
			return Unlisted
		}
		if !n.fallback.Absent() {
			answer = Required
		}
	}
	for _, n := range set {
		if slices.Contains(n.required, name) {
			answer = Required
		}
	}
	return answer
}
