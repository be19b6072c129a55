package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/exactjson"
	"perigee/engine/expr"
)

func TestMentionedSteps_IsWhatTheParserSays(t *testing.T) {
	for _, text := range []string{
		"steps.a.output",
		"steps . a . output + steps\n.\nb.output",
		`steps["a"].output == steps['b'].output`,
		"steps.?a.output",
		"input.steps.a",
		"input.?steps.a",
		"input .steps .a",
		"input.x ? steps.a.output : steps.b.output",
		"input.x?steps.a.output:steps.b.output",
		`"steps.a" + 'steps.b' + steps.c.output`,
		`"\"steps.a" + steps.c.output`,
		`r"\" + steps.c.output`,
		`"""it's "steps.a" """ + steps.c.output`,
		"[steps.a.output, (steps.b.output)]",
		`{"steps": steps.a.output, "b": {"c": 1}}`,
		"mysteps.a == 1 && steps_.b == 2 && steps.c.output",
		"size(steps.a.output) + steps.b.output.map(s, s.steps.z)[0]",
		".steps.a.output",
		"(input).steps.a || input[0].steps.b || {}.steps.c",
		"1 > 2 // steps.a\n || steps.b.output",
		`steps["\x61"].output`,
		"1.0 < 2.5e3 && steps.a.attempt > 1u",
		"has(steps.a.output.x) && !steps.b.output",
		"[1, 2].exists(x, x == steps.a.output)",
		"b'steps.a' == b\"x\" || steps.z.output",
	} {
		program := expr.LoadExpression(text, expr.Scope{})
		want := parsedSteps(program)
		got, ok := mentionedSteps(&node{kind: exactjson.KindString, text: text}, true)
		if diff := cmp.Diff(want, got); ok && diff != "" {
			t.Errorf("%s\n%s", text, diff)
		}
		template := exactjson.FromString("x ${ " + text + " } $${steps.no.x} ${steps.last.output}")
		want = parsedSteps(expr.LoadTemplate(template, expr.Scope{}))
		got, ok = mentionedSteps(storedNode(template), false)
		if diff := cmp.Diff(want, got); ok && diff != "" {
			t.Errorf("template %s\n%s", template, diff)
		}
	}
}

func TestMentionedSteps_UsualFormsNeedNoParser(t *testing.T) {
	for _, text := range []string{"steps.a.output.x > 1 && input.y", `steps["a"].output`, "item.x", `"it's" + steps.a.output`} {
		if _, ok := mentionedSteps(&node{kind: exactjson.KindString, text: text}, true); !ok {
			t.Errorf("%s needs the parser", text)
		}
	}
}

func FuzzMentions(f *testing.F) {
	f.Add("steps.a.output + input.steps.b")
	f.Add(`steps["a"].output ? r'\' : "\"" + b'steps.x'`)
	f.Add("{'a': steps.b.output}.?steps.c")
	f.Fuzz(func(t *testing.T, text string) {
		program, problems := expr.Expression(text, expr.Scope{})
		if len(problems) > 0 {
			return
		}
		want := parsedSteps(program)
		got, ok := mentionedSteps(&node{kind: exactjson.KindString, text: conditionText(&node{text: text})}, true)
		if diff := cmp.Diff(want, got); ok && diff != "" {
			t.Errorf("%q\n%s", text, diff)
		}
	})
}
