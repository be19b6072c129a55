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
		"x:\n  - { when: [a] == b }\n",
	} {
		_, faults := readText(text)
		if len(faults) != 1 || faults[0].Code != CodeSyntax || !strings.Contains(faults[0].Hint, "quote the expression") {
			t.Errorf("%q: got %v", text, faults)
		}
	}
}

func TestYAML_SyntaxFaultsSayWhatTheirAuthorDid(t *testing.T) {
	const quoteValue, quoteExpression = `quote the value: put the whole value into "…"`, `quote the expression: put the whole value into "…"`
	const noTabs = "YAML takes no tabs; indent with spaces"
	for text, want := range map[string]string{
		// Indentation.
		"a:\n\t- b: 1\n":                   "2:1: line 2 is indented with a tab (" + noTabs + ")",
		"a:\n  - b: 1\n  \tsleep: 1s\n":    "3:3: line 3 is indented with a tab (" + noTabs + ")",
		"a: |\n\tb\n":                      "2:1: line 2 is indented with a tab (" + noTabs + ")",
		"a:\n  - b: 1\n   sleep: 1s\n":     "3:4: line 3 is indented by 3, its neighbours by 4 (indent it by 4 like line 2)",
		"a:\n  - b: 1\n     sleep: 1s\n":   "3:6: line 3 is indented by 5 and line 2, which has a value already, by 4 (indent it by 4 like line 2)",
		"a:\n  - b: 1\n - b: 2\n":          "3:2: line 3 is indented by 1, its neighbours by 2 (indent it by 2 like line 2)",
		"a:\n  - b: 1\n- b: 2\n":           "3:1: line 3 is indented by 0, its neighbours by 2 (indent it by 2 like line 2)",
		" a: 1\nb: 2\n c: 3\n":             "2:1: line 2 is indented by 0, its neighbours by 1 (indent it by 1 like line 1)",
		"a:\n  b: {}\n  # c\n\n d: 1\n":    "5:2: line 5 is indented by 1, its neighbours by 2 (indent it by 2 like line 2)",
		"a:\n  b:\n      c: 1\n    d: 2\n": "4:5: line 4 is indented by 4, its neighbours by 6 (indent it by 6 like line 3)",
		"a: |\n    b\n  c && d\ne: 1\n":    "3:3: line 3 is indented by 2, the text that it belongs to by 4 (indent the lines of a text alike)",
		"a:\n  -b: 1\n    c: 2\n":          "2:3: a - without a space is no entry of a list (put a space behind the -)",
		"a: 1\nsleep 1s\n":                 `2:1: expected a key with its value, got "sleep 1s" (write key: value)`,
		"a: 1\nsleep:1s\n":                 `2:1: expected a key with its value, got "sleep:1s" (put a space behind the :)`,

		// What needs quotes.
		"description: a: b\n":            `1:14: this value has a ": " in it, as only a key has (` + quoteValue + ")",
		"a: order ${input.id}: failed\n": `1:4: this value has a ": " in it, as only a key has (` + quoteExpression + ")",
		"when: a ?\n  b + 1 : c\n":       `1:7: this value has a ": " in it, in line 2, as only a key has (` + quoteExpression + ")",
		"when: \"a\" == input.b\n":       `1:11: the value goes on behind its closing " (quote the expression: put the whole value into '…')`,
		"when: a == \"b: c\" || 'd'\n":   `1:7: this value has a ": " in it, as only a key has (quote the expression: put the whole value into "…", with \" for each " in it)`,
		"a: @b\n":                        "1:4: a value cannot begin with @ (" + quoteValue + ")",
		"when: > 5\n":                    "1:7: a value cannot begin with > (" + quoteExpression + ")",
		"a: { b: ${input.id} }\n":        "1:10: expected ',' or '}' (" + quoteExpression + ")",
		"a: { b: [c] d }\n":              "1:13: expected ',' or '}' (" + quoteValue + ")",
		"a: { b: order #5 }\nc: 1\n":     "1:15: from this # on the line is a comment, and with it the } (quote the value, if the # belongs to it)",

		// Quotes.
		"a: \"abc\nb: 1\n":       `1:4: the text that begins here with " has no end (close it with another ")`,
		"a: 'abc\n":              `1:4: the text that begins here with ' has no end (close it with another ')`,
		"a: \"abc\nb: \"def\"\n": `1:4: the text that begins here with " goes on up to line 2 (close it where it ends, with another ")`,
		"a: 'it's'\n":            `1:8: the value goes on behind its closing ' (a ' inside of the text is written ''; or put the whole value into "…")`,
		"a: \"b\" c\n":           `1:8: the value goes on behind its closing " (a " inside of the text is written \"; or put the whole value into '…')`,
		"a: { b: \"c\" d: 1 }\n": "1:13: expected a comma before the next key",
		"a: \"\\d\"\n":           `1:6: \d is no escape (write \\d, or put the text into '…', where a \ is a \)`,

		// Brackets.
		"a: [1\n":                    "1:4: this [ has no ] (close it with ])",
		"a: { b: [ 1 ]\nwhen: c\n":   "1:4: this { has no } (close it with })",
		"a: { b: [1 }\n":             "1:9: this [ has no ] (close it with ])",
		"a: {{ b: 1 }}\n":            "1:5: expected a key, got {",
		"a: { b: 1 } }\n":            "1:13: no bracket is open for this } (remove it)",
		"a: 1\nb: 2 }\nc: [ 1 ] ]\n": "3:10: no bracket is open for this ] (remove it)",
	} {
		_, faults := readText(text)
		if len(faults) != 1 || faults[0].Code != CodeSyntax {
			t.Errorf("%q: got %v", text, faults)
			continue
		}
		if diff := cmp.Diff(want, strings.Replace(faults[0].Error(), "this is no YAML: ", "", 1)); diff != "" {
			t.Errorf("%q:\n%s", text, diff)
		}
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
