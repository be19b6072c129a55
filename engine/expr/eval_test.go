package expr

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/exactjson"
)

// failure evaluates source, which must compile, and gives its *Error.
func failure(t *testing.T, source string, vars *Vars, b Bounds) *Error {
	t.Helper()
	p, problems := Expression(source, everything)
	if problems != nil {
		t.Fatalf("%s: %+v", source, problems)
	}
	v, err := p.Eval(vars, b)
	var failed *Error
	if !errors.As(err, &failed) {
		t.Fatalf("%s: got %.100s and %v, want an *Error", source, v, err)
	}
	return failed
}

func TestExpression_NumbersMoveTokenForToken(t *testing.T) {
	for _, number := range []string{
		"616581622363398142", "9223372036854775807", "18446744073709551615", "12345678901234567890.5", "-0", "1e400", "1E+2", "0.10", "1e-400", "-1.0e0",
		strings.Repeat("7", 1000),
	} {
		vars := sample()
		vars.Input = exactjson.Value(`{"n":` + number + `,"list":[` + number + `],"flag":true}`)
		vars.Item = exactjson.Value(number)
		for source, want := range map[string]string{
			"input.n": number, "item": number, "input.list[0]": number, "input.list": "[" + number + "]", "{'n': input.n}": `{"n":` + number + "}",
			"[input.n, item]": "[" + number + "," + number + "]", "input.flag ? input.n : 0": number, "input.?n": number, "input.?n.orValue(1)": number,
			"input.?m.or(input.?n)": number, "optional.of(input.n).value()": number, "input.list.map(x, x)": "[" + number + "]",
			"input.list.filter(x, true)": "[" + number + "]", "input.list + [item]": "[" + number + "," + number + "]", "input.list.first()": number,
			"input.list.slice(0, 1)": "[" + number + "]", "input.list.reverse()": "[" + number + "]", "[input.list].flatten()": "[" + number + "]",
			"{'a': {'b': [input.list]}}": `{"a":{"b":[[` + number + "]]}}", "dyn(input.n)": number, "input.?n.optMap(n, {'v': n})": `{"v":` + number + "}",
			"[[item, 2], [item, 1]].sortBy(p, p[1])": "[[" + number + ",1],[" + number + ",2]]",
		} {
			p, problems := Expression(source, everything)
			if problems != nil {
				t.Fatalf("%s: %+v", source, problems)
			}
			got, err := p.Eval(vars, Bounds{})
			if err != nil || string(got) != want {
				t.Errorf("%s: got %.100s (%v), want %.100s", source, got, err, want)
			}
		}
	}
}

func TestExpression_NumbersAreReadByValue(t *testing.T) {
	for number, want := range map[string]string{
		"10": "int 10", "10.0": "int 10", "1e1": "int 10", "-0": "int 0", "9223372036854775807": "int 9223372036854775807", "-9223372036854775808.0": "int -9223372036854775808",
		"2.5": "double 2.5", "12345678901234567890.5": "double 1.2345678901234567e+19", "1e-400": "double 0",
		"9223372036854775808": "outside of 64 bits", "18446744073709551615": "outside of 64 bits", "1e400": "outside of 64 bits",
		strings.Repeat("7", 400) + ".5": "beyond the largest double",
	} {
		vars := sample()
		vars.Item = exactjson.Value(number)
		p, problems := Expression(`(type(item) == int ? "int " : "double ") + string(item)`, everything)
		if problems != nil {
			t.Fatal(problems)
		}
		v, err := p.Eval(vars, Bounds{})
		got, _ := v.Text()
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || err != nil && len(got) > 300 {
			t.Errorf("%.30s: got %q, want %q", number, got, want)
		}
	}
}

func TestExpression_IntegersOverflowOnlyWhereTheyMust(t *testing.T) {
	const most, least = "9223372036854775807", "-9223372036854775808"
	for source, want := range map[string]string{
		most + " + 0": most, most + " + -1": "9223372036854775806", least + " + 1": "-9223372036854775807", least + " - 0": least,
		most + " - 1": "9223372036854775806", "-1 - " + most: least, least + " * 1": least, "1 * " + least: least, "4611686018427387904 * -2": least,
		"0 * " + least: "0", most + " * -1": "-" + most, least + " / 1": least, least + " / 2": "-4611686018427387904", least + " % -1": "0",
		"7 / 2": "3.5", "-7 / 2": "-3.5", "1 / 3": "0.3333333333333333", "9007199254740991 / 2": "4503599627370495.5", most + " / 2": "4611686018427388000", "9223372036854775806 / 4": "2305843009213694000",
		most + " + 1": "error", least + " + -1": "error", least + " - 1": "error", "0 - " + least: "error", least + " * -1": "error", "-1 * " + least: "error",
		"4294967296 * 2147483648": "error", "3037000500 * 3037000500": "error", least + " / -1": "error", "-(" + least + ")": "error",
	} {
		got := mustEval(t, source)
		if want == "error" && strings.HasPrefix(got, "error: ") && strings.Contains(got, "integer overflow") {
			continue
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
}

func TestExpression_ComparesMixedNumbersExactly(t *testing.T) {
	for source, want := range map[string]string{
		"1 < 1.5": "true", "1.5 < 1": "false", "2 >= 2.0": "true", "2.0 <= 2": "true", "2 != 2.0": "false", "2 == 2.5": "false",
		"9223372036854775807 < 9223372036854775808.0": "true", "9223372036854775807 == 9223372036854775808.0": "false",
		"9007199254740993 > 9007199254740992.0": "true", "9007199254740993.0 == 9007199254740992": "true",
		"10u == 10": "true", "10u == 10.0": "true", "10u < 10.5": "true", "-1 < 0u": "true", "18446744073709551615u > 1.5": "true",
		"double('Infinity') > 9223372036854775807": "true", "1 > double('-Infinity')": "true", "double('NaN') == double('NaN')": "false",
		"{'a': 1} == {'a': 1.0}": "true", "{1: 'a'} == {1.0: 'a'}": "true", "[[1]] == [[1.0]]": "true", "{'a': 1} == {'a': 1, 'b': 2}": "false",
		"{'a': [1, {'b': null}]} == {'a': [1.0, {'b': null}]}": "true", "[] == {}": "false", "null == false": "false", "'1' == 1": "false",
		"1 in [1.0]": "true", "1.5 in [1, 2]": "false", "1.0 in {1: 'x'}": "true", "'a' in {'a': 1}": "true", "[1] in [[1.0]]": "true",
		"optional.of(1) == optional.of(1.0)": "true", "optional.none() == optional.of(1)": "false", "input.items[0] == {'price': 10.0, 'sku': 'a'}": "true",
		"steps.reserve.status == 'SUCCEEDED' && steps.reserve.attempt == 2.0": "true", "now > execution.started_at": "true", "b'a' < b'b'": "true", "false < true": "true",
	} {
		if got := mustEval(t, source); got != want {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
}

func TestExpression_MapsAreWalkedInByteOrder(t *testing.T) {
	for source, want := range map[string]string{
		"input.map.map(k, k)": `["Z","a","z","é"]`, "{'z': 1, 'a': 2, 'Z': 3, 'é': 4}.map(k, k)": `["Z","a","z","é"]`,
		"input.map.filter(k, input.map[k] > 1)": `["Z","a","é"]`, "{'b': 1, 'a': {'d': 1, 'c': 2}}": `{"a":{"c":2,"d":1},"b":1}`,
		"input.map.exists(k, k == 'z')": "true", "input.map.all(k, k < 'z')": "false", "{3: 1, 1: 1, 2.5: 1}.map(k, k)": "[1,2.5,3]",
		"'%s'.format([{'b': 1, 'a': 2}])": `"{a: 2, b: 1}"`, "{'b': input.n, 'a': [input.map]}.map(k, k)": `["a","b"]`,
		"steps.reserve.map(k, k)": `["attempt","error","output","status"]`, "execution.map(k, k)": `["id","parent","started_at","version","workflow"]`,
	} {
		for range 5 {
			if got := mustEval(t, source); got != want {
				t.Errorf("%s: got %s, want %s", source, got, want)
				break
			}
		}
	}
}

func TestExpression_ErrorsNameExpressionAndReason(t *testing.T) {
	vars := sample()
	for source, want := range map[string]string{
		"steps.skipped.output.id":    "`steps.skipped.output.id`: steps.skipped.output is null because the step skipped was skipped: it has no id; write steps.skipped.output.?id, and .orValue(…) behind it, where that can be",
		"steps.other.output.id":      "`steps.other.output.id`: steps.other.output is null because the step other has no output (yet): it has no id; write steps.other.output.?id, and .orValue(…) behind it, where that can be",
		"steps.reserve.output.idd":   "`steps.reserve.output.idd`: steps.reserve.output has no field idd; did you mean id? write steps.reserve.output.?idd, and .orValue(…) behind it, if it may be missing",
		"input.flag ? input.a : 1":   "`input.flag ? input.a : 1`: input has no field a; write input.?a, and .orValue(…) behind it, if it may be missing",
		"input.s.length":             "`input.s.length`: input.s is of type string and has no field length",
		"!input.n":                   "`!input.n`: expected true or false as an operand of &&, ||, ! or as the condition of ? :",
		"input.nothing.map(x, x)":    "`input.nothing.map(x, x)`: a macro such as map or filter walks a list or a map, got null",
		"input.n.map(x, x)":          "`input.n.map(x, x)`: a macro such as map or filter walks a list or a map, got a number or string",
		"input.items[0].prize":       "`input.items[0].prize`: input.items[0] has no field prize; did you mean price? write input.items[0].?prize, and .orValue(…) behind it, if it may be missing",
		"input.map[input.s]":         "`input.map[input.s]`: input.map[…]: there is no \"text\", or it is behind null; write [?…] where that can be",
		"{'a': 1}.b":                 "`{'a': 1}.b`: (…) has no field b, or is null; write (…).?b, and .orValue(…) behind it, where that can be",
		"input.n.reverse()":          "`input.n.reverse()`: reverse() does not take int",
		"input.numbers.join()":       "`input.numbers.join()`: join() is for a list of strings, got int at 0; write list.map(x, string(x)).join()",
		"['a', 1].sort()":            "`['a', 1].sort()`: expected values of one kind that have an order, got int and string",
		"input.s.replace('t', 1)":    "`input.s.replace('t', 1)`: replace() takes more arguments",
		"optional.none().value()":    "`optional.none().value()`: optional.none() dereference",
		"{1: 1, double('1'): 2}":     "`{1: 1, double('1'): 2}`: a key stands twice in one map",
		"{input.s: 1, 'text': 2}":    "`{input.s: 1, 'text': 2}`: a key stands twice in one map",
		"input.items.sum()":          "`input.items.sum()`: + takes no int and map",
		"input['odd key'].deep.deep": "`input['odd key'].deep.deep`: input has no field \"odd key\"; write input[?\"odd key\"], and .orValue(…) behind it, if it may be missing",
	} {
		p := LoadExpression(source, everything)
		_, err := p.Eval(vars, Bounds{})
		if err == nil {
			t.Errorf("%s: no error", source)
			continue
		}
		if strings.Contains(source, "replace") {
			want = err.Error() // refused by the type check, which is what a stored one meets
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%s:\n%s", source, diff)
		}
	}
}

func TestExpression_CostIsBounded(t *testing.T) {
	vars := sample()
	vars.Item = exactjson.Value("[" + strings.Repeat("1,", 2000) + "1]")
	failed := failure(t, "item.map(x, item.map(y, x * y))", vars, Bounds{})
	if !strings.Contains(failed.Message, "costs more than 1000000 units") || failed.TooLarge {
		t.Error(failed.Message)
	}
	failed = failure(t, "item.all(x, x == 1)", vars, Bounds{Cost: 100})
	if !strings.Contains(failed.Message, "costs more than 100 units") {
		t.Error(failed.Message)
	}
	p, _ := Expression("item.all(x, x == 1)", everything)
	if truth, err := p.Bool(vars, Bounds{}); !truth || err != nil {
		t.Error(truth, err)
	}
}

func TestExpression_NothingGrowsWithoutBound(t *testing.T) {
	vars := sample()
	vars.Item = exactjson.FromString(strings.Repeat("x", 200_000))
	vars.Output = exactjson.Value("[" + strings.Repeat("1,", 100_000) + "1]")
	for _, source := range []string{
		"item.replace('', item)", "item.replace('x', item)", "item.split('').join(item)",
		"[item + item].map(a, [a + a].map(b, [b + b].map(c, [c + c].map(d, [d + d].map(e, [e + e].map(f, [f + f].map(g, [g + g].map(h, h + h))))))))",
		"[output + output].map(a, [a + a].map(b, [b + b].map(c, [c + c].map(d, d + d))))",
		"output.map(x, item)", "lists.range(1000000000)", "output.map(x, output.sort())", "output.map(x, output.distinct())", "output.map(x, sets.contains(output, output))",
	} {
		failed := failure(t, source, vars, Bounds{ResultBytes: 1 << 20})
		if !strings.Contains(failed.Message, "grows beyond") && !strings.Contains(failed.Message, "costs more") &&
			!strings.Contains(failed.Message, "exceeds maximum") && !failed.TooLarge {
			t.Errorf("%s: %s", source, failed.Message)
		}
	}
}

func TestEval_ResultThatIsTooLargeSaysSo(t *testing.T) {
	vars := sample()
	for _, p := range []*Program{
		LoadExpression("input", everything), LoadExpression("[input.s, input.s]", everything), LoadExpression("{'abcdefghijkl': 1}", everything),
		LoadTemplate(`{"a":"${input.n}","b":"some text"}`, everything), LoadTemplate(`"a longer text ${input.n}"`, everything), LoadTemplate(`["${input.s}","${input.s}"]`, everything),
		LoadTemplate(`{"just":"literal"}`, everything),
	} {
		_, err := p.Eval(vars, Bounds{ResultBytes: 12})
		var failed *Error
		if !errors.As(err, &failed) || !failed.TooLarge || failed.Limit != 12 {
			t.Errorf("%s: got %v", p.Source(), err)
		}
	}
	if v, err := LoadExpression("[input.s, 1]", everything).Eval(vars, Bounds{ResultBytes: 10}); v != `["text",1]` || err != nil {
		t.Error(v, err)
	}
}

func TestEval_ResultMayNotNestTooDeep(t *testing.T) {
	vars := sample()
	vars.Item = exactjson.Value(strings.Repeat("[", 256) + strings.Repeat("]", 256))
	if v, err := LoadExpression("item", everything).Eval(vars, Bounds{}); v != vars.Item || err != nil {
		t.Error(err)
	}
	for _, p := range []*Program{LoadExpression("[item]", everything), LoadTemplate(`{"a":"${item}"}`, everything)} {
		if _, err := p.Eval(vars, Bounds{}); err == nil || !strings.Contains(err.Error(), "nests deeper than 256") {
			t.Errorf("%s: %v", p.Source(), err)
		}
	}
}

func TestEval_AbsentVariablesAreNull(t *testing.T) {
	for source, want := range map[string]string{
		"input": "null", "item": "null", "output": "null", "failure": "null", "error": "null", "index": "0", "idempotency_key": `""`,
		"execution.parent": "null", "execution.?parent.?step.orValue('none')": `"none"`, "steps.x.output == null && steps.x.status == null": "true", "now": `"1970-01-01T00:00:00Z"`,
	} {
		p := LoadExpression(source, everything)
		for _, vars := range []*Vars{nil, {}} {
			got, err := p.Eval(vars, Bounds{})
			if err != nil || string(got) != want {
				t.Errorf("%s: got %s, %v", source, got, err)
			}
		}
	}
}

func TestEval_OnlyTouchedStepsAreAskedFor(t *testing.T) {
	var asked []string
	vars := &Vars{Input: `{"a":1}`, Step: func(id string) Step {
		asked = append(asked, id)
		return Step{Output: "1", Status: "SUCCEEDED"}
	}}
	if v, err := LoadExpression("input.a == 1 ? steps.first.output : steps.second.output", Scope{}).Eval(vars, Bounds{}); v != "1" || err != nil {
		t.Error(v, err)
	}
	if diff := cmp.Diff([]string{"first"}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestBool_TakesOnlyTrueAndFalse(t *testing.T) {
	for source, want := range map[string]bool{"input.n > 1": true, "${input.flag}": true, "input.n > 100": false, "has(input.x)": false} {
		p, problems := Expression(source, everything)
		if problems != nil {
			t.Fatal(problems)
		}
		if got, err := p.Bool(sample(), Bounds{}); got != want || err != nil {
			t.Errorf("%s: got %t, %v", source, got, err)
		}
	}
	for source, want := range map[string]string{
		"input.n": "`input.n`: expected true or false, got int", "input.nothing": "`input.nothing`: expected true or false, got null",
		"input.?flag": "`input.?flag`: expected true or false, got optional", "'true'": "`'true'`: expected true or false, got string",
	} {
		_, err := LoadExpression(source, everything).Bool(sample(), Bounds{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", source, err, want)
		}
	}
	if _, err := LoadTemplate(`{"a":1}`, everything).Bool(sample(), Bounds{}); err == nil {
		t.Error("an object is no condition")
	}
}

func TestEval_WholeThatIsNothingIsAbsent(t *testing.T) {
	for _, p := range []*Program{LoadExpression("input.?coupon", everything), LoadTemplate(`"${input.?coupon}"`, everything)} {
		if v, err := p.Eval(sample(), Bounds{}); !v.Absent() || err != nil {
			t.Errorf("%s: got %q, %v", p.Source(), v, err)
		}
	}
}

func TestConstant_IsATemplateWithoutExpressions(t *testing.T) {
	for template, want := range map[exactjson.Value]exactjson.Value{
		`{"z":1.50,"a":["\u0041\/",null]}`: `{"z":1.50,"a":["\u0041\/",null]}`,
		`"$${a} and $${"`:                  `"${a} and ${"`,
		`{"k":["$${x}",1]}`:                `{"k":["${x}",1]}`,
		"12345678901234567890.5":           "12345678901234567890.5",
		"":                                 "null",
	} {
		p, problems := Template(template, Scope{})
		if problems != nil {
			t.Errorf("%s: %+v", template, problems)
			continue
		}
		constant, ok := p.Constant()
		if diff := cmp.Diff(want, constant); diff != "" || !ok {
			t.Errorf("%s: %t\n%s", template, ok, diff)
		}
		evaluated, err := p.Eval(nil, Bounds{})
		if diff := cmp.Diff(want, evaluated); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", template, err, diff)
		}
	}
	if _, ok := LoadTemplate(`{"a":"${input.x}"}`, Scope{}).Constant(); ok {
		t.Error("a template with an expression is no constant")
	}
	if _, ok := LoadExpression("1", Scope{}).Constant(); ok {
		t.Error("an expression is no constant")
	}
}

func TestTemplate_ErrorsNameTheirPlace(t *testing.T) {
	_, err := LoadTemplate(`{"a":[{"b":"x ${input.missing}"}]}`, everything).Eval(sample(), Bounds{})
	want := "`input.missing` at /a/0/b: input has no field missing; write input.?missing, and .orValue(…) behind it, if it may be missing"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestLoad_WhatDoesNotCompileIsAnError(t *testing.T) {
	for _, p := range []*Program{
		LoadExpression("input.", Scope{}), LoadExpression("nope", Scope{}), LoadExpression("${", Scope{}), LoadTemplate(`"${"`, Scope{}), LoadTemplate(`["${1 +}"]`, Scope{}),
	} {
		_, err := p.Eval(sample(), Bounds{})
		var failed *Error
		if !errors.As(err, &failed) {
			t.Errorf("%s: got %v", p.Source(), err)
		}
		if _, err := p.Bool(sample(), Bounds{}); err == nil {
			t.Errorf("%s: no error", p.Source())
		}
		p.Refs()
		p.Constant()
	}
}

func TestProgram_IsSafeForConcurrentUse(t *testing.T) {
	p := LoadTemplate(`{"a":"${input.items.map(i, i.price).sum()}","b":"${{'z': input.n, 'a': input.map}}"}`, Scope{IdempotencyKey: true})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				got, err := p.Eval(sample(), Bounds{})
				if want := `{"a":12.5,"b":{"a":{"z":1,"a":2,"é":3,"Z":4},"z":10}}`; string(got) != want || err != nil {
					t.Errorf("got %s, %v", got, err)
				}
				p.Refs()
			}
		})
	}
	group.Wait()
}
