package definition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/exactjson"
)

// readText is the JSON of a YAML text, or its faults.
func readText(text string) (exactjson.Value, []Fault) {
	src, clean, fault := newSource([]byte(text), YAML)
	if fault != nil {
		return "", []Fault{*fault}
	}
	root, faults := readYAML(src, clean)
	if root == nil {
		return "", faults
	}
	return root.value(), nil
}

func TestYAML_ScalarsAreThoseOfTheCoreSchema(t *testing.T) {
	for text, want := range map[string]exactjson.Value{
		"1":                      "1",
		"-12":                    "-12",
		"+12":                    "12",
		"1.10":                   "1.10",
		"9223372036854775808":    "9223372036854775808",
		"12345678901234567890.5": "12345678901234567890.5",
		"1e3":                    "1e3",
		"12e03":                  "12e03",
		"1E+400":                 "1E+400",
		".5":                     "0.5",
		"-.5":                    "-0.5",
		"5.":                     "5",
		"5.e3":                   "5e3",
		"-0":                     "-0",
		"0x1F":                   "31",
		"0o17":                   "15",
		"0b11":                   `"0b11"`,
		"1_000":                  `"1_000"`,
		"1:30":                   `"1:30"`,
		"2027-01-01":             `"2027-01-01"`,
		"true":                   "true",
		"False":                  "false",
		"TRUE":                   "true",
		"yes":                    `"yes"`,
		"off":                    `"off"`,
		"y":                      `"y"`,
		"null":                   "null",
		"~":                      "null",
		"":                       "null",
		"'1'":                    `"1"`,
		`"true"`:                 `"true"`,
		"'it''s'":                `"it's"`,
		`"\u00e9\x41\t\0\/"`:     `"éA\t\u0000/"`,
		`"\ud83d\ude00"`:         `"😀"`,
		"a b":                    `"a b"`,
		"${input.x}":             `"${input.x}"`,
		"a > 1 ? b :c":           `"a > 1 ? b :c"`,
	} {
		got, faults := readText("v: " + text + "\n")
		if len(faults) > 0 || got != exactjson.Object([]exactjson.Member{{Key: "v", Value: want}}) {
			t.Errorf("%s: got %s %v, want %s", text, got, faults, want)
		}
	}
}

func TestYAML_CollectionsAndBlocks(t *testing.T) {
	for text, want := range map[string]exactjson.Value{
		"a:\n- 1\n- {b: 2, 'c': [x, \"y\"]}\n":         `{"a":[1,{"b":2,"c":["x","y"]}]}`,
		"a: |\n  one\n   two\n\nb: >-\n  fol\n  ded\n": `{"a":"one\n two\n","b":"fol ded"}`,
		"a: plain\n  on two lines\n":                   `{"a":"plain on two lines"}`,
		"\"a b\": 1\n'c': 2\n1_0: 3\n":                 `{"a b":1,"c":2,"1_0":3}`,
		"---\na: 1\n...\n":                             `{"a":1}`,
		"a: 1\r\nb: 2\r\n":                             `{"a":1,"b":2}`,
		"\uFEFFa: 1\n":                                 `{"a":1}`,
		"a: &x {b: [1]}\nc: *x\nd: *x\n":               `{"a":{"b":[1]},"c":{"b":[1]},"d":{"b":[1]}}`,
		"a: &x 1\nb: &x 2\nc: *x\n":                    `{"a":1,"b":2,"c":2}`,
	} {
		got, faults := readText(text)
		if len(faults) > 0 || got != want {
			t.Errorf("%q: got %s %v, want %s", text, got, faults, want)
		}
	}
}

func TestYAML_WhatIsNotTakenIsRefusedWithItsPlace(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"tag", "a: !!str 5\n", "yaml 1:4"},
		{"own tag", "a:\n  - !foo bar\n", "yaml 2:5"},
		{"directive", "%YAML 1.2\n---\na: 1\n", "yaml 1:1"},
		{"second document", "a: 1\n---\nb: 2\n", "yaml 2:1"},
		{"empty second document", "a: 1\n---\n", "yaml 2:1"},
		{"merge key", "a: &x {b: 1}\nc:\n  <<: *x\n", "yaml 3:3"},
		{"number as key", "a:\n  1: x\n", "yaml 2:3"},
		{"float as key", "a:\n  1e3: x\n", "yaml 2:3"},
		{"boolean as key", "true: x\n", "yaml 1:1"},
		{"null as key", "~: x\n", "yaml 1:1"},
		{"explicit key", "? a\n: x\n", "yaml 1:1"},
		{"list as key", "[a]: x\n", "syntax 1:4"},
		{"alias as key", "a: &x b\n*x : 1\n", "yaml 2:1"},
		{"unknown alias", "a: *x\n", "yaml 1:4"},
		{"alias inside its own value", "a: &x [*x]\n", "yaml 1:8"},
		{"duplicate key", "a: 1\nb: 2\na: 3\n", "duplicate_key 3:1"},
		{"duplicate key, quoted", "a: {x: 1, \"\\u0078\": 2}\n", "duplicate_key 1:11"},
		{"infinity", "a: .inf\n", "number 1:4"},
		{"negative infinity", "a: -.INF\n", "number 1:4"},
		{"not a number", "a: [.nan]\n", "number 1:5"},
		{"leading zero", "a: 007\n", "number 1:4"},
		{"large exponent", "a: 1e999\n", "number 1:4"},
		{"many digits", "a: " + strings.Repeat("9", 1001) + "\n", "number 1:4"},
		{"lone surrogate", `a: "\udc00"` + "\n", "encoding 1:4"},
		{"tab as indentation", "a:\n\t- b\n", "syntax 2:1"},
		{"open bracket", "a: [1\n", "syntax 1:4"},
		{"empty", "# nothing\n", "syntax 1:1"},
		{"not UTF-8", "a: \xff\n", "encoding 1:4"},
		{"control character", "a: é\x01\n", "encoding 1:5"},
		{"too large", "a: " + strings.Repeat("x", maxYAMLBytes) + "\n", "too_large 1:1"},
		{"too many commas", "a: [" + strings.Repeat("1,", 5001) + "]\n", "too_large 1:10006"},
		{"too many brackets", "a: " + strings.Repeat("[", 65) + "\n", "too_large 1:68"},
		{"too many dashes", strings.Repeat("- ", 65) + "a\n", "too_large 1:129"},
		{"too many tabs", "a: \"" + strings.Repeat("\t", 201) + "\"\n", "too_large 1:205"},
		{"too many nested tags", "a: 1\nb: " + strings.Repeat("!a - ", 64) + "\n", "yaml 2:1"},
		{"not taken for a tag", "a: \"!a - !a - b\"\nwhen: !has(x)\n", "yaml 2:7"},
		{"too deep", deepBlock(70), "too_large 66:67"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, faults := readText(test.text)
			var got []string
			for _, f := range faults {
				got = append(got, fmt.Sprintf("%s %d:%d", f.Code, f.Line, f.Column))
			}
			if diff := cmp.Diff([]string{test.want}, got); diff != "" {
				t.Errorf("%s\n%v", diff, faults)
			}
		})
	}
}

func deepBlock(depth int) string {
	var text strings.Builder
	for i := range depth {
		text.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return text.String()
}

func TestYAML_AliasesCannotMakeMuchOfLittle(t *testing.T) {
	text := "a0: &a0 [xxxxxxxxxx]\n"
	for i := 1; i < 40; i++ {
		text += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	_, faults := readText(text)
	if len(faults) == 0 || faults[0].Code != CodeTooLarge {
		t.Errorf("got %v", faults)
	}
}

func TestYAML_SyntaxOnALineWithAnExpressionSaysQuoteIt(t *testing.T) {
	for _, text := range []string{
		"a: order ${input.id}: failed\n",
		"a: [${input.id}]\n",
		"a: { b: ${input.id} }\n",
		"when: \"a\" == input.b\n",
		"x:\n  - { when: [a: b: c }\n",
	} {
		_, faults := readText(text)
		if len(faults) != 1 || faults[0].Code != CodeSyntax || !strings.Contains(faults[0].Hint, "quote the expression") {
			t.Errorf("%q: got %v", text, faults)
		}
	}
	_, faults := readText("a: [1\n")
	if len(faults) != 1 || faults[0].Hint != "" {
		t.Errorf("a line without an expression: %v", faults)
	}
}

// The parser's time depends on what these texts repeat; with the bounds each
// takes less than half a second, without them some took minutes.
func TestYAML_HostileTextsEndSoon(t *testing.T) {
	for _, part := range []string{
		"&a ", "*a ", "!a ", "? ", ": ", "- ", "a: ", "\"", "%", "{", "]", "\t", " \t", "a\n", "\n ", "- - -\n", "{a: ", "!a - ", "! - ", "<<: ", "...\n", "\"\\u0041", "a: |\n ", "`", "[] ",
	} {
		many := strings.Repeat(part, maxYAMLBytes/2/len(part))
		Parse([]byte(many), YAML)
		Parse([]byte("a: \""+many+"\""), YAML)
	}
}
