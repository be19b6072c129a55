package definition

import (
	"os"
	"path/filepath"
	"testing"
)

// fuzzed checks what must hold of every document: Parse does not panic, and
// what it takes is loaded to the same definition.
func fuzzed(t *testing.T, text []byte, format Format) {
	d, faults := Parse(text, format)
	if (d == nil) != HasErrors(faults) {
		t.Fatalf("definition %v with faults %v", d, faults)
	}
	for _, f := range faults {
		if f.Code == CodeUnclear || f.Line < 1 || f.Column < 1 {
			t.Errorf("fault %+v", f)
		}
	}
	if d == nil {
		return
	}
	loaded, err := Load(d.Canonical)
	if err != nil {
		t.Fatal(err)
	}
	sameDefinition(t, d, loaded)
	again, faults := Parse([]byte(d.Canonical), JSON)
	if again == nil {
		t.Fatalf("the canonical form is refused: %v", faults)
	}
	sameDefinition(t, d, again)
}

func seed(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob("../../examples/features/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "testdata/order.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
}

func FuzzYAML(f *testing.F) {
	seed(f)
	f.Add([]byte(head + "steps:\n  - { id: a, after: [b], compute: \"steps.c.output + steps['b'].attempt\" }\n  - &x { id: b, sleep: \"${input.n}s\" }\n"))
	f.Fuzz(func(t *testing.T, text []byte) { fuzzed(t, text, YAML) })
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"name":"a","version":"1.0.0","steps":[{"id":"s","compute":{"x":1.50,"é":"\u00e9${input.x}"}}]}`))
	f.Add([]byte(`{"name":"a","version":"1.0.0","tasks":{"t":{"version":"1.0.0"}},"steps":[{"parallel":[{"id":"a","task":"t","with":{"x":"${steps.b.output}"}},{"id":"b","sleep":"1h"}]}]}`))
	f.Add([]byte(`{"name":"a","version":"1.0.0","steps":[{"switch":[{"when":"steps.x.status == ''","steps":[{"id":"s","fail":{"code":"X","message":"m"}}]},{"otherwise":true,"steps":[{"id":"x","after":[],"sleep":"1s"}]}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) { fuzzed(t, text, JSON) })
}
