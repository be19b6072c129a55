package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// conditions is the source of each step's conditions.
func conditions(d *Definition) map[string][]string {
	sources := map[string][]string{}
	for _, s := range d.Steps {
		for _, w := range s.When {
			sources[s.ID] = append(sources[s.ID], w.Source())
		}
	}
	return sources
}

func TestSwitch_EachBranchHasItsConditionAndNotThoseBefore(t *testing.T) {
	d := mustParse(t, `steps:
  - when: input.n > 0
    switch:
      - when: "${ input.n > 1 }"
        steps: [ { id: a, sleep: 1s }, { id: b, when: input.n != 5, sleep: 1s } ]
      - when: input.n > 2 || input.n < 0 // far
        steps: [ { id: c, sleep: 1s } ]
      - when: false
        steps: [ { id: d, sleep: 1s } ]
      - otherwise: true
        steps: [ { parallel: [ { id: e, sleep: 1s } ] } ]
`)
	want := map[string][]string{
		"a": {"input.n > 0", "(input.n > 1)"},
		"b": {"input.n > 0", "(input.n > 1)", "input.n != 5"},
		"c": {"input.n > 0", "!(input.n > 1) && (input.n > 2 || input.n < 0 // far\n)"},
		"d": {"input.n > 0", "!(input.n > 1) && !(input.n > 2 || input.n < 0 // far\n) && (false)"},
		"e": {"input.n > 0", "!(input.n > 1) && !(input.n > 2 || input.n < 0 // far\n) && !(false)"},
	}
	if diff := cmp.Diff(want, conditions(d)); diff != "" {
		t.Error(diff)
	}
}

func TestGroups_ConditionsAreAndedOutermostFirst(t *testing.T) {
	d := mustParse(t, `steps:
  - when: input.n > 0
    parallel:
      - { id: a, sleep: 1s }
      - when: input.n > 1
        description: the inner ones
        steps:
          - { id: b, when: true, sleep: 1s }
  - { id: c, sleep: 1s }
`)
	want := map[string][]string{"a": {"input.n > 0"}, "b": {"input.n > 0", "input.n > 1", "true"}}
	if diff := cmp.Diff(want, conditions(d)); diff != "" {
		t.Error(diff)
	}
}
