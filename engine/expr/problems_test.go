package expr

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"perigee/engine/exactjson"
)

func TestExpression_FaultsAreFoundWhenItIsCompiled(t *testing.T) {
	for _, test := range []struct {
		name, source string
		scope        Scope
		want         []Problem
	}{
		{"nothing", "  ", Scope{}, []Problem{{Code: CodeSyntax, Message: "expected an expression, got nothing"}}},
		{"syntax", "input.a +", Scope{}, []Problem{{Code: CodeSyntax, Offset: 9, Message: "the expression does not parse: expected a value behind +, got the end"}}},
		{"${ } inside", "input.a == ${input.b}", Scope{}, []Problem{{Code: CodeSyntax, Offset: 11, Message: "the expression does not parse", Hint: "an expression is written without ${ } inside"}}},
		{"offset counts bytes", `"é😀" + oops`, Scope{}, []Problem{{Code: CodeUnknownName, Offset: 11, Message: "there is no name oops", Hint: "here are input, steps, execution, now"}}},
		{"offset in ${ }", "  ${ inptu.a }", Scope{}, []Problem{{Code: CodeUnknownName, Offset: 5, Message: "there is no name inptu", Hint: "did you mean input?"}}},
		{"second line", "input.a\n  && oops", Scope{}, []Problem{{Code: CodeUnknownName, Offset: 13, Message: "there is no name oops", Hint: "here are input, steps, execution, now"}}},
		{"half open", "${input.a", Scope{}, []Problem{{Code: CodeHalfOpen, Message: "expected a } for this ${, got the end of the text", Hint: "close it, or leave ${ } out: here stands an expression anyway"}}},
		{"empty", " ${ }", Scope{}, []Problem{{Code: CodeEmptyTemplate, Offset: 1, Message: "expected an expression inside ${ }, got nothing"}}},
		{"text behind", "${input.a} and more", Scope{}, []Problem{{Code: CodeMisplaced, Offset: 10, Message: "expected one expression, got text behind ${ }", Hint: `join texts with +, such as "order " + input.id`}}},
		{"name of another scope", "item.sku", Scope{}, []Problem{{Code: CodeUnknownName, Message: "there is no name item", Hint: "item is only there under for"}}},
		{"unknown function", "input.name.lowerAsci()", Scope{}, []Problem{{Code: CodeUnknownFunction, Offset: 11, Message: "there is no function lowerAsci", Hint: "did you mean lowerAscii?"}}},
		{"types", `1 + "a"`, Scope{}, []Problem{{Code: CodeType, Offset: 2, Message: "+ does not take (int, string)"}}},
		{"types of a method", `now.getHours(1)`, Scope{}, []Problem{{Code: CodeType, Offset: 12, Message: "getHours does not take"}}},
		{"bare steps", "size(steps)", Scope{}, []Problem{{Code: CodeStepsReference, Offset: 5, Message: "expected the id of a step behind steps, got steps alone", Hint: `write steps.<id> or steps["<id>"]`}}},
		{"computed step", "steps[input.which].output", Scope{}, []Problem{{Code: CodeStepsReference, Message: "expected the id of a step as a constant, got a computed key", Hint: `write steps.<id> or steps["<id>"]`}}},
		{"steps by number", "steps[0]", Scope{}, []Problem{{Code: CodeStepsReference, Message: "expected the id of a step as a constant, got a computed key", Hint: `write steps.<id> or steps["<id>"]`}}},
		{"walking steps", "steps.map(s, s)", Scope{}, []Problem{{Code: CodeStepsReference, Message: "expected the id of a step behind steps, got steps alone", Hint: `write steps.<id> or steps["<id>"]`}}},
		{"field of a step", "steps.a.outputs", Scope{}, []Problem{{Code: CodeUnknownName, Message: `steps.a has no field outputs`, Hint: "did you mean output?"}}},
		{"field of execution", "execution.name", Scope{}, []Problem{{Code: CodeUnknownName, Message: "execution has no field name", Hint: "its fields are id, workflow, version, started_at, parent"}}},
		{"field of parent", "execution.parent.id", Scope{}, []Problem{{Code: CodeUnknownName, Message: "execution.parent has no field id", Hint: "its fields are execution_id, step"}}},
		{"field of failure", "failure.cod", Scope{Failure: true}, []Problem{{Code: CodeUnknownName, Message: "failure has no field cod", Hint: "did you mean code?"}}},
		{"macro variable named like a name", "input.items.map(steps, 1)", Scope{}, []Problem{{Code: CodeShadowedName, Offset: 15, Message: "the variable steps of a macro is named like something in scope", Hint: "give it another name"}}},
		{"optMap variable", "input.?a.optMap(now, 1)", Scope{}, []Problem{{Code: CodeShadowedName, Offset: 15, Message: "the variable now of a macro is named like something in scope", Hint: "give it another name"}}},
		{"key twice", `{"a": 1, "a": 2}`, Scope{}, []Problem{{Code: CodeDuplicateKey, Offset: 9, Message: "this key stands twice in one map", Hint: "keep one of the two"}}},
		{"key twice by value", `{1: 1, 1.0: 2}`, Scope{}, []Problem{{Code: CodeDuplicateKey, Offset: 7, Message: "this key stands twice in one map", Hint: "keep one of the two"}}},
		{"message type", `google.protobuf.Duration{seconds: 1}`, Scope{}, []Problem{{Code: CodeUnsupported, Message: "there are no message types here", Offset: 24}}},
		{"all at once", "inptu.a && steps.x.foo == outptu", Scope{}, []Problem{
			{Code: CodeUnknownName, Message: "there is no name inptu", Hint: "did you mean input?"},
			{Code: CodeUnknownName, Offset: 11, Message: "steps.x has no field foo", Hint: "its fields are output, status, error, attempt"},
			{Code: CodeUnknownName, Offset: 26, Message: "there is no name outptu", Hint: "here are input, steps, execution, now"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, got := Expression(test.source, test.scope)
			for i := range got {
				if i < len(test.want) && strings.HasPrefix(got[i].Message, test.want[i].Message) {
					got[i].Message = test.want[i].Message // the rest is the parser's
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExpression_TakesWhatIsLegal(t *testing.T) {
	for _, source := range []string{
		"input.items.map(item, item)", // item is not in this scope
		"input.items.map(x, x.steps)", `steps["a"].output`, `steps.a["output"]`, "steps.?a.output", "type(input) == map", "google.protobuf.Timestamp == type(now)",
		"math.greatest(1, 2.5, input.a)", "[1, 'a', null, {}]", "input.a == null || input.a == 1", "input.flag ? [] : {}", "'${' + input.a + '}'", "${input.a}", "  ${input.a}\n",
		"input.a in [1, 'b']", "'a' == 1", "optional.none()", "!has(input.a)", "input.?a[0].b",
	} {
		if _, problems := Expression(source, Scope{}); problems != nil {
			t.Errorf("%s: %+v", source, problems)
		}
	}
}

func TestTemplate_FaultsNameTheirPlace(t *testing.T) {
	_, got := Template(`{"a":["x ${oops} y"],"b/c":"${","d":"${}","e":"é ${input.x +}","f":"\u0024{nope}","g":"fine ${input.a}"}`, Scope{})
	want := []Problem{
		{Code: CodeHalfOpen, Path: "/b~1c", Message: "expected a } for this ${, got the end of the text", Hint: "close it, or write $${ for a literal ${"},
		{Code: CodeEmptyTemplate, Path: "/d", Message: "expected an expression inside ${ }, got nothing", Hint: "write $${ for a literal ${"},
		{Code: CodeUnknownName, Path: "/a/0", Offset: 4, Message: "there is no name oops", Hint: "here are input, steps, execution, now"},
		{Code: CodeSyntax, Path: "/e", Offset: 14, Message: "the expression does not parse"},
		{Code: CodeUnknownName, Path: "/f", Offset: 2, Message: "there is no name nope", Hint: "here are input, steps, execution, now"},
	}
	for i := range got {
		if strings.HasPrefix(got[i].Message, "the expression does not parse") {
			got[i].Message = "the expression does not parse"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRefs_ArePlainSelectionsOfNames(t *testing.T) {
	segments := func(names ...string) (path []Segment) {
		for _, name := range names {
			plain := strings.TrimPrefix(name, "?")
			path = append(path, Segment{Name: plain, Optional: plain != name})
		}
		return path
	}
	for _, test := range []struct {
		source string
		want   []Ref
	}{
		{"steps.reserve.output.id", []Ref{{Root: "steps", Path: segments("reserve", "output", "id")}}},
		{`steps["reserve"].output["id"]`, []Ref{{Root: "steps", Path: segments("reserve", "output", "id")}}},
		{"input", []Ref{{Root: "input"}}},
		{"input.a.?b.c", []Ref{{Root: "input", Path: segments("a", "?b", "?c")}}},
		{`input.a[?"b"].c`, []Ref{{Root: "input", Path: segments("a", "?b", "?c")}}},
		{"has(input.a.b)", []Ref{{Root: "input", Path: segments("a", "?b")}}},
		{"input.items[0].sku", []Ref{{Root: "input", Path: segments("items", "[]", "sku")}}},
		{"input.items[index].sku", []Ref{{Root: "input", Path: segments("items", "[]", "sku")}, {Root: "index"}}},
		{"input.items.map(i, i.sku + input.suffix)", []Ref{{Root: "input", Path: segments("items")}, {Root: "input", Path: segments("suffix")}}},
		{"size(steps.a.output) + now.getHours()", []Ref{{Root: "steps", Path: segments("a", "output")}, {Root: "now"}}},
		{"(input.a ? steps.b.output : steps.c.output).d", []Ref{{Root: "input", Path: segments("a")}, {Root: "steps", Path: segments("b", "output")}, {Root: "steps", Path: segments("c", "output")}}},
		{"{input.k: input.v}", []Ref{{Root: "input", Path: segments("k")}, {Root: "input", Path: segments("v")}}},
		// What has() or a comparison with null asked before is guarded.
		{"has(input.a) && input.a > 1", []Ref{{Root: "input", Path: segments("?a")}, {Root: "input", Path: segments("?a")}}},
		{"has(input.a) ? input.a : input.a", []Ref{{Root: "input", Path: segments("?a")}, {Root: "input", Path: segments("?a")}, {Root: "input", Path: segments("a")}}},
		{"!has(input.a) || input.a > 1", []Ref{{Root: "input", Path: segments("?a")}, {Root: "input", Path: segments("?a")}}},
		{"!has(input.a) ? 0 : input.a.b", []Ref{{Root: "input", Path: segments("?a")}, {Root: "input", Path: segments("?a", "b")}}},
		{"has(input.a) || input.a > 1", []Ref{{Root: "input", Path: segments("?a")}, {Root: "input", Path: segments("a")}}},
		{"steps.a.output == null ? 0 : steps.a.output.n", []Ref{{Root: "steps", Path: segments("a", "output")}, {Root: "steps", Path: segments("?a", "?output", "?n")}}},
		{"null != steps.a.output && steps.a.output.n > 1", []Ref{{Root: "steps", Path: segments("a", "output")}, {Root: "steps", Path: segments("?a", "?output", "?n")}}},
		{"'a' in input && input.a == 1", []Ref{{Root: "input"}, {Root: "input", Path: segments("?a")}}},
		{"has(input.a) && has(input.b) && input.items.exists(i, i == input.a + input.b)", []Ref{
			{Root: "input", Path: segments("?a")}, {Root: "input", Path: segments("?b")}, {Root: "input", Path: segments("items")},
			{Root: "input", Path: segments("?a")}, {Root: "input", Path: segments("?b")},
		}},
	} {
		p, problems := Expression(test.source, everything)
		if problems != nil {
			t.Errorf("%s: %+v", test.source, problems)
			continue
		}
		if diff := cmp.Diff(test.want, p.Refs(), cmpopts.IgnoreFields(Ref{}, "Offset")); diff != "" {
			t.Errorf("%s:\n%s", test.source, diff)
		}
	}
}

func TestRefs_SayWhereTheyStand(t *testing.T) {
	p, problems := Template(exactjson.Value(`{"a":["${input.x} é ${steps.y.output}"],"b":"${ 1 + now.getHours() }"}`), Scope{})
	if problems != nil {
		t.Fatal(problems)
	}
	want := []Ref{
		{Root: "input", Path: []Segment{{Name: "x"}}, At: "/a/0", Offset: 2},
		{Root: "steps", Path: []Segment{{Name: "y"}, {Name: "output"}}, At: "/a/0", Offset: 16},
		{Root: "now", At: "/b", Offset: 7},
	}
	if diff := cmp.Diff(want, p.Refs()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, LoadTemplate(exactjson.Value(p.Source()), Scope{}).Refs()); diff != "" {
		t.Errorf("loaded:\n%s", diff)
	}
}

// What one expression of a template cannot say, the others still do.
func TestRefs_AreThoseOfWhatCanBeRead(t *testing.T) {
	p, problems := Template(`{"a":"${input.x}","b":"${1 +}","c":"${steps.y.output + oops}","d":"${steps.z.output} ${"}`, Scope{})
	if len(problems) != 3 {
		t.Errorf("got %+v", problems)
	}
	want := []Ref{
		{Root: "input", Path: []Segment{{Name: "x"}}, At: "/a", Offset: 2},
		{Root: "steps", Path: []Segment{{Name: "y"}, {Name: "output"}}, At: "/c", Offset: 2},
		{Root: "steps", Path: []Segment{{Name: "z"}, {Name: "output"}}, At: "/d", Offset: 2},
	}
	if diff := cmp.Diff(want, p.Refs()); diff != "" {
		t.Error(diff)
	}
	if _, err := p.Eval(sample(), Bounds{}); err == nil {
		t.Error("it was evaluated")
	}
}

func TestHasTemplate_FindsWhatLooksLikeOne(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "plain": false, "$": false, "{}": false, "$ {": false, "$${": false, "a $${b} c": false,
		"${": true, "a ${b} c": true, "$${a} ${b}": true, "$$ ${": true,
	} {
		if got := HasTemplate(s); got != want {
			t.Errorf("%q: got %t", s, got)
		}
	}
}
