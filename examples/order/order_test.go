package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/definition"
)

func TestDefinition_HasNoFaults(t *testing.T) {
	source, err := os.ReadFile("order.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, faults := definition.Parse(source, definition.YAML)
	for _, f := range faults { // warnings too: an example is read
		t.Errorf("line %d: %s: %s", f.Line, f.Code, f.Message)
	}
}

func TestLedger_RemembersAcrossProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book.jsonl")
	first, err := openLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.once("x/reserve[0]", entry{Action: "reserve", Order: "x", What: "teapot"}); err != nil {
		t.Fatal(err)
	}
	first.close()

	second, err := openLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	defer second.close()
	again, err := second.once("x/reserve[0]", entry{Action: "reserve", Order: "x", What: "teapot"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := second.once("x/reserve[1]", entry{Action: "reserve", Order: "x", What: "kettle"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"reserve-1", "reserve-2"}, []string{again, other}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
