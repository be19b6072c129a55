package engine

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perigee/engine/decide"
	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/store"
)

const withChild = `
name: parent
version: "1.0.0"
steps: [ { id: c, workflow: computes@1.0.0 } ]
`

const computes = `
name: computes
version: "1.0.0"
steps: [ { id: sum, compute: "${1 + 1}" } ]
output: "${steps.sum.output}"
`

// A parent that finds its child there, as after a loss of its own last events,
// must not wait for an end that was told before.
func TestChildren_AnEndThatWasToldTooEarlyIsAskedFor(t *testing.T) {
	st, engines := openEngines(t, 1, Options{})
	e := engines[0]
	for _, source := range []string{computes, withChild} {
		if _, err := e.RegisterDefinition(t.Context(), []byte(source), definition.YAML); err != nil {
			t.Fatal(err)
		}
	}
	info, err := e.Definition(t.Context(), "computes", "")
	if err != nil {
		t.Fatal(err)
	}
	child := history.ChildID("p", "c")
	program, err := e.program(t.Context(), info.Hash)
	if err != nil {
		t.Fatal(err)
	}
	m := decide.New(program, history.New(child))
	m.At(1)
	m.Create(history.WorkflowCreated{
		Workflow: info.Name, Version: info.Version, DefinitionHash: info.Hash, Input: exactjson.EmptyObject,
		Parent: &history.ParentRef{ExecutionID: "p", Step: "c"},
	})
	m.Run()
	head := headOf(m, false)
	head.Incarnation = 1
	if err := st.Commit(t.Context(), store.Commit{Head: head, Events: eventsOf(m.Records())}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "parent", ExecutionID: "p"}); err != nil {
		t.Fatal(err)
	}
	state, err := e.Execution(t.Context(), "p", 0)
	if err != nil || state.Status != history.Completed || state.Unit("c").Output != "2" {
		t.Errorf("the parent: %+v, %v", state, err)
	}
	if left, err := st.Outbox(t.Context(), "", 10); err != nil || len(left) > 0 {
		t.Errorf("undelivered: %+v, %v", left, err)
	}
}

const oneAfterTheOther = `
name: all
version: "1.0.0"
input: { type: object, properties: { items: { type: array } } }
steps: [ { id: each, for: input.items, max_parallel: 1, workflow: computes@1.0.0 } ]
`

// Each child's end brings on the next child. Who started the first is answered
// before the last has ended; the ticks see to the rest.
func TestChildren_AChainOfThemDoesNotKeepItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const children, commitTime = 50, 50 * time.Millisecond
		st, _ := openEngines(t, 1, Options{})
		h, e := hook(t, st, Options{})
		for _, source := range []string{computes, oneAfterTheOther} {
			if _, err := e.RegisterDefinition(t.Context(), []byte(source), definition.YAML); err != nil {
				t.Fatal(err)
			}
		}
		h.commit = func(ctx context.Context, c store.Commit) error {
			time.Sleep(commitTime)
			return st.Commit(ctx, c)
		}
		began := time.Now()
		input := exactjson.Value(`{"items":[0` + strings.Repeat(",0", children-1) + `]}`)
		if _, err := e.Start(t.Context(), StartRequest{Workflow: "all", ExecutionID: "p", Input: input}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < followBrief || took > followBrief+10*commitTime {
			t.Errorf("the start took %v, want about %v", took, followBrief)
		}
		for range children {
			if _, err := e.Tick(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * reportedAgeMS * time.Millisecond)
		}
		state, err := e.Execution(t.Context(), "p", 0)
		if err != nil || state.Status != history.Completed {
			t.Errorf("the parent: %+v, %v", state, err)
		}
	})
}

const ofOne = `
name: of-one
version: "1.0.0"
steps: [ { id: c, workflow: one@1.0.0 } ]
`

// The token of a unit that runs a child is made from public ids: no report and no
// progress may speak for the child.
func TestChildren_NobodyReportsForThem(t *testing.T) {
	st, engines := openEngines(t, 1, Options{})
	e := engines[0]
	if _, err := e.RegisterDefinition(t.Context(), []byte(ofOne), definition.YAML); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "of-one", ExecutionID: "p"}); err != nil {
		t.Fatal(err)
	}
	before := headOfID(t, st, "p")
	if u := mustLoad(t, e, "p").Unit("c"); u == nil || u.Token == nil || u.WorkerID == nil {
		t.Fatalf("the child is not under way: %+v", u)
	} else {
		forged := taskToken{"p", "c", *u.WorkerID, history.ChildSession + history.ChildID("p", "c")}
		if forged.hash() != *u.Token {
			t.Fatal("the token is made in another way: this test forges nothing")
		}
		fail := &history.TaskError{Code: "FORGED"}
		for _, r := range []Result{{Token: forged.String(), Output: `{"forged":true}`}, {Token: forged.String(), Error: fail}} {
			answer, err := e.Results(t.Context(), ResultsRequest{Results: []Result{r}})
			if err != nil || answer.Acks[0].Accepted || answer.Acks[0].Reason != decide.UnknownToken {
				t.Errorf("%+v, %v", answer.Acks, err)
			}
		}
		if current, _, err := e.Progress(t.Context(), forged.String(), `{}`); err != nil || current {
			t.Errorf("progress: current %v, %v", current, err)
		}
	}
	if after := headOfID(t, st, "p"); after.LastSeq != before.LastSeq {
		t.Errorf("%d events were written", after.LastSeq-before.LastSeq)
	}
}

func mustLoad(t *testing.T, e *Engine, id string) *history.State {
	t.Helper()
	state, err := e.Execution(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	return state
}
