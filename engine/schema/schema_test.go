package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/exactjson"
)

func mustCompile(t *testing.T, doc string) *Schema {
	t.Helper()
	parsed, err := exactjson.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	s, problems := Compile(parsed)
	if len(problems) > 0 {
		t.Fatalf("%s: %v", doc, problems)
	}
	return s
}

func value(t *testing.T, text string) exactjson.Value {
	t.Helper()
	v, err := exactjson.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestApply_NilSchemaTakesEverything(t *testing.T) {
	s, problems := Compile("")
	got, violations := s.Apply(`{"a":1}`)
	if s != nil || problems != nil || got != `{"a":1}` || violations != nil {
		t.Errorf("got %v, %v, %s, %v", s, problems, got, violations)
	}
	if Load("") != nil {
		t.Error("an absent document gave a schema")
	}
}

func TestApply_AbsentValueIsNull(t *testing.T) {
	if _, got := mustCompile(t, `{"type":"null"}`).Apply(""); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestApply_DefaultsFillWhatIsAbsent(t *testing.T) {
	for _, test := range []struct{ name, schema, value, want string }{
		{"optional", `{"properties":{"a":{"default":1.50}}}`, `{}`, `{"a":1.50}`},
		{"required", `{"required":["a"],"properties":{"a":{"default":"x"}}}`, `{}`, `{"a":"x"}`},
		{"null is there", `{"properties":{"a":{"default":1}}}`, `{"a":null}`, `{"a":null}`},
		{"in the schema's order, at the end", `{"properties":{"z":{"default":1},"b":{},"a":{"default":2}}}`, `{"b":0}`, `{"b":0,"z":1,"a":2}`},
		{"tokens stay", `{"properties":{"z":{"default":18446744073709551615},"o":{"properties":{"y":{"default":"\u0041"}}}}}`,
			`{"\u006b":1.0e2,"o":{"x":"\/"},"n":12345678901234567890.5}`, `{"\u006b":1.0e2,"o":{"x":"\/","y":"\u0041"},"n":12345678901234567890.5,"z":18446744073709551615}`},
		{"escaped key is there", `{"properties":{"key":{"default":1}}}`, `{"\u006bey":2}`, `{"\u006bey":2}`},
		{"in items", `{"items":{"properties":{"a":{"default":1}}}}`, `[{},{"a":2},3]`, `[{"a":1},{"a":2},3]`},
		{"in prefixItems", `{"prefixItems":[{"properties":{"a":{"default":1}}}],"items":{"properties":{"b":{"default":2}}}}`, `[{},{}]`, `[{"a":1},{"b":2}]`},
		{"by $ref", `{"properties":{"x":{"$ref":"#/$defs/p~1q"}},"$defs":{"p/q":{"default":{"n":1},"properties":{"m":{"default":2}}}}}`, `{}`, `{"x":{"n":1,"m":2}}`},
		{"by $anchor", `{"$ref":"#here","$defs":{"d":{"$anchor":"here","properties":{"a":{"default":1}}}}}`, `{}`, `{"a":1}`},
		{"by allOf", `{"allOf":[{"properties":{"a":{"default":1}}},{"properties":{"a":{"default":2},"b":{"default":3}}}]}`, `{}`, `{"a":1,"b":3}`},
		{"default is filled in turn", `{"properties":{"o":{"default":{},"properties":{"p":{"default":{},"properties":{"q":{"default":7}}}}}}}`, `{}`, `{"o":{"p":{"q":7}}}`},
		{"recursive schema", `{"properties":{"n":{"default":0},"next":{"$ref":"#"}}}`, `{"next":{"next":{}}}`, `{"next":{"next":{"n":0},"n":0},"n":0}`},
		{"default of the whole is not used", `{"default":{"a":1}}`, `null`, `null`},
		{"not by oneOf", `{"oneOf":[{"properties":{"a":{"default":1}}}]}`, `{}`, `{}`},
		{"not by anyOf", `{"anyOf":[{"properties":{"a":{"default":1}}}]}`, `{}`, `{}`},
		{"not by if", `{"if":true,"then":{"properties":{"a":{"default":1}}}}`, `{}`, `{}`},
		{"not in additionalProperties", `{"additionalProperties":{"properties":{"a":{"default":1}}}}`, `{"x":{}}`, `{"x":{}}`},
		{"wrong type is left alone", `{"properties":{"a":{"properties":{"b":{"default":1}}}}}`, `{"a":7}`, `{"a":7}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, violations := mustCompile(t, test.schema).Apply(value(t, test.value))
			if violations != nil {
				t.Error(violations)
			}
			if diff := cmp.Diff(exactjson.Value(test.want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestApply_DefaultsAreFilledBeforeValidation(t *testing.T) {
	_, got := mustCompile(t, `{"properties":{"a":{"type":"string","default":7}}}`).Apply(`{}`)
	if diff := cmp.Diff([]Violation{{"/a", "expected string, got number"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestApply_ManySubschemasForOneValueCostNoMore(t *testing.T) {
	s := mustCompile(t, `{"allOf":[{"properties":{"x":{"$ref":"#"}}},{"properties":{"x":{"$ref":"#"},"d":{"default":0}}},{"properties":{"x":{"$ref":"#"}}}]}`)
	deep := strings.Repeat(`{"x":`, 200) + "1" + strings.Repeat("}", 200)
	v, err := s.graph.fill(exactjson.Value(deep))
	if err != nil || strings.Count(string(v), `"d":0`) != 200 {
		t.Errorf("%v, %d defaults", err, strings.Count(string(v), `"d":0`))
	}
}

func TestApply_EveryViolationHasItsPlace(t *testing.T) {
	for _, test := range []struct {
		name, schema, value string
		want                []Violation
	}{
		{"type", `{"type":["string","null"]}`, `1`, []Violation{{"", "expected null or string, got number"}}},
		{"all of them, in order", `{"items":{"type":"object","required":["b","a"],"properties":{"c":{"type":"string"}}}}`, `[1,2,{"c":3},4,5,6,7,8,9,10,null]`, []Violation{
			{"/0", "expected object, got number"}, {"/1", "expected object, got number"},
			{"/2", `expected the property "a", which is missing`}, {"/2", `expected the property "b", which is missing`}, {"/2/c", "expected string, got number"},
			{"/3", "expected object, got number"}, {"/4", "expected object, got number"}, {"/5", "expected object, got number"}, {"/6", "expected object, got number"},
			{"/7", "expected object, got number"}, {"/8", "expected object, got number"}, {"/9", "expected object, got number"}, {"/10", "expected object, got null"},
		}},
		{"path is a pointer", `{"additionalProperties":{"type":"string"}}`, `{"a/b~c":1}`, []Violation{{"/a~1b~0c", "expected string, got number"}}},
		{"additional", `{"properties":{"a":{}},"additionalProperties":false}`, `{"z":1,"a":1,"b":2}`, []Violation{{"/b", `expected only listed properties, got "b"`}, {"/z", `expected only listed properties, got "z"`}}},
		{"unevaluated", `{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"b":2}`, []Violation{{"/b", "expected nothing here, the schema refuses every value"}}},
		{"enum", `{"enum":["a",1,null,{"x":1},[1,2]]}`, `"b"`, []Violation{{"", `expected one of "a", 1, null, an object of 1 property, an array of 2 elements, got "b"`}}},
		{"const", `{"const":{"a":1}}`, `true`, []Violation{{"", "expected an object of 1 property, got true"}}},
		{"pattern", `{"pattern":"^[a-z]+$"}`, `"A"`, []Violation{{"", `expected text that matches "^[a-z]+$", got "A"`}}},
		{"sizes", `{"properties":{"s":{"minLength":2},"l":{"maxLength":1},"a":{"minItems":1},"b":{"maxItems":1},"u":{"uniqueItems":true},"p":{"minProperties":1},"q":{"maxProperties":2}}}`,
			`{"s":"é","l":"ab","a":[],"b":[1,2],"u":[1,2,1.0],"p":{},"q":{"1":1,"2":2,"3":3}}`, []Violation{
				{"/a", "expected at least 1 element, got 0"}, {"/b", "expected at most 1 element, got 2"}, {"/l", "expected at most 1 character, got 2"},
				{"/p", "expected at least 1 property, got 0"}, {"/q", "expected at most 2 properties, got 3"}, {"/s", "expected at least 2 characters, got 1"},
				{"/u", "expected different elements, those at 0 and 2 are equal"},
			}},
		{"contains", `{"contains":{"const":1},"minContains":2,"maxContains":3}`, `[1,2]`, []Violation{{"", "expected at least 2 elements that match the schema under contains, got 1"}}},
		{"not", `{"not":{"const":1}}`, `1`, []Violation{{"", "expected a value that does not match the schema under not"}}},
		{"anyOf", `{"anyOf":[{"type":"string"},{"properties":{"a":{"type":"string"}},"type":"object"}]}`, `{"a":1}`, []Violation{{"", "expected one of the alternatives of anyOf; expected string, got object; at /a: expected string, got number"}}},
		{"oneOf", `{"oneOf":[{"type":"number"},{"type":"integer"}]}`, `1`, []Violation{{"", "expected exactly one of the alternatives of oneOf, those at 0 and 1 both match"}}},
		{"if", `{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, []Violation{{"", `expected the property "b", which is missing`}}},
		{"dependentRequired", `{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, []Violation{{"", `expected the property "b", which is missing, beside "a"`}}},
		{"propertyNames", `{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, []Violation{{"", `the name of the property "ab" is not allowed: expected at most 1 character, got 2`}}},
		{"by $ref and allOf, once", `{"allOf":[{"$ref":"#/$defs/s"},{"$ref":"#/$defs/s"}],"$defs":{"s":{"type":"string"}}}`, `1`, []Violation{{"", "expected string, got number"}}},
		{"format is an annotation", `{"format":"email"}`, `"no address"`, nil},
		{"false", `false`, `1`, []Violation{{"", "expected nothing here, the schema refuses every value"}}},
		{"true", `true`, `1`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, got := mustCompile(t, test.schema).Apply(value(t, test.value))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestApply_NumbersAreComparedExactly(t *testing.T) {
	for _, test := range []struct{ schema, value, want string }{
		{`{"type":"integer"}`, `1.0`, ``},
		{`{"type":"integer"}`, `1e400`, ``},
		{`{"type":"integer"}`, `1.5`, `expected integer, got number`},
		{`{"maximum":9007199254740992}`, `9007199254740993`, `expected at most 9007199254740992, got 9007199254740993`},
		{`{"maximum":18446744073709551615}`, `18446744073709551616`, `expected at most 18446744073709551615, got 18446744073709551616`},
		{`{"exclusiveMinimum":0.1}`, `0.1`, `expected more than 0.1, got 0.1`},
		{`{"exclusiveMaximum":0.3}`, `0.30`, `expected less than 0.3, got 0.3`},
		{`{"minimum":-1e-3}`, `-0.00100000000000000001`, `expected at least -0.001, got -0.00100000000000000001`},
		{`{"multipleOf":0.01}`, `0.07`, ``},
		{`{"multipleOf":0.01}`, `0.075`, `expected a multiple of 0.01, got 0.075`},
		{`{"const":12345678901234567890.5}`, `12345678901234567890.50`, ``},
		{`{"enum":[18446744073709551615]}`, `18446744073709551616`, `expected one of 18446744073709551615, got 18446744073709551616`},
	} {
		_, violations := mustCompile(t, test.schema).Apply(exactjson.Value(test.value))
		got := ""
		if len(violations) > 0 {
			got = violations[0].Message
		}
		if got != test.want {
			t.Errorf("%s with %s: got %q, want %q", test.schema, test.value, got, test.want)
		}
	}
}

func TestApply_MessagesStaySmall(t *testing.T) {
	long := strings.Repeat("é", 100000)
	s := mustCompile(t, `{"properties":{"a":{"const":"x"},"b":{"pattern":"^x$"},"c":{"maximum":1},"d":{"anyOf":[{"const":1},{"const":2}]}},"additionalProperties":false}`)
	_, got := s.Apply(exactjson.Value(fmt.Sprintf(`{"a":"%s","b":"%s","c":%s,"d":"%s","%s":1}`, long, long, strings.Repeat("7", 1000), long, long)))
	if len(got) != 5 {
		t.Errorf("got %d violations", len(got))
	}
	for _, v := range got {
		if len(v.Path)+len(v.Message) > 500 {
			t.Errorf("%d bytes: %.200s", len(v.Message), v.Message)
		}
	}
}

func TestApply_SameOrderEveryTime(t *testing.T) {
	s := mustCompile(t, `{"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}},"patternProperties":{"a":{"maximum":0},"^.$":{"minimum":5}},"additionalProperties":false}`)
	_, want := s.Apply(`{"x1":1,"a":1,"x2":2,"c":3,"b":2}`)
	for range 20 {
		_, got := s.Apply(`{"x1":1,"a":1,"x2":2,"c":3,"b":2}`)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestCompile_RefusesAndNamesThePlace(t *testing.T) {
	for _, test := range []struct {
		name, schema string
		want         []Problem
	}{
		{"no schema", `"string"`, []Problem{{Message: "expected a JSON Schema (an object or a boolean), got string"}}},
		{"wrong keyword values", `{"type":"text","properties":{"a":{"minLength":-1},"b":{"required":"x"}}}`, []Problem{
			{"/properties/a/minLength", "expected at least 0, got -1", "see JSON Schema 2020-12"},
			{"/properties/b/required", "expected array, got string", "see JSON Schema 2020-12"},
			{"/type", `expected one of the alternatives of anyOf; expected one of "array", "boolean", "integer", "null", "number", "object", "string", got "text"; expected array, got string`, "see JSON Schema 2020-12"},
		}},
		{"other dialect", `{"$schema":"http://json-schema.org/draft-07/schema#"}`, []Problem{{"/$schema", `expected JSON Schema 2020-12, got "http://json-schema.org/draft-07/schema#"`, "write https://json-schema.org/draft/2020-12/schema or leave $schema out"}}},
		{"reference outside", `{"properties":{"a":{"$ref":"https://example.com/s.json"}}}`, []Problem{{"", `a reference leads to "https://example.com/s.json", and nothing outside the document is loaded`, `use a reference into this document, such as "#/$defs/address"`}}},
		{"file", `{"$ref":"file:///etc/passwd"}`, []Problem{{"", `a reference leads to "file:///etc/passwd", and nothing outside the document is loaded`, `use a reference into this document, such as "#/$defs/address"`}}},
		{"dangling reference", `{"$ref":"#/$defs/x"}`, []Problem{{"", `expected something at the reference "#/$defs/x", and nothing is there`, `use a reference into this document, such as "#/$defs/address"`}}},
		{"dangling anchor", `{"$ref":"#x"}`, []Problem{{"", `expected an $anchor for the reference "#x", and there is none`, `use a reference into this document, such as "#/$defs/address"`}}},
		{"regular expression", `{"properties":{"a":{"pattern":"(?=x)"}}}`, []Problem{{"/properties/a/pattern", `expected a regular expression in RE2 syntax (no look-around, no back-references), got "(?=x)"`, "see JSON Schema 2020-12"}}},
		{"regular expression for properties", `{"patternProperties":{"[":{}}}`, []Problem{{"/patternProperties", `the name of the property "[" is not allowed: expected a regular expression in RE2 syntax (no look-around, no back-references), got "["`, "see JSON Schema 2020-12"}}},
		{"default without end", `{"properties":{"next":{"$ref":"#","default":{}}}}`, []Problem{{"/properties/next/default", "this default fills itself again: more than 64 levels or 1000 values come out of one", "take the default out of the part that the schema refers back to"}}},
		{"default that explodes", `{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/b","default":{}},"y":{"$ref":"#/$defs/b","default":{}}}},"b":{"properties":{"x":{"$ref":"#/$defs/a","default":{}},"y":{"$ref":"#/$defs/a","default":{}}}}}}`,
			[]Problem{
				{"/$defs/a/properties/x/default", "this default fills itself again: more than 64 levels or 1000 values come out of one", "take the default out of the part that the schema refers back to"},
				{"/$defs/b/properties/x/default", "this default fills itself again: more than 64 levels or 1000 values come out of one", "take the default out of the part that the schema refers back to"},
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, got := Compile(value(t, test.schema))
			if s != nil {
				t.Error("a schema came back")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLoad_SchemaThatIsNotValidIsAViolation(t *testing.T) {
	_, got := Load(`{"type":7}`).Apply("1")
	if len(got) != 1 || !strings.HasPrefix(got[0].Message, "the schema itself is not valid: ") {
		t.Errorf("got %v", got)
	}
}

func TestLookup_TellsWhetherAFieldIsListed(t *testing.T) {
	doc := `{
		"type":"object","required":["order","lines"],
		"properties":{
			"order":{"$ref":"#/$defs/order"},
			"lines":{"type":"array","items":{"type":"object","required":["sku"],"properties":{"sku":{"type":"string"},"note":{}}}},
			"pair":{"prefixItems":[{"type":"string"},{"type":"number"}]},
			"free":{"type":"object"},
			"any":{},
			"open":{"properties":{"a":{}},"additionalProperties":true},
			"map":{"additionalProperties":{"type":"object","properties":{"x":{}}}},
			"closed":{"type":"object","additionalProperties":false},
			"patterns":{"properties":{"a":{}},"patternProperties":{"^x-":{}}},
			"merged":{"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}},"required":["a"]}]},
			"chosen":{"properties":{"kind":{}},"oneOf":[{"properties":{"a":{}}}]},
			"filled":{"properties":{"d":{"default":1}}},
			"never":false,
			"text":{"type":"string"},
			"nested":{"type":"array","items":{"type":"array","items":{"properties":{"z":{}}}}}
		},
		"$defs":{"order":{"properties":{"id":{},"parent":{"$ref":"#/$defs/order"}},"required":["id"]}}
	}`
	want := map[string]Listing{
		"": Required, "order": Required, "lines": Required, "pair": Optional, "unknown": Unlisted,
		"order.id": Required, "order.parent": Optional, "order.parent.parent.id": Required, "order.parent.parent.ib": Unlisted,
		"lines.[]": Required, "lines.[].sku": Required, "lines.[].note": Optional, "lines.[].skew": Unlisted, "lines.sku": Unlisted, "lines.[].sku.x": Unlisted,
		"pair.[]": Open, "pair.[].x": Open, "free.x": Open, "free.x.y": Open, "any.x": Open, "any.[]": Open,
		"open.a": Optional, "open.b": Open, "open.b.c": Open, "map.k": Open, "map.k.x": Optional, "map.k.y": Unlisted, "map.[]": Open,
		"closed.x": Unlisted, "patterns.a": Optional, "patterns.x-1": Open, "patterns.y": Unlisted,
		"merged.a": Required, "merged.b": Optional, "merged.c": Unlisted, "chosen.kind": Optional, "chosen.a": Open,
		"filled.d": Required, "never": Unlisted, "text.[]": Unlisted, "text.x": Unlisted, "nested.[].[].z": Optional, "nested.[].[].y": Unlisted,
	}
	s := mustCompile(t, doc)
	got := map[string]Listing{}
	for path := range want {
		var steps []string
		if path != "" {
			steps = strings.Split(path, ".")
		}
		got[path] = s.Lookup(steps)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var none *Schema
	if got := none.Lookup([]string{"a"}); got != Open {
		t.Errorf("nil schema: %v", got)
	}
}

func BenchmarkApply(b *testing.B) {
	s, problems := Compile(`{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"total":{"type":"number","minimum":0},"currency":{"default":"EUR"}}}`)
	if problems != nil {
		b.Fatal(problems)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, violations := s.Apply(`{"id":"o-1","total":12.50}`); violations != nil {
			b.Fatal(violations)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, problems := Compile(`{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}`); problems != nil {
			b.Fatal(problems)
		}
	}
}
