package engine

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/definition"
)

// reportsOf starts executions of two steps and gives a result for the first step
// of each.
func reportsOf(t *testing.T, e *Engine, ids ...string) ResultsRequest {
	t.Helper()
	if _, err := e.RegisterDefinition(t.Context(), []byte(twoSteps), definition.YAML); err != nil {
		t.Fatal(err)
	}
	r := ResultsRequest{NextSession: sessionOf(t, e), NextMax: len(ids)}
	for _, id := range ids {
		if _, err := e.Start(t.Context(), StartRequest{Workflow: "two", ExecutionID: id}); err != nil {
			t.Fatal(err)
		}
		p, err := e.Poll(t.Context(), PollRequest{SessionID: r.NextSession})
		if err != nil || len(p.Tasks) != 1 || p.Tasks[0].ExecutionID != id {
			t.Fatalf("%+v, %v", p, err)
		}
		r.Results = append(r.Results, Result{Token: p.Tasks[0].Token})
	}
	return r
}

func TestResults_AnExecutionThatCannotBeDecidedKeepsNobodyElsesBack(t *testing.T) {
	st, engines := openEngines(t, 1, Options{})
	e := engines[0]
	r := reportsOf(t, e, "a", "bad", "b")
	fromTheFuture(t, st, "bad")
	answer, err := e.Results(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	want := []Ack{{Token: r.Results[0].Token, Accepted: true}, {Token: r.Results[1].Token, Error: "NEWER_HISTORY"}, {Token: r.Results[2].Token, Accepted: true}}
	if diff := cmp.Diff(want, answer.Acks); diff != "" {
		t.Errorf("acks (-want +got):\n%s", diff)
	}
	var next []string
	for _, a := range answer.Next {
		next = append(next, a.IdempotencyKey)
	}
	slices.Sort(next)
	if diff := cmp.Diff([]string{"a/second", "b/second"}, next); diff != "" {
		t.Errorf("next tasks (-want +got):\n%s", diff)
	}
}

func TestResults_WhereNoneCanBeDecidedThatIsTheAnswer(t *testing.T) {
	st, engines := openEngines(t, 1, Options{})
	r := reportsOf(t, engines[0], "bad", "worse")
	fromTheFuture(t, st, "bad")
	fromTheFuture(t, st, "worse")
	if _, err := engines[0].Results(t.Context(), r); !errors.Is(err, errorf(NewerHistory, "")) {
		t.Errorf("got %v, want %s", err, NewerHistory)
	}
}

// What a database would refuse is none of our tokens and cursors.
func TestToken_OfBytesThatAreNoTextIsNone(t *testing.T) {
	_, engines := openEngines(t, 1, Options{})
	for _, token := range []taskToken{{"\xff", "a", "w", "s"}, {"e", "\xff", "w", "s"}, {"e", "a", "\xff", "s"}, {"e/1", "a", "w", "s"}} {
		answer, err := engines[0].Results(t.Context(), ResultsRequest{Results: []Result{{Token: token.String()}}})
		if err != nil || answer.Acks[0].Accepted || answer.Acks[0].Reason == "" {
			t.Errorf("%q: %+v, %v", token, answer.Acks, err)
		}
	}
	for _, id := range []string{"", "\x00", "\xff"} {
		if _, err := engines[0].List(t.Context(), ListRequest{Cursor: cursor(1, id)}); !errors.Is(err, errorf(InvalidRequest, "")) {
			t.Errorf("the cursor of %q: got %v", id, err)
		}
	}
	if _, err := engines[0].List(t.Context(), ListRequest{Cursor: cursor(1, fmt.Sprint("e", 1))}); err != nil {
		t.Errorf("a cursor of ours: %v", err)
	}
}
