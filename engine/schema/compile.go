package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"perigee/engine/exactjson"
	"perigee/engine/words"
)

// base is where the document stands for the compiler. It leads nowhere.
const base = "perigee:///schema"

// dialect is the one that is taken, with or without $schema.
const dialect = "https://json-schema.org/draft/2020-12/schema"

var errLoading = errors.New("a schema may only refer to itself")

// noLoader refuses every document but the one that is being compiled (and the
// meta-schemas, which the compiler carries).
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errLoading }

func compile(doc exactjson.Value) (*jsonschema.Schema, []Problem) {
	if kind := doc.Kind(); kind != exactjson.KindObject && kind != exactjson.KindBool {
		return nil, []Problem{{Message: fmt.Sprintf("expected a JSON Schema (an object or a boolean), got %s", kind)}}
	}
	if given := doc.Get("$schema"); !given.Absent() {
		if name, _ := given.Text(); strings.TrimSuffix(name, "#") != dialect {
			return nil, []Problem{{
				Path:    "/$schema",
				Message: "expected JSON Schema 2020-12, got " + brief(decode(given)),
				Hint:    "write " + dialect + " or leave $schema out",
			}}
		}
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(base, decode(doc)); err != nil {
		return nil, []Problem{compileProblem(err)}
	}
	compiled, err := compiler.Compile(base)
	if err == nil {
		return compiled, nil
	}
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		var problems []Problem
		for _, v := range violations(invalid.Err) {
			problems = append(problems, Problem{Path: v.Path, Message: v.Message, Hint: "see JSON Schema 2020-12"})
		}
		return nil, problems
	}
	return nil, []Problem{compileProblem(err)}
}

// compileProblem puts a fault that the compiler found into our words.
func compileProblem(err error) Problem {
	var (
		load    *jsonschema.LoadURLError
		scheme  *jsonschema.UnsupportedURLSchemeError
		pointer *jsonschema.JSONPointerNotFoundError
		anchor  *jsonschema.AnchorNotFoundError
		id      *jsonschema.DuplicateIDError
		twice   *jsonschema.DuplicateAnchorError
	)
	const local = `use a reference into this document, such as "#/$defs/address"`
	switch {
	case errors.As(err, &load):
		return Problem{Message: "a reference leads to " + brief(load.URL) + ", and nothing outside the document is loaded", Hint: local}
	case errors.As(err, &scheme):
		return Problem{Message: "a reference leads outside the document, and nothing is loaded", Hint: local}
	case errors.As(err, &pointer):
		return Problem{Message: "expected something at the reference " + brief(fragment(pointer.URL)) + ", and nothing is there", Hint: local}
	case errors.As(err, &anchor):
		return Problem{Message: "expected an $anchor for the reference " + brief(fragment(anchor.Reference)) + ", and there is none", Hint: local}
	case errors.As(err, &id):
		return Problem{Path: id.Ptr2, Message: "the $id " + brief(id.ID) + " stands at " + id.Ptr1 + " already"}
	case errors.As(err, &twice):
		return Problem{Path: twice.Ptr2, Message: "the anchor " + brief(twice.Anchor) + " stands at " + twice.Ptr1 + " already"}
	}
	return Problem{Message: "the schema cannot be compiled: " + words.Shorten(strings.ReplaceAll(err.Error(), base, ""), 200)}
}

// location is the JSON pointer in the compiler's name for a part of the schema.
func location(name string) string {
	_, pointer, _ := strings.Cut(name, "#")
	if decoded, err := url.PathUnescape(pointer); err == nil {
		return decoded
	}
	return pointer
}

func fragment(name string) string {
	if pointer := location(name); pointer != "" {
		return "#" + pointer
	}
	return strings.TrimPrefix(name, base)
}

// decode is v as the validator wants it; numbers stay text.
func decode(v exactjson.Value) any {
	switch v.Kind() {
	case exactjson.KindBool:
		return v == exactjson.True
	case exactjson.KindNumber:
		return json.Number(v)
	case exactjson.KindString:
		text, _ := v.Text()
		return text
	case exactjson.KindArray:
		elements := []any{}
		for element := range v.Elements() {
			elements = append(elements, decode(element))
		}
		return elements
	case exactjson.KindObject:
		members := map[string]any{}
		for key, value := range v.Members() {
			members[key] = decode(value)
		}
		return members
	}
	return nil
}
