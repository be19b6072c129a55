package definition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// predecessors is the order of a list in the form a<-b,c.
func predecessors(steps []*Step) []string {
	var list []string
	for _, s := range steps {
		var names []string
		for _, p := range s.Predecessors {
			names = append(names, steps[p].ID)
		}
		list = append(list, s.ID+"<-"+strings.Join(names, ","))
	}
	return list
}

func TestOrder_PredecessorsFollowTheRules(t *testing.T) {
	const nap = "sleep: 1s }"
	tests := []struct {
		name string
		text string
		want string
	}{
		{"each waits for the one before", `
  - { id: a, ` + nap + `
  - { id: b, ` + nap + `
  - { id: c, ` + nap, "a<- b<-a c<-b"},
		{"what follows a group waits for all members", `
  - { id: a, ` + nap + `
  - parallel: [ { id: b, ` + nap + `, { id: c, ` + nap + ` ]
  - { id: d, ` + nap, "a<- b<-a c<-a d<-b,c"},
		{"a sequence in a group has one end", `
  - parallel:
      - steps: [ { id: a, ` + nap + `, { id: b, ` + nap + ` ]
      - { id: c, ` + nap + `
  - { id: d, ` + nap, "a<- b<-a c<- d<-b,c"},
		{"groups nest", `
  - { id: z, ` + nap + `
  - parallel:
      - parallel: [ { id: a, ` + nap + `, { id: b, ` + nap + ` ]
      - steps:
          - parallel: [ { id: c, ` + nap + `, { id: d, ` + nap + ` ]
          - { id: e, ` + nap + `
  - { id: f, ` + nap, "z<- a<-z b<-z c<-z d<-z e<-c,d f<-a,b,e"},
		{"the branches of a switch start together", `
  - { id: a, ` + nap + `
  - switch:
      - { when: input.n > 1, steps: [ { id: b, ` + nap + `, { id: c, ` + nap + ` ] }
      - { otherwise: true, steps: [ { id: d, ` + nap + ` ] }
  - { id: e, ` + nap, "a<- b<-a c<-b d<-a e<-c,d"},
		{"after replaces what is before", `
  - { id: a, ` + nap + `
  - { id: b, ` + nap + `
  - { id: c, after: [a], ` + nap, "a<- b<-a c<-a"},
		{"an after step that nobody waited for is an end", `
  - { id: a, ` + nap + `
  - { id: b, after: [], ` + nap + `
  - { id: c, ` + nap + `
  - { id: d, ` + nap, "a<- b<- c<-a,b d<-c"},
		{"an after step that was waited for is none", `
  - { id: a, ` + nap + `
  - { id: b, after: [], ` + nap + `
  - { id: c, after: [b], ` + nap + `
  - { id: d, ` + nap, "a<- b<- c<-b d<-a,c"},
		{"after may name a later step", `
  - { id: a, after: [b], ` + nap + `
  - { id: b, after: [], ` + nap + `
  - { id: c, ` + nap, "a<-b b<- c<-a,b"},
		{"after in a group leaves what was before the group an end", `
  - { id: a, ` + nap + `
  - parallel: [ { id: b, after: [], ` + nap + `, { id: c, after: [], ` + nap + ` ]
  - { id: d, ` + nap, "a<- b<- c<- d<-a,b,c"},
		{"a member that waits makes what was before the group no end", `
  - { id: a, ` + nap + `
  - parallel: [ { id: b, after: [], ` + nap + `, { id: c, ` + nap + ` ]
  - { id: d, ` + nap, "a<- b<- c<-a d<-b,c"},
		{"a step in another list does not count as waiting", `
  - parallel:
      - { id: g, after: [a], ` + nap + `
      - steps: [ { id: a, ` + nap + `, { id: x, after: [], ` + nap + `, { id: y, ` + nap + ` ]
  - { id: z, ` + nap, "g<-a a<- x<- y<-a,x z<-g,y"},
		{"an expression that names a step waits for it", `
  - parallel:
      - { id: a, compute: 1 }
      - { id: b, compute: "steps.a.output + 1" }
      - { id: c, compute: 1, when: "steps.b.output > 1" }
      - { id: d, task: do.it, with: { x: ["${steps.c.output}"] } }
      - { id: e, sleep: "${steps.d.output.wait}" }
      - { id: f, until: "${steps.e.status}", when: "true" }
      - { id: g, for: "steps.d.output.list", compute: item }
      - { id: h, when: "size(steps.g.output) > 9", fail: { code: X, message: "${steps.a.output}" } }
  - { id: z, ` + nap, "a<- b<-a c<-b d<-c e<-d f<-e g<-d h<-a,g z<-a,b,c,d,e,f,g,h"},
		{"after: [] never drops what an expression names", `
  - { id: a, compute: 1 }
  - { id: b, ` + nap + `
  - { id: c, after: [], compute: "steps['a'].output" }`, "a<- b<-a c<-a"},
		{"a group's condition makes its members wait", `
  - { id: a, after: [], compute: 1 }
  - { id: b, after: [], ` + nap + `
  - { when: "steps.a.output > 1", steps: [ { id: c, after: [b], ` + nap + ` ] }`, "a<- b<- c<-a,b"},
		{"catch and compensate make nobody wait", `
  - { id: a, task: do.it, catch: [ { output: "${steps.b.status}" } ], compensate: { task: do.it, with: { x: "${steps.b.status}" } } }
  - { id: b, ` + nap, "a<- b<-a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := mustParse(t, "steps:"+test.text+"\n")
			if diff := cmp.Diff(strings.Split(test.want, " "), predecessors(d.Steps)); diff != "" {
				t.Error(diff)
			}
			for _, s := range d.Steps {
				for _, p := range s.Predecessors {
					if !contains(d.Steps[p].Dependents, s.Index) {
						t.Errorf("%s is no dependent of %s", s.ID, d.Steps[p].ID)
					}
				}
			}
		})
	}
}

func contains(list []int, want int) bool {
	for _, v := range list {
		if v == want {
			return true
		}
	}
	return false
}

func TestOrder_CyclesAreRefusedWithTheirPath(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"by after", `
  - { id: a, after: [b], sleep: 1s }
  - { id: b, sleep: 1s }`, "these steps wait for each other: a -> b -> a"},
		{"by expressions", `
  - { id: a, after: [], compute: "steps.c.output" }
  - { id: b, after: [a], sleep: 1s }
  - { id: c, sleep: 1s }`, "these steps wait for each other: a -> b -> c -> a"},
		{"by itself", `
  - { id: a, compute: "steps.a.output" }`, "step a waits for itself"},
		{"by the condition of its group", `
  - { when: "steps.a.output == 1", steps: [ { id: a, compute: 1 } ] }`, "step a waits for itself"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, faults := Parse([]byte(head+"steps:"+test.text+"\n"), YAML)
			var got []string
			for _, f := range faults {
				if f.Severity == SeverityError {
					got = append(got, f.Code+": "+f.Message)
				}
			}
			if diff := cmp.Diff([]string{"cycle: " + test.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOrder_HandlersAreListsOfTheirOwn(t *testing.T) {
	d := mustParse(t, `steps:
  - { id: a, sleep: 1s }
on_failure:
  - { id: a, task: do.it, when: "failure.code == 'X'" }
  - { id: b, task: do.it, with: { x: "${steps.a.status}", y: "${steps.a.?output}" } }
on_timeout:
  - { id: c, task: do.it, with: { x: "${steps.a.status}" } }
`)
	if diff := cmp.Diff([]string{"a<-", "b<-a"}, predecessors(d.Handlers["failure"])); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"c<-"}, predecessors(d.Handlers["timeout"])); diff != "" {
		t.Error(diff)
	}
	if s := d.StepByID("b"); s != nil {
		t.Errorf("StepByID gave a step of a handler: %v", s)
	}
}

func TestOrder_WideGroupsBehindEachOtherAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"name":"wide","version":"1.0.0","steps":[`)
	for group := range 2 {
		if group > 0 {
			text.WriteString(",")
		}
		text.WriteString(`{"parallel":[`)
		for i := range 1500 {
			if i > 0 {
				text.WriteString(",")
			}
			fmt.Fprintf(&text, `{"id":"s%d_%d","sleep":"1s"}`, group, i)
		}
		text.WriteString("]}")
	}
	text.WriteString("]}")
	d, faults := Parse([]byte(text.String()), JSON)
	if d != nil || !HasErrors(faults) {
		t.Errorf("2 250 000 edges were taken: %v", faults)
	}
}
