package expr

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/exactjson"
)

// refusal is the message and hint of the only fault of a source, with the rest
// of the source from its place on.
type refusal struct{ from, message, hint string }

func refusalOf(t *testing.T, source string, problems []Problem) refusal {
	t.Helper()
	if len(problems) != 1 {
		t.Fatalf("%s: got %d faults, want 1: %+v", source, len(problems), problems)
	}
	p := problems[0]
	return refusal{source[p.Offset:], strings.TrimPrefix(p.Message, noParse), p.Hint}
}

func TestSyntax_SaysWhatWasExpectedAndWhatCame(t *testing.T) {
	for source, want := range map[string]refusal{
		// Operators of other languages.
		"input.n = 5":               {"= 5", "expected an operator, got =", "write == to compare"},
		"input.n === 5":             {"=== 5", "expected an operator, got ===", "write =="},
		"input.n <> 5":              {"<> 5", "expected an operator, got <>", "write !="},
		"input.n => 5":              {"=> 5", "expected an operator, got =>", "write >="},
		"input.n and 5":             {"and 5", "expected an operator, got and", "write && for and"},
		"input.a OR input.b":        {"OR input.b", "expected an operator, got OR", "write || for or"},
		"not input.a":               {"not input.a", "expected a value, got not", "write ! for not"},
		"1 not in [1]":              {"not in [1]", "expected an operator, got not", "write !(a in b) for a not in b"},
		"input.a is null":           {"is null", "expected an operator, got is", "write == for is, != for is not"},
		"input.a & input.b":         {"& input.b", "expected an operator, got &", "write && for and"},
		"input.a | input.b":         {"| input.b", "expected an operator, got |", "write || for or"},
		"input.a ?? 1":              {"?? 1", "expected an operator, got ??", orValueHint},
		"input.list.map(i => i.a)":  {"=> i.a)", "expected an operator, got =>", lambdaHint},
		"input.a; 1":                {"; 1", "expected an operator, got ;", "an expression gives one value"},
		"“a”":                       {"“a”", "expected a value, got “", straightQuotes},
		"if input.a then 1":         {"if input.a then 1", "if is a word that is kept for later", ternaryHint},
		"let x = 5":                 {"let x = 5", "let is a word that is kept for later", "use another name"},
		"input.a contains 'x'":      {"contains 'x'", "expected an operator, got contains", "write .contains(…)"},
		"size input.a":              {"input.a", "expected an operator, got input", "write size(…)"},
		"input.a == ${input.b}":     {"${input.b}", "expected a value, got ${", "an expression is written without ${ } inside"},
		"has(input)":                {"input)", "has() takes a member, not a value of its own", "write has(input.a)"},
		"input.list.map(1, 2)":      {"1, 2)", "expected a name for the variable of this macro, got another expression", lambdaHint},
		"18446744073709551616":      {"18446744073709551616", "this number does not fit into 64 bits", ""},
		"input.a /* note */ + 1":    {"* note */ + 1", "expected a value behind /, got *", ""},
		"input.n\n  = 5 && 'a' = 1": {"= 5 && 'a' = 1", "expected an operator, got =", "write == to compare"},

		// What ends too early.
		"1 +":                 {"", "expected a value behind +, got the end", ""},
		"input.a == // what?": {"", "expected a value behind ==, got the end", ""},
		"input.":              {"", "expected a name behind ., got the end", ""},
		"input.?":             {"", "expected a name behind ., got the end", ""},
		"input.a ? 1":         {"? 1", "expected a : and another value for this ?, got the end", ternaryHint},
		"[input.a ? 1, 2]":    {"? 1, 2]", "expected a : and another value for this ?, got ,", ternaryHint},
		"input.a ? 1 :":       {"", "expected a value behind :, got the end", ""},
		"a ? b ? 1 : 2 : 3":   {"? 1 : 2 : 3", "expected the : of the ? before, got ?", "put an inner ? : in brackets"},
		"(1 + 2":              {"(1 + 2", "expected a ) for this (, got the end", ""},
		"size([1, 2)":         {")", "expected a ] for the [ before, got )", ""},
		"{'a': 1":             {"{'a': 1", "expected a } for this {, got the end", ""},
		"size(1,":             {"(1,", "expected a ) for this (, got the end", ""},
		"input.a == 'abc":     {"'abc", "expected a ' at the end of this text, got the end of the line", "close it with another '"},
		`r"\d`:                {`r"\d`, `expected a " at the end of this text, got the end of the line`, `close it with another "`},

		// What does not belong where it stands.
		"1)":             {")", "expected an operator or the end, got )", "no bracket is open here"},
		"1 + * 2":        {"* 2", "expected a value behind +, got *", ""},
		"* 2":            {"* 2", "expected a value, got *", ""},
		"input.a 5":      {"5", "expected an operator, got 5", ""},
		"'a' 'b'":        {"'b'", "expected an operator, got 'b'", "join texts with +"},
		"'it's'":         {"s'", "expected an operator, got s", `the text ends at the ' before; inside of it write \'`},
		"5kg":            {"kg", "expected an operator, got kg", "a number ends with its digits; a text stands in quotes"},
		"1 : 2":          {": 2", "expected an operator, got :", "a : goes with a ? before it, and behind the key of a map"},
		"1, 2":           {", 2", "expected an operator or the end, got ,", "an expression gives one value; a list is written [a, b]"},
		"(1, 2)":         {", 2)", "expected a ), got ,", "a list is written [a, b]"},
		"input.a[1, 2]":  {", 2]", "expected a ], got ,", "an index is one value"},
		"input.a[]":      {"]", "expected a value behind [, got ]", ""},
		"{'a' 1}":        {"1}", "expected a : behind this key, got 1", ""},
		"{'a'}":          {"}", "expected a : and a value behind this key, got }", ""},
		"{'a' = 1}":      {"= 1}", "expected a : behind this key, got =", ""},
		"input.in":       {"in", "expected a name behind ., got in", `in is a word of the language; write ["in"]`},
		"input.5":        {".5", "expected an operator, got .5", ""},
		"-!input.a":      {"!input.a", "it cannot go on with !", ""},
		`"a\d"`:          {`\d"`, `expected an escape such as \n or \\ in this text, got \d`, `write \\ for a \, or r'…' for a text that has no escapes`},
		"'é' + @x":       {"@x", "expected a value, got @", "names are of letters a to z, digits and _; texts stand in quotes"},
		"größe > 1":      {"öße > 1", "expected an operator, got ö", ""},
		"0x1Fu 1.5e-3":   {"1.5e-3", "expected an operator, got 1.5e-3", ""},
		"input.?`a-b` 1": {"1", "expected an operator, got 1", ""},
	} {
		_, problems := Expression(source, Scope{})
		if diff := cmp.Diff(want, refusalOf(t, source, problems), cmp.AllowUnexported(refusal{})); diff != "" {
			t.Errorf("%s:\n%s", source, diff)
		}
	}
}

func TestTemplate_WhatHidesItsEndIsNamed(t *testing.T) {
	for source, want := range map[string]refusal{
		"order ${input.s == 'a}":          {"'a}", "expected a ' at the end of this text, got the end of the line", "close it with another '"},
		"${input.s == 'it's'}":            {"s'}", "expected an operator, got s", `the text ends at the ' before; inside of it write \'`},
		"${input.a // the first} and ${1": {"// the first} and ${1", "expected a } for the ${ before, got a comment up to the end of the text", "put the } before the //; a // of a text stands in quotes"},
	} {
		_, problems := Template(exactjson.FromString(source), Scope{})
		if diff := cmp.Diff(want, refusalOf(t, source, problems), cmp.AllowUnexported(refusal{})); diff != "" {
			t.Errorf("%s:\n%s", source, diff)
		}
	}
	_, problems := Expression(" ${input.s == 'a}", Scope{})
	if want := (refusal{"'a}", "expected a ' at the end of this text, got the end of the line", "close it with another '"}); refusalOf(t, " ${input.s == 'a}", problems) != want {
		t.Errorf("got %+v", problems)
	}
}

// What the parser takes has no fault: else a fault behind it would be shown in
// the wrong place.
func TestSyntax_FindsNothingInWhatParses(t *testing.T) {
	env, err := environment(everything)
	if err != nil {
		t.Fatal(err)
	}
	sources := []string{
		"[?input.?a, 1]", "{?'a': input.?b, 'c': 1,}", "[1, 2,]", "[,]", "{,}", "a.b{c: 1}", ".a.b + .5", "f()", "input[?'a']", "a ? b : c ? d : e", "a ? (b ? 1 : 2) : {'k': c ? 1 : 2}",
		"- -1", "!!a", "1e5 - 1.5E+3 + 0x1Fu + 5u", "a.`b-c`", "input . a . ? b", "a // x\n + b // y", "'''a'b''' + r'\\d' + bR\"\\\" + '\\x41\\101\\u00e9\\U0001F600\\`'", "1 in [1] == true", "a.in_b.not_c && is_d",
	}
	for _, text := range corpus(t) {
		if _, issues := env.Parse(text); issues.Err() == nil {
			sources = append(sources, text)
		}
	}
	for _, source := range sources {
		if _, issues := env.Parse(source); issues.Err() != nil {
			t.Errorf("%s: the parser refuses it: %v", source, issues.Err())
		}
		if fault := findSyntaxFault(source, nil); fault != nil {
			t.Errorf("%s: %+v", source, *fault)
		}
	}
	if len(sources) < 100 {
		t.Errorf("only %d expressions were tried", len(sources))
	}
}

// corpus are the expressions of the page and those that fuzzing has kept.
func corpus(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var sources []string
	for _, r := range pageRows(string(text)) {
		if r.kind == "expression" {
			sources = append(sources, r.source)
		}
	}
	files, err := filepath.Glob("testdata/fuzz/FuzzExpression/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		kept, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, quoted, _ := strings.Cut(string(kept), "string(")
		source, err := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(quoted), ")"))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		sources = append(sources, source)
	}
	return sources
}

func TestFunctions_OfOtherLanguagesAreNamedByOurs(t *testing.T) {
	for source, want := range map[string]refusal{
		"input.s.toUpper()":        {"toUpper()", "there is no function toUpper", "did you mean upperAscii?"},
		"input.s.toLowerCase()":    {"toLowerCase()", "there is no function toLowerCase", "did you mean lowerAscii?"},
		"len(input.list)":          {"len(input.list)", "there is no function len", "did you mean size?"},
		"input.s.startswith('a')":  {"startswith('a')", "there is no function startswith", "did you mean startsWith?"},
		"abs(-1)":                  {"abs(-1)", "there is no function abs", "did you mean math.abs?"},
		"max(1, 2)":                {"max(1, 2)", "there is no function max", "did you mean math.greatest?"},
		"Math.floor(1.5)":          {"Math.floor(1.5)", "there is no function Math.floor", "did you mean math.floor?"},
		"strings.toUpper('a')":     {"strings.toUpper('a')", "there is no function strings.toUpper", "did you mean upperAscii?"},
		"datetime.now()":           {"datetime.now()", "there is no function datetime.now", "write now, without ( )"},
		"now()":                    {"now()", "there is no function now", "write now, without ( )"},
		"datetime.now":             {"datetime.now", "there is no name datetime", "did you mean now?"},
		"input.a == None":          {"None", "there is no name None", "did you mean null?"},
		"env.HOME":                 {"env.HOME", "there is no name env", meantNames["env"]},
		"not(input.a)":             {"not(input.a)", "there is no function not", "write ! for not"},
		"coalesce(input.a, 1)":     {"coalesce(input.a, 1)", "there is no function coalesce", orValueHint},
		"input.list.any(x, x > 1)": {"any(x, x > 1)", "there is no function any", "did you mean exists?"},
		"input.list.map(input.a)":  {"map(input.a)", "map takes a variable and what to do with it", "write .map(x, …)"},
		"has()":                    {"has()", "has takes one argument, a member", "write has(input.a)"},
	} {
		_, problems := Expression(source, Scope{})
		if diff := cmp.Diff(want, refusalOf(t, source, problems), cmp.AllowUnexported(refusal{})); diff != "" {
			t.Errorf("%s:\n%s", source, diff)
		}
	}
}

// A suggestion that is no function would send its reader on a second search.
func TestFunctions_WhatIsSuggestedIsThere(t *testing.T) {
	env, err := environment(everything)
	if err != nil {
		t.Fatal(err)
	}
	functions := functionNames(env)
	for name, meant := range meantFunctions {
		if name != strings.ToLower(name) || slices.Contains(functions, name) {
			t.Errorf("%s is never looked for", name)
		}
		if !strings.Contains(meant, " ") && !slices.Contains(functions, meant) {
			t.Errorf("%s: there is no function %s", name, meant)
		}
	}
	for _, name := range macros {
		if !slices.Contains(functions, name) {
			t.Errorf("there is no macro %s", name)
		}
	}
}
