package engine

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/definition"
	"perigee/store"
)

const twoSteps = `
name: two
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps: [ { id: first, task: a.step }, { id: second, task: a.step } ]
`

// lostResult is a result whose first, direct try loses: it goes to the inbox,
// where drain sees to it.
func lostResult(t *testing.T, drain func(st store.Store) error) (e *Engine, st store.Store, answer ResultsAnswer) {
	t.Helper()
	st, engines := openEngines(t, 1, Options{})
	if _, err := engines[0].RegisterDefinition(t.Context(), []byte(twoSteps), definition.YAML); err != nil {
		t.Fatal(err)
	}
	h, e := hook(t, st, Options{})
	session := sessionOf(t, e)
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "two", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	p, err := e.Poll(t.Context(), PollRequest{SessionID: session})
	if err != nil || len(p.Tasks) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	h.commit = func(context.Context, store.Commit) error { return &store.LostError{} }
	h.tryDrain = func(context.Context, store.LoadRequest, func(store.Loaded) (*store.Commit, error)) error {
		return drain(st)
	}
	answer, err = e.Results(t.Context(), ResultsRequest{Results: []Result{{Token: p.Tasks[0].Token}}, NextSession: session})
	if err != nil {
		t.Fatal(err)
	}
	h.commit, h.tryDrain = nil, nil
	if diff := cmp.Diff([]Ack{{Token: p.Tasks[0].Token, Accepted: true}}, answer.Acks); diff != "" {
		t.Error(diff)
	}
	return e, st, answer
}

// What a lost try dispatched was dispatched to nobody.
func TestInbox_TheNextTaskOfALostTryIsNotHandedOut(t *testing.T) {
	e, _, answer := lostResult(t, func(st store.Store) error {
		other, err := New(st, Options{})
		if err != nil {
			return err
		}
		if err := other.advance(t.Context(), "e"); err != nil {
			return err
		}
		return store.ErrBusy // another process took the result in
	})
	if len(answer.Next) != 1 {
		t.Fatalf("next: %+v", answer.Next)
	}
	last, err := e.Results(t.Context(), ResultsRequest{Results: []Result{{Token: answer.Next[0].Token}}})
	if err != nil || !last.Acks[0].Accepted {
		t.Errorf("the result of the next task: %+v, %v", last, err)
	}
}

func TestInbox_AResultThatNobodyTakesInWaitsForTheHeadsLock(t *testing.T) {
	t.Parallel()
	_, st, _ := lostResult(t, func(store.Store) error { return store.ErrBusy })
	rows, err := st.Tasks(t.Context(), "e")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.State == store.TaskReported {
			t.Errorf("%s lies in the inbox still", row.Key)
		}
	}
}
