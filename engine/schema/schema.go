package schema

import (
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"perigee/engine/exactjson"
)

// Schema is one compiled JSON Schema. The nil *Schema takes every value. It is
// safe for concurrent use.
type Schema struct {
	doc      exactjson.Value
	once     sync.Once
	compiled *jsonschema.Schema
	graph    *graph
	problems []Problem
}

// Problem is one fault of a schema document.
type Problem struct {
	Path    string // JSON pointer into the document
	Message string // what was expected and what came
	Hint    string // what to do; may be ""
}

// Violation is one way in which a value does not fit.
type Violation struct {
	Path    string // JSON pointer into the value
	Message string // what was expected and what came
}

// Compile checks doc and builds the schema; without problems it is usable. An
// absent doc gives the nil schema.
func Compile(doc exactjson.Value) (*Schema, []Problem) {
	s := Load(doc)
	if s == nil {
		return nil, nil
	}
	s.build()
	if len(s.problems) > 0 {
		return nil, s.problems
	}
	if problems := s.graph.endlessDefaults(); len(problems) > 0 {
		return nil, problems
	}
	return s, nil
}

// Load is Compile for a doc that was checked before: the work is put off until
// the schema is used.
func Load(doc exactjson.Value) *Schema {
	if doc.Absent() {
		return nil
	}
	return &Schema{doc: doc}
}

// Doc is the document that s was made from, absent for the nil schema.
func (s *Schema) Doc() exactjson.Value {
	if s == nil {
		return ""
	}
	return s.doc
}

func (s *Schema) build() {
	s.once.Do(func() {
		if s.compiled, s.problems = compile(s.doc); len(s.problems) == 0 {
			s.graph = newGraph(s.doc, s.compiled)
			s.problems = s.graph.foreign()
		}
	})
}

// takesAll reports whether every value fits and stays as it is.
func (s *Schema) takesAll() bool {
	return s == nil || s.doc == exactjson.True || s.doc == exactjson.EmptyObject
}

// Apply fills the defaults into v and validates what comes out. Defaults are
// added at the end of their object in the order in which the schema lists them;
// all other tokens of v and their order stay. The violations are all there are,
// ordered by path and message. A value that does not fit is given back with its
// defaults too.
func (s *Schema) Apply(v exactjson.Value) (exactjson.Value, []Violation) {
	if s.takesAll() {
		return v, nil
	}
	s.build()
	if len(s.problems) > 0 {
		return v, []Violation{{Message: "the schema itself is not valid: " + s.problems[0].Message}}
	}
	v, err := s.graph.fill(v)
	if err != nil {
		return v, []Violation{*err}
	}
	return v, violations(s.compiled.Validate(decode(v.OrNull())))
}
