package expr

import (
	"errors"
	"testing"

	"perigee/engine/exactjson"
)

// fuzzBounds keep one turn short.
var fuzzBounds = Bounds{Cost: 20_000, ResultBytes: 1 << 16}

func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"input.total > 1000", "${input.items.map(i, i.price).sum()}", "steps.reserve.output.?id.orValue('x')", "{'b': input.big, 'a': [input.esc]}",
		"input.items.sortBy(i, i.price).filter(i, has(i.sku))[0].sku + '!'", "9223372036854775807 / -1 % 2.5", "'%s %d'.format([input.map, input.n])",
		"input.map.exists(k, input.map[k] == 4.0) ? now : duration('1h')", "input.?a[?'b'].optMap(x, x * 2).or(optional.none())",
		"sets.contains(input.numbers, [3.0]) && [1, 'a'].distinct() != []", "input.s.replace('t', '').split('').join('-').indexOf('x')",
		`r"\d" + """a"b""" + b'x'`, "[?input.?x, 1].flatten().slice(0, 1)", "steps[input.s]", "{1: 1, 1.0: 2}", "-(-9223372036854775808)",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, problems := Expression(source, everything)
		checkPlaces(t, problems, len(source))
		if len(problems) > 0 {
			p = LoadExpression(source, everything) // must not panic either
		}
		checkTwice(t, p)
		if len(problems) == 0 {
			checkPath(t, p.expressions[0])
			if fault := findSyntaxFault(p.expressions[0].source, nil); fault != nil {
				t.Errorf("the parser takes it, but: %+v", *fault)
			}
		}
		_, err := p.Bool(sample(), fuzzBounds)
		checkError(t, err)
	})
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		`{"a":"${input.big}","b":"x ${input.n} y ${input.items}","c":"$${no}","d":"${input.?missing}"}`,
		`["${{'a': '}'}}",1,"${optional.none()}"]`, `"\u0024{input.n}"`, `"${"`, `"${}"`, `"${r'\\}' + '}'}"`, `{"k${x}":"$$${input.s}"}`, `"${input.esc}/${now}"`,
		`"${'''}'''}${\"}\"} // }"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := exactjson.Parse(text)
		if err != nil {
			return
		}
		p, problems := Template(v, everything)
		checkPlaces(t, problems, len(v))
		if len(problems) > 0 {
			p = LoadTemplate(v, everything)
		}
		checkTwice(t, p)
		if constant, ok := p.Constant(); ok {
			if _, err := exactjson.Parse([]byte(constant)); err != nil {
				t.Errorf("constant %s: %v", constant, err)
			}
		}
	})
}

// checkTwice evaluates p two times: same result, and JSON.
func checkTwice(t *testing.T, p *Program) {
	t.Helper()
	first, err := p.Eval(sample(), fuzzBounds)
	checkError(t, err)
	second, again := p.Eval(sample(), fuzzBounds)
	if first != second || (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
		t.Errorf("two evaluations differ: %s (%v), %s (%v)", first, err, second, again)
	}
	if !first.Absent() {
		if v, err := exactjson.Parse([]byte(first)); err != nil || v != first {
			t.Errorf("result %s: %v", first, err)
		}
	}
	p.Refs()
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var failed *Error
	if err != nil && (!errors.As(err, &failed) || len(failed.Message) > 2000) {
		t.Errorf("%T: %v", err, err)
	}
}

func checkPlaces(t *testing.T, problems []Problem, size int) {
	t.Helper()
	for _, p := range problems {
		if p.Code == "" || p.Message == "" || p.Offset < 0 || p.Offset > size || len(p.Message) > 1000 {
			t.Errorf("problem %+v", p)
		}
	}
}
