package definition

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/exactjson"
)

func orderExample(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/order.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestParse_TheCompleteExampleHasNoFaults(t *testing.T) {
	d, faults := Parse(orderExample(t), YAML)
	if len(faults) > 0 {
		t.Fatalf("faults: %v", faults)
	}
	want := []string{
		"reserve<-", "approve<-reserve", "rejected<-approve", "charge<-rejected", "cool_off<-rejected",
		"told<-charge,cool_off", "ship<-charge,cool_off", "invoice<-told,ship", "summary<-invoice",
	}
	if diff := cmp.Diff(want, predecessors(d.Steps)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"send-invoice@1.0.0"}, d.Children); diff != "" {
		t.Error(diff)
	}
	if got := d.StepByID("charge").Call.Task.Queue(); got != "payment.charge@2.1.0/python" {
		t.Errorf("queue is %s", got)
	}
}

func TestParse_YAMLAndJSONHaveOneHash(t *testing.T) {
	fromYAML, faults := Parse(orderExample(t), YAML)
	if fromYAML == nil {
		t.Fatal(faults)
	}
	spaced := strings.ReplaceAll(string(fromYAML.Canonical), `,"`, ",\n  \"")
	fromJSON, faults := Parse([]byte(spaced), JSON)
	if fromJSON == nil {
		t.Fatal(faults)
	}
	if fromJSON.Hash != fromYAML.Hash || fromJSON.Canonical != fromYAML.Canonical {
		t.Errorf("the hashes are %s and %s", fromYAML.Hash, fromJSON.Hash)
	}
	if len(fromYAML.Hash) != len("sha256:")+64 {
		t.Errorf("hash is %s", fromYAML.Hash)
	}
}

func TestParse_TheHashIsOfWhatWasWritten(t *testing.T) {
	const one = `{"name":"a","version":"1.0.0","steps":[{"id":"s","compute":%s}]}`
	hash := func(value string) string {
		d, faults := Parse([]byte(fmt.Sprintf(one, value)), JSON)
		if d == nil {
			t.Fatal(faults)
		}
		return d.Hash
	}
	if hash(`[9007199254740993]`) == hash(`[9007199254740992]`) {
		t.Error("two numbers that no double tells apart have one hash")
	}
	if hash(`[1.0]`) != hash(`[1]`) {
		t.Error("equal numbers have two hashes")
	}
	if hash(`{"a":1,"b":2}`) != hash(`{"b":2,"a":1}`) {
		t.Error("the order of keys changes the hash")
	}
}

func TestLoad_IsWhatParseGave(t *testing.T) {
	parsed, faults := Parse(orderExample(t), YAML)
	if parsed == nil {
		t.Fatal(faults)
	}
	loaded, err := Load(parsed.Canonical)
	if err != nil {
		t.Fatal(err)
	}
	sameDefinition(t, parsed, loaded)
}

// sameDefinition compares what decisions depend on.
func sameDefinition(t *testing.T, a, b *Definition) {
	t.Helper()
	if a.Hash != b.Hash || a.Canonical != b.Canonical {
		t.Errorf("hashes %s and %s", a.Hash, b.Hash)
	}
	if diff := cmp.Diff(a.Graph(), b.Graph()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(predecessors(a.Steps), predecessors(b.Steps)); diff != "" {
		t.Error(diff)
	}
}

func TestLoad_DamagedFormsAreErrors(t *testing.T) {
	for _, text := range []exactjson.Value{"", "null", "[]", `{}`, `{"name":"a"}`, `{"name":"a","version":"1.0.0","steps":[]}`,
		`{"name":"a","version":"1.0.0","steps":[{}]}`, `{"name":"a","version":"1.0.0","steps":[{"id":"a","task":"x"}]}`, `{"name":1,"version":2,"steps":3}`} {
		if d, err := Load(text); err == nil {
			t.Errorf("%s was loaded: %v", text, d)
		}
	}
}

// twentySteps is a definition of the usual size.
func twentySteps() string {
	var text strings.Builder
	text.WriteString("name: twenty\nversion: \"1.0.0\"\ntasks: { t.do: { version: \"1.0.0\", input: { type: object }, output: { type: object } } }\nsteps:\n")
	for i := range 20 {
		fmt.Fprintf(&text, "  - id: s%d\n    task: t.do\n    with: { x: \"${input.x}\", n: %d", i, i)
		if i > 0 {
			fmt.Fprintf(&text, ", before: \"${steps.s%d.output.?y.orValue(0)}\"", i-1)
		}
		text.WriteString(" }\n")
		if i%5 == 0 {
			text.WriteString("    when: input.x > 5 || size(input.list) > 3\n")
		}
	}
	text.WriteString("output: \"${steps.s19.output}\"\n")
	return text.String()
}

// A cold call loads its definition: this bounds what that costs.
func BenchmarkLoad_TwentySteps(b *testing.B) {
	d, faults := Parse([]byte(twentySteps()), YAML)
	if d == nil {
		b.Fatal(faults)
	}
	for b.Loop() {
		if _, err := Load(d.Canonical); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse_TwentySteps(b *testing.B) {
	text := []byte(twentySteps())
	for b.Loop() {
		if d, faults := Parse(text, YAML); d == nil {
			b.Fatal(faults)
		}
	}
}
