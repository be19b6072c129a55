package exactjson

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValue_KindIsSeenInTheFirstByte(t *testing.T) {
	want := map[Value]string{
		"": "nothing", "null": "null", "true": "boolean", "false": "boolean", "-1": "number", "0": "number",
		`""`: "string", "[]": "array", "{}": "object",
	}
	got := map[Value]string{}
	for v := range want {
		got[v] = v.Kind().String()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestValue_WalksWithoutDecodingTheRest(t *testing.T) {
	v := Value(`{"a":[1,{"x":"]}\""},[]],"k\u0022":2.50,"":{},"s":"\ud83d\ude00\n"}`)
	var members []Member
	for key, value := range v.Members() {
		members = append(members, Member{key, value})
	}
	want := []Member{{"a", `[1,{"x":"]}\""},[]]`}, {`k"`, "2.50"}, {"", "{}"}, {"s", `"\ud83d\ude00\n"`}}
	if diff := cmp.Diff(want, members); diff != "" {
		t.Error(diff)
	}
	var elements []Value
	for element := range v.Get("a").Elements() {
		elements = append(elements, element)
	}
	if diff := cmp.Diff([]Value{"1", `{"x":"]}\""}`, "[]"}, elements); diff != "" {
		t.Error(diff)
	}
	if got := []int{v.Len(), v.Get("a").Len(), v.Get("").Len(), Value("[]").Len(), Value("7").Len()}; !cmp.Equal(got, []int{4, 3, 0, 0, 0}) {
		t.Errorf("lengths %v", got)
	}
	if got := v.Get(`k"`); got != "2.50" {
		t.Errorf("got %q", got)
	}
	if got := v.Get("b"); !got.Absent() {
		t.Errorf("got %q", got)
	}
	if text, ok := v.Get("s").Text(); text != "😀\n" || !ok {
		t.Errorf("got %q, %t", text, ok)
	}
	if _, ok := Value("7").Text(); ok {
		t.Error("a number has no text")
	}
}

func TestValue_DepthCountsContainers(t *testing.T) {
	for v, want := range map[Value]int{"": 0, "1": 0, `"[[["`: 0, "[]": 1, `{"a":[1,{"b":"}"}],"c":[]}`: 3} {
		if got := v.Depth(); got != want {
			t.Errorf("%s: got %d, want %d", v, got, want)
		}
	}
}

func TestValue_WalkersStopWhenToldTo(t *testing.T) {
	for range Value(`{"a":1,"b":2}`).Members() {
		break
	}
	for range Value(`[1,2]`).Elements() {
		break
	}
}

func TestValue_BuildersWriteWhatParseTakes(t *testing.T) {
	for got, want := range map[Value]Value{
		FromString("a\"\\/\b\f\n\r\t\x00\x1f\x7f<&>é\u2028😀"): "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f<&>é\u2028😀\"",
		FromString("a\xffb\xed\xa0\x80"):                      `"a�b���"`,
		FromInt(math.MinInt64):                                "-9223372036854775808",
		Array(nil):                                            "[]",
		Array([]Value{"1", "", `"x"`}):                        `[1,null,"x"]`,
		Object(nil):                                           "{}",
		Object([]Member{{"z", "1"}, {"gone", ""}, {"a\n", "{}"}}): `{"z":1,"a\n":{}}`,
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if _, err := Parse([]byte(got)); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	}
}

func TestValue_PassesThroughEncodingJSON(t *testing.T) {
	var body struct{ A, B, C Value }
	if err := json.Unmarshal([]byte(`{"A": {"z": 18446744073709551615, "a": 1.50}, "B": null}`), &body); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"A":{"z":18446744073709551615,"a":1.50},"B":null,"C":null}`, string(text)); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`{"A": {"a": 1, "a": 2}}`), &body); err == nil {
		t.Error("a duplicate key was taken")
	}
}

func TestValue_NumbersAreReadByValue(t *testing.T) {
	type reading struct {
		Int   int64
		Fits  bool
		Whole bool
		Float float64
	}
	want := map[Value]reading{
		"10": {10, true, true, 10}, "10.0": {10, true, true, 10}, "1e1": {10, true, true, 10}, "1000E-2": {10, true, true, 10},
		"-0": {0, true, true, math.Copysign(0, -1)}, "0.000": {0, true, true, 0}, "0e400": {0, true, true, 0},
		"9223372036854775807":    {math.MaxInt64, true, true, 1 << 63},
		"9223372036854775808":    {0, false, true, 1 << 63},
		"-9223372036854775808.0": {math.MinInt64, true, true, -1 << 63},
		"18446744073709551615":   {0, false, true, 1 << 64},
		"1e400":                  {0, false, true, math.Inf(1)}, "1e-400": {0, false, false, 0},
		"2.5": {0, false, false, 2.5}, "25e-1": {0, false, false, 2.5},
		"12345678901234567890.5": {0, false, false, 12345678901234567890.5},
	}
	got := map[Value]reading{}
	for v := range want {
		n, fits := v.Int64()
		if !fits {
			n = 0
		}
		f, _ := v.Float64()
		got[v] = reading{n, fits, v.Whole(), f}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEqual_ComparesWhatIsSaid(t *testing.T) {
	groups := [][]Value{
		{"10", "10.0", "1e1", "1E+1", "100e-1", "0.10e2"},
		{"0", "-0", "0.0", "-0e7", "0E-400"},
		{"-10"},
		{"18446744073709551615", "18446744073709551615.000"},
		{"18446744073709551616", "18446744073709551616e0"},
		{"12345678901234567890.5"}, {"12345678901234567890.4"},
		{"1e400"}, {"1e399"}, {"1e-400"},
		{`"a/b😀"`, `"a\/b\ud83d\ude00"`, `"\u0061/b😀"`},
		{`"10"`},
		{`[1,2]`, `[1.0,2]`}, {`[2,1]`}, {`[1]`}, {`[1,2,3]`},
		{`{"a":1,"b":[2]}`, `{"b":[2.0],"\u0061":1}`}, {`{"a":1}`}, {`{"a":1,"b":[2],"c":null}`}, {`{"a":1,"c":[2]}`},
		{"null"}, {""}, {"true"}, {"false"}, {"{}"}, {"[]"}, {`""`},
	}
	for i, left := range groups {
		for j, right := range groups {
			for _, a := range left {
				for _, b := range right {
					if Equal(a, b) != (i == j) {
						t.Errorf("Equal(%s, %s) is %t", a, b, i != j)
					}
					if (Hash(a) == Hash(b)) != (i == j) {
						t.Errorf("Hash(%s) and Hash(%s): equal is %t", a, b, i != j)
					}
				}
			}
		}
	}
}

func TestCanonical_IsRFC8785(t *testing.T) {
	for v, want := range map[Value]Value{
		// The sample objects of RFC 8785, sections 3.2.2 and 3.2.3. Its first
		// number has more digits than a double and keeps them here.
		`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`://
		`{"literals":[null,true,false],"numbers":[333333333.33333329,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`://
		"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}",
		`{"aa":1,"a":2,"":3}`: `{"":3,"a":2,"aa":1}`,
	} {
		if diff := cmp.Diff(want, Canonical(v)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestCanonical_NumbersOfECMAScript(t *testing.T) {
	// Appendix B of RFC 8785: bit patterns and their text.
	for bits, want := range map[uint64]Value{
		0x0000000000000000: "0", 0x8000000000000000: "0", 0x0000000000000001: "5e-324", 0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308", 0x4340000000000000: "9007199254740992",
		0x4430000000000000: "295147905179352830000", 0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23", 0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000", 0x444b1ae4d6e2ef4f: "999999999999999900000", 0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7", 0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332", 0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333", 0x41b3de4355555556: "333333333.3333334",
		0xbecbf647612f3696: "-0.0000033333333333333333", 0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		got, ok := FromFloat(math.Float64frombits(bits))
		if !ok || got != want {
			t.Errorf("%016x: got %s, want %s", bits, got, want)
		}
		if again := Canonical(got); again != want {
			t.Errorf("%s became %s", got, again)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, ok := FromFloat(f); ok {
			t.Errorf("%v has no JSON", f)
		}
	}
}

func TestCanonical_NumberThatIsNoDoubleKeepsItsText(t *testing.T) {
	for v, want := range map[Value]Value{
		"10.0": "10", "1e3": "1000", "0.10": "0.1", "-0": "0", "1E400": "1E400", "1e-400": "1e-400",
		"616581622363398142": "616581622363398142", "9223372036854775807": "9223372036854775807",
		"18446744073709551615": "18446744073709551615", "18446744073709551616": "18446744073709551616",
		"12345678901234567890.5": "12345678901234567890.5", "0.1000000000000000055": "0.1000000000000000055",
	} {
		if got := Canonical(v); got != want {
			t.Errorf("%s: got %s, want %s", v, got, want)
		}
	}
}
