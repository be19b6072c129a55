package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/traceid"
	"perigee/store"
	"perigee/store/sqlite"
)

// family is three executions deep; each of the two lower ones has a task.
var family = []string{`
name: leaf
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps: [ { id: last, task: a.step } ]
`, `
name: middle
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps: [ { id: first, task: a.step }, { id: down, after: [first], workflow: leaf@1.0.0 } ]
`, `
name: top
version: "1.0.0"
steps: [ { id: down, workflow: middle@1.0.0 } ]
`}

// withFamily is an engine that knows the three.
func withFamily(t *testing.T, o Options) (*sqlite.Store, *Engine) {
	t.Helper()
	st, engines := openEngines(t, 1, o)
	for _, source := range family {
		if _, err := engines[0].RegisterDefinition(t.Context(), []byte(source), definition.YAML); err != nil {
			t.Fatal(err)
		}
	}
	return st, engines[0]
}

func pollOne(t *testing.T, e *Engine, session string) Assignment {
	t.Helper()
	p, err := e.Poll(t.Context(), PollRequest{SessionID: session})
	if err != nil || len(p.Tasks) != 1 {
		t.Fatalf("polled %+v, %v; want one task", p, err)
	}
	return p.Tasks[0]
}

func TestRoot_IsTheTopmostOfAFamilyInHeadsTasksAndAssignments(t *testing.T) {
	st, e := withFamily(t, Options{})
	session := sessionOf(t, e)
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "top", ExecutionID: "o"}); err != nil {
		t.Fatal(err)
	}
	first := pollOne(t, e, session)
	answer, err := e.Results(t.Context(), ResultsRequest{Results: []Result{{Token: first.Token, Output: exactjson.EmptyObject}}})
	if err != nil || !answer.Acks[0].Accepted {
		t.Fatal(answer, err)
	}
	last := pollOne(t, e, session)
	for _, a := range []struct {
		got             Assignment
		execution, unit string
	}{{first, "o.down", "first"}, {last, "o.down.down", "last"}} {
		want := traceid.Parent("o", a.execution, a.unit, 1)
		if a.got.TraceParent != want || a.got.ExecutionID != a.execution {
			t.Errorf("%s %s: traceparent %s, want %s", a.got.ExecutionID, a.got.StepID, a.got.TraceParent, want)
		}
		if text := string(a.got.AppendJSON(nil)); !strings.Contains(text, `"traceparent":"`+want+`"`) {
			t.Errorf("the worker gets no traceparent: %s", text)
		}
	}
	for id, want := range map[string]string{"o": "", "o.down": "o", "o.down.down": "o"} {
		if got := headOfID(t, st, id).RootID; got != want {
			t.Errorf("root of %s: %q, want %q", id, got, want)
		}
	}
	if row, err := st.Task(t.Context(), "o.down.down/last"); err != nil || row.RootID != "o" {
		t.Errorf("root of the task: %q, want o; %v", row.RootID, err)
	}
}

// In the commit of a result, too, where no row is read back.
func TestRoot_IsInWhatNextHandsOut(t *testing.T) {
	st, e := withFamily(t, Options{})
	session := sessionOf(t, e)
	source := `
name: two
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps: [ { id: one, task: a.step }, { id: two, after: [one], task: a.step } ]
`
	above := `
name: above
version: "1.0.0"
steps: [ { id: c, workflow: two@1.0.0 } ]
`
	for _, s := range []string{source, above} {
		if _, err := e.RegisterDefinition(t.Context(), []byte(s), definition.YAML); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "above", ExecutionID: "o"}); err != nil {
		t.Fatal(err)
	}
	one := pollOne(t, e, session)
	answer, err := e.Results(t.Context(), ResultsRequest{Results: []Result{{Token: one.Token}}, NextSession: session})
	if err != nil || len(answer.Next) != 1 {
		t.Fatalf("%+v, %v; want one task more", answer, err)
	}
	if want := traceid.Parent("o", "o.c", "two", 1); answer.Next[0].TraceParent != want {
		t.Errorf("traceparent %s, want %s", answer.Next[0].TraceParent, want)
	}
	if row, err := st.Task(t.Context(), "o.c/two"); err != nil || row.RootID != "o" {
		t.Errorf("root of the task: %q, want o; %v", row.RootID, err)
	}
}

func TestDoctor_ARebuildKeepsRoots(t *testing.T) {
	st, e := withFamily(t, Options{})
	session := sessionOf(t, e)
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "top", ExecutionID: "o"}); err != nil {
		t.Fatal(err)
	}
	pollOne(t, e, session)
	row, err := st.Task(t.Context(), "o.down/first")
	if err != nil {
		t.Fatal(err)
	}
	want := row
	row.RootID, row.Attempt = "", 7
	head := headOfID(t, st, "o.down")
	if err := st.Commit(t.Context(), store.Commit{
		Seen: store.Seen{Incarnation: head.Incarnation, Seq: head.LastSeq}, Head: head, Inserted: []store.Task{row}, ReplaceTasks: true,
	}); err != nil {
		t.Fatal(err)
	}
	var found []string
	if _, err := e.Doctor(t.Context(), true, func(f Finding) { found = append(found, fmt.Sprint(f.ExecutionID, " ", f.What, " ", f.Repaired)) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(found, "o.down task first: root is , its history says o true") {
		t.Errorf("found %q", found)
	}
	if got, err := st.Task(t.Context(), row.Key); err != nil || !cmp.Equal(want, got) {
		t.Errorf("the rebuilt row (-want +got), %v:\n%s", err, cmp.Diff(want, got))
	}
	if got := headOfID(t, st, "o.down").RootID; got != "o" {
		t.Errorf("root of the child: %q, want o", got)
	}
}
