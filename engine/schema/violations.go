package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"perigee/engine/exactjson"
	"perigee/engine/words"
)

// violations flattens what the validator found, ordered by path and message.
func violations(err error) []Violation {
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []Violation{{Message: words.Shorten(err.Error(), 200)}}
	}
	found := flatten(nil, invalid)
	slices.SortFunc(found, func(a, b Violation) int {
		return cmp.Or(comparePaths(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(found)
}

// comparePaths orders JSON pointers token by token, indexes by number.
func comparePaths(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "/"), strings.Split(b, "/"), func(a, b string) int {
		m, errA := strconv.Atoi(a)
		n, errB := strconv.Atoi(b)
		if errA == nil && errB == nil && m != n {
			return cmp.Compare(m, n)
		}
		return cmp.Compare(a, b)
	})
}

func flatten(dst []Violation, e *jsonschema.ValidationError) []Violation {
	path := ""
	for _, token := range e.InstanceLocation {
		path = exactjson.JoinPointer(path, token)
	}
	add := func(format string, args ...any) {
		dst = append(dst, Violation{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range e.Causes {
			dst = flatten(dst, cause)
		}
	case *kind.Required:
		for _, name := range k.Missing {
			add("expected the property %s, which is missing", brief(name))
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			add("expected the property %s, which is missing, beside %s", brief(name), brief(k.Prop))
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			dst = append(dst, Violation{Path: exactjson.JoinPointer(path, words.Shorten(name, 100)), Message: "expected only listed properties, got " + brief(name)})
		}
	case *kind.PropertyNames:
		add("the name of the property %s is not allowed: %s", brief(k.Property), causes(path, e))
	case *kind.AnyOf:
		add("expected one of the alternatives of anyOf; %s", causes(path, e))
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			add("expected exactly one of the alternatives of oneOf, those at %d and %d both match", k.Subschemas[0], k.Subschemas[1])
		} else {
			add("expected one of the alternatives of oneOf; %s", causes(path, e))
		}
	default:
		add("%s", describe(e.ErrorKind))
	}
	return dst
}

// causes joins what is wrong with each alternative for the value at path.
func causes(path string, e *jsonschema.ValidationError) string {
	const most = 5
	var found []Violation
	for _, cause := range e.Causes {
		found = append(found, violations(cause)...)
	}
	var parts []string
	for i, v := range found {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(found)-most))
			break
		}
		if v.Path == path || v.Path == "" { // names of properties have no path
			parts = append(parts, v.Message)
		} else {
			parts = append(parts, "at "+v.Path+": "+v.Message)
		}
	}
	return words.Shorten(strings.Join(parts, "; "), 1000)
}

// describe says what was expected and what came, for the faults without parts.
func describe(fault jsonschema.ErrorKind) string {
	switch k := fault.(type) {
	case *kind.Type:
		return fmt.Sprintf("expected %s, got %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Const:
		return fmt.Sprintf("expected %s, got %s", brief(k.Want), brief(k.Got))
	case *kind.Enum:
		return fmt.Sprintf("expected one of %s, got %s", briefAll(k.Want), brief(k.Got))
	case *kind.Pattern:
		return fmt.Sprintf("expected text that matches %s, got %s", brief(k.Want), brief(k.Got))
	case *kind.FalseSchema:
		return "expected nothing here, the schema refuses every value"
	case *kind.Not:
		return "expected a value that does not match the schema under not"
	case *kind.RefCycle:
		return "the schema refers to itself without end"
	case *kind.Minimum:
		return fmt.Sprintf("expected at least %s, got %s", decimal(k.Want), decimal(k.Got))
	case *kind.Maximum:
		return fmt.Sprintf("expected at most %s, got %s", decimal(k.Want), decimal(k.Got))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("expected more than %s, got %s", decimal(k.Want), decimal(k.Got))
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("expected less than %s, got %s", decimal(k.Want), decimal(k.Got))
	case *kind.MultipleOf:
		return fmt.Sprintf("expected a multiple of %s, got %s", decimal(k.Want), decimal(k.Got))
	}
	return describeSize(fault)
}

func describeSize(fault jsonschema.ErrorKind) string {
	switch k := fault.(type) {
	case *kind.MinLength:
		return fmt.Sprintf("expected at least %s, got %d", count(k.Want, "character"), k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("expected at most %s, got %d", count(k.Want, "character"), k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("expected at least %s, got %d", count(k.Want, "element"), k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("expected at most %s, got %d", count(k.Want, "element"), k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("expected different elements, those at %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "expected an element that matches the schema under contains, there is none"
	case *kind.MinContains:
		return fmt.Sprintf("expected at least %s that match the schema under contains, got %d", count(k.Want, "element"), len(k.Got))
	case *kind.MaxContains:
		return fmt.Sprintf("expected at most %s that match the schema under contains, got %d", count(k.Want, "element"), len(k.Got))
	case *kind.MinProperties:
		return fmt.Sprintf("expected at least %s, got %d", count(k.Want, "property"), k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("expected at most %s, got %d", count(k.Want, "property"), k.Got)
	case *kind.Format:
		if k.Want == "regex" { // asserted for the patterns of a schema only
			return fmt.Sprintf("expected a regular expression in RE2 syntax (no look-around, no back-references), got %s", brief(k.Got))
		}
		return fmt.Sprintf("expected the format %s, got %s", k.Want, brief(k.Got))
	}
	return "the value does not match the schema at " + strings.Join(fault.KeywordPath(), "/")
}

func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// maxBrief is how much of one value a message repeats, in bytes.
const maxBrief = 60

// brief shows a value, or what it is if it has parts.
func brief(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return string(exactjson.FromString(words.Shorten(v, maxBrief)))
	case json.Number:
		return words.Shorten(v.String(), maxBrief)
	case []any:
		return fmt.Sprintf("an array of %s", count(len(v), "element"))
	case map[string]any:
		return fmt.Sprintf("an object of %s", count(len(v), "property"))
	}
	return fmt.Sprint(v)
}

func briefAll(values []any) string {
	const most = 10
	var parts []string
	for i, v := range values {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d more", len(values)-most))
			break
		}
		parts = append(parts, brief(v))
	}
	return strings.Join(parts, ", ")
}

// decimal is a number in full; JSON's numbers all end.
func decimal(r *big.Rat) string {
	places, exact := r.FloatPrec()
	if !exact {
		return words.Shorten(r.RatString(), maxBrief)
	}
	return words.Shorten(r.FloatString(places), maxBrief)
}
