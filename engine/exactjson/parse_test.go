package exactjson

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse_TokensStayAsWritten(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`null`, `null`},
		{" \t\r\n{ \"b\" : [ 1 , 2.50 ] , \"a\" : { } }\n", `{"b":[1,2.50],"a":{}}`},
		{`{"z":1,"a":2}`, `{"z":1,"a":2}`},
		{`616581622363398142`, `616581622363398142`},
		{`[9223372036854775807,18446744073709551615,12345678901234567890.5]`, `[9223372036854775807,18446744073709551615,12345678901234567890.5]`},
		{`[-0, 1e400, 1E+2, 0.10]`, `[-0,1e400,1E+2,0.10]`},
		{`"\u0000 \ud83d\ude00 \/ \\ \" \n  two  spaces"`, `"\u0000 \ud83d\ude00 \/ \\ \" \n  two  spaces"`},
		{`"é😀"`, `"é😀"`},
		{`[]`, `[]`},
		{`[[], {}, "", true, false]`, `[[],{},"",true,false]`},
	} {
		got, err := Parse([]byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if diff := cmp.Diff(Value(test.want), got); diff != "" {
			t.Errorf("%s:\n%s", test.text, diff)
		}
	}
}

func TestParse_RefusesAndNamesThePlace(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, test := range []struct {
		name, text, path string
		offset           int
		message          string
	}{
		{"nothing", ``, "", 0, "got the end of the text"},
		{"only white space", `  `, "", 2, "got the end of the text"},
		{"two values", `1 2`, "", 2, "expected the end after one JSON value, got '2'"},
		{"byte order mark", "\ufeff1", "", 0, `expected a JSON value, got '\ufeff'`},
		{"word", `{"a":nul}`, "/a", 5, "expected the word null"},
		{"single quotes", `{'a':1}`, "", 1, "expected a key in double quotes"},
		{"trailing comma in array", `[1,]`, "/1", 3, "got ']'"},
		{"trailing comma in object", `{"a":1,}`, "", 7, "expected a key in double quotes, got '}'"},
		{"missing colon", `{"a" 1}`, "/a", 5, "expected a colon"},
		{"missing comma", `{"a":[1 2]}`, "/a", 8, "expected a comma or ]"},
		{"open object", `{"a":1`, "", 6, "expected a comma or }"},
		{"open string", `["abc`, "/0", 1, "no closing quote"},
		{"duplicate key", `{"x":{"a":1,"b":2,"a":3}}`, "/x/a", 18, "twice"},
		{"duplicate key by escape", `{"a":1,"\u0061":3}`, "/a", 7, "twice"},
		{"key with pointer characters", `{"a/b~":[tru]}`, "/a~1b~0/0", 9, "expected the word true"},
		{"lone high surrogate", `{"a":["\ud800"]}`, "/a/0", 7, `\ud800 is half of a surrogate pair`},
		{"lone low surrogate", `"\udc00"`, "", 1, `\udc00 is half`},
		{"two high surrogates", `"\ud800\ud800"`, "", 1, "is half"},
		{"high surrogate before text", `"\ud800 and more text"`, "", 1, "is half"},
		{"unknown escape", `"\x41"`, "", 1, "expected one of"},
		{"short escape", `"\u12"`, "", 1, "four hexadecimal digits"},
		{"cut off escape", `"\`, "", 1, "cut off"},
		{"control character", "\"a\nb\"", "", 2, "control character (0x0a)"},
		{"invalid UTF-8", "\"a\xff\"", "", 2, "0xff, which is not UTF-8"},
		{"invalid UTF-8 outside", "[\xff]", "/0", 1, "0xff, which is not UTF-8"},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\"", "", 1, "not UTF-8"},
		{"leading zero", `[01]`, "/0", 1, "may not start with 0"},
		{"plus", `+1`, "", 0, "expected a JSON value, got '+'"},
		{"no digit", `-`, "", 1, "expected a digit"},
		{"no fraction", `1.`, "", 2, "after the decimal point"},
		{"no exponent", `1e+`, "", 3, "in the exponent"},
		{"NaN", `NaN`, "", 0, "expected a JSON value"},
		{"exponent", `{"n":1e401}`, "/n", 5, "exponent of a number may be -400 to 400"},
		{"small exponent", `1e-401`, "", 0, "exponent"},
		{"long exponent", `1e99999999999999999999`, "", 0, "exponent"},
		{"digits", strings.Repeat("7", 1001), "", 0, "may have 1000 digits, this one has 1001"},
		{"depth", nest(257), strings.Repeat("/0", 256), 256, "may nest 256 deep"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(test.text))
			var fault *SyntaxError
			if !errors.As(err, &fault) {
				t.Fatalf("got %v, want a *SyntaxError", err)
			}
			got := []any{fault.Path, fault.Offset}
			if diff := cmp.Diff([]any{test.path, test.offset}, got); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(fault.Message, test.message) {
				t.Errorf("message %q lacks %q", fault.Message, test.message)
			}
		})
	}
}

func TestParse_TakesWhatIsAtItsLimits(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", 256) + strings.Repeat("]", 256),
		strings.Repeat("7", 1000),
		"0." + strings.Repeat("7", 999),
		"1e400", "1e-400", "1e0000400",
	} {
		got, err := Parse([]byte(text))
		if err != nil || string(got) != text {
			t.Errorf("%.20s: %v", text, err)
		}
	}
	if _, err := ParseDepth([]byte(`[[[]]]`), 2); err == nil {
		t.Error("three levels were taken where two are allowed")
	}
}

func TestParse_FindsDuplicatesInLargeObjects(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{`)
	for i := range 1000 {
		fmt.Fprintf(&text, `"k%d":{"k%d":0},`, i, i)
	}
	if _, err := Parse([]byte(text.String() + `"last":0}`)); err != nil {
		t.Error(err)
	}
	if _, err := Parse([]byte(text.String() + `"k3":0}`)); err == nil || !strings.Contains(err.Error(), "at /k3,") {
		t.Errorf("got %v", err)
	}
}

func TestSyntaxError_NeverRepeatsMuchOfTheText(t *testing.T) {
	key := strings.Repeat("é", 100000)
	_, err := Parse([]byte(`{"` + key + `":[nul]}`))
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("the message has %d bytes", len(err.Error()))
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		` {"a": [1, 2.50, -0, 1e400], "b": {"c": "\u0000\ud83d\ude00"}} `,
		`{"a":1,"\u0061":2}`, `"\ud800"`, `[[[[]]]]`, `12345678901234567890.5`, `{"":{"":null}}`, `1e-400`,
		`{"😀":1,"ﬀ":2,"z":[true,false]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := Parse(text)
		if err != nil {
			if len(err.Error()) > 40000 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			return
		}
		again, err := Parse([]byte(v))
		if err != nil || again != v {
			t.Errorf("parsed again: %q, %v, want %q", again, err, v)
		}
		sorted := Canonical(v)
		if !Equal(v, v) || !Equal(v, sorted) || !Equal(sorted, v) || Hash(v) != Hash(sorted) {
			t.Errorf("%q and its canonical form %q differ", v, sorted)
		}
		if twice := Canonical(sorted); twice != sorted {
			t.Errorf("canonical form of %q became %q", sorted, twice)
		}
		if _, err := Parse([]byte(sorted)); err != nil {
			t.Errorf("canonical form %q: %v", sorted, err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	element := `{"order_id": "o-12345", "items": [{"sku": "a", "count": 3}], "total": 1999.50, "note": "plain text without anything special"}`
	text := []byte("[" + strings.Repeat(element+", ", 99) + element + "]")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
