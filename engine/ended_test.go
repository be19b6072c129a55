package engine

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/definition"
	"perigee/engine/history"
)

// traced is an engine that notes what ended, with clock as its time.
func traced(t *testing.T, clock *int64) (*Engine, *[]Ended) {
	t.Helper()
	var told []Ended
	_, e := withFamily(t, Options{
		Clock: func() int64 { return *clock },
		Ended: func(e []Ended) { told = append(told, e...) },
	})
	return e, &told
}

func report(t *testing.T, e *Engine, r Result) {
	t.Helper()
	answer, err := e.Results(t.Context(), ResultsRequest{Results: []Result{r}})
	if err != nil || !answer.Acks[0].Accepted {
		t.Fatalf("reported %+v, %v", answer, err)
	}
}

func TestEnded_IsToldOncePerAttemptAndExecutionFromItsBeginningToItsEnd(t *testing.T) {
	clock := int64(1_000)
	e, told := traced(t, &clock)
	session := sessionOf(t, e)
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "top", ExecutionID: "o"}); err != nil {
		t.Fatal(err)
	}
	clock = 2_000
	first := pollOne(t, e, session)
	clock = 3_000
	report(t, e, Result{Token: first.Token})
	clock = 4_000
	last := pollOne(t, e, session)
	clock = 5_000
	report(t, e, Result{Token: last.Token, Error: &history.TaskError{Code: "NO_STOCK", Message: "secret"}})

	of := func(id, workflow string, start, end int64, code string) Ended {
		return Ended{ExecutionID: id, RootID: "o", Workflow: workflow, WorkflowVersion: "1.0.0", StartMS: start, EndMS: end, ErrorCode: code}
	}
	attempt := func(e Ended, a EndedAttempt) Ended { e.Attempt = &a; return e }
	execution := func(e Ended, parent *history.ParentRef) Ended {
		e.Status, e.Parent = history.Failed, parent
		return e
	}
	want := []Ended{
		attempt(of("o.down", "middle", 2_000, 3_000, ""), EndedAttempt{Unit: "first", Calls: "a.step", Number: 1, WorkerID: "w", Outcome: AttemptSucceeded}),
		attempt(of("o.down.down", "leaf", 4_000, 5_000, "NO_STOCK"), EndedAttempt{Unit: "last", Calls: "a.step", Number: 1, WorkerID: "w", Outcome: AttemptFailed}),
		execution(of("o.down.down", "leaf", 3_000, 5_000, "NO_STOCK"), &history.ParentRef{ExecutionID: "o.down", Step: "down"}),
		attempt(of("o.down", "middle", 3_000, 5_000, "NO_STOCK"), EndedAttempt{Unit: "down", Calls: "leaf@1.0.0", Child: true, Number: 1, Outcome: AttemptFailed}),
		execution(of("o.down", "middle", 1_000, 5_000, "NO_STOCK"), &history.ParentRef{ExecutionID: "o", Step: "down"}),
		attempt(of("o", "top", 1_000, 5_000, "NO_STOCK"), EndedAttempt{Unit: "down", Calls: "middle@1.0.0", Child: true, Number: 1, Outcome: AttemptFailed}),
		execution(of("o", "top", 1_000, 5_000, "NO_STOCK"), nil),
	}
	if diff := cmp.Diff(want, *told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestEnded_AnAttemptOfUnknownOutcomeEndsWhenItWasHandedOutAgain(t *testing.T) {
	clock := int64(1_000)
	e, told := traced(t, &clock)
	session := sessionOf(t, e)
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	pollOne(t, e, session)
	if err := e.Unregister(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	if len(*told) > 0 {
		t.Errorf("told %+v: the attempt has not ended", *told)
	}
	clock = 2_000
	again := pollOne(t, e, sessionOf(t, e))
	clock = 3_000
	report(t, e, Result{Token: again.Token})
	want := &EndedAttempt{Unit: "only", Calls: "a.step", Number: 1, Redelivery: true, WorkerID: "w", Outcome: AttemptSucceeded}
	if got := (*told)[0]; !cmp.Equal(want, got.Attempt) || got.StartMS != 2_000 || got.EndMS != 3_000 {
		t.Errorf("told %+v", got)
	}
	if len(*told) != 2 {
		t.Errorf("told of %d, want the attempt and its execution", len(*told))
	}
}

// The first attempt failed by its deadline and succeeds after all: the second
// ends with it, and the first, which has ended already, is not told again.
func TestEnded_AnAttemptIsSupersededByAnEarlierOnesSuccess(t *testing.T) {
	clock := int64(1_000)
	e, told := traced(t, &clock)
	session := sessionOf(t, e)
	source := `
name: late
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps: [ { id: only, task: a.step, timeout: 1s, retry: { initial_interval: 0s } } ]
`
	if _, err := e.RegisterDefinition(t.Context(), []byte(source), definition.YAML); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "late", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	slow := pollOne(t, e, session)
	clock = 2_500
	pollOne(t, e, session) // sees to the deadline, too
	clock = 3_000
	report(t, e, Result{Token: slow.Token})
	var got []string
	for _, e := range *told {
		if a := e.Attempt; a != nil {
			got = append(got, fmt.Sprintf("%d %s %s %d-%d", a.Number, a.Outcome, e.ErrorCode, e.StartMS, e.EndMS))
		}
	}
	want := []string{"1 failed TIMEOUT 1000-2500", "2 superseded  2500-3000"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

func TestEnded_ACancelledUnitEndsItsAttempt(t *testing.T) {
	clock := int64(1_000)
	e, told := traced(t, &clock)
	source := `
name: leaves
version: "1.0.0"
steps: [ { id: c, workflow: leaf@1.0.0, on_parent_close: abandon } ]
`
	if _, err := e.RegisterDefinition(t.Context(), []byte(source), definition.YAML); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "leaves", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	clock = 2_000
	if _, err := e.Cancel(t.Context(), "e", "no longer wanted"); err != nil {
		t.Fatal(err)
	}
	if len(*told) != 2 || (*told)[0].Attempt == nil || (*told)[0].Attempt.Outcome != AttemptCancelled || (*told)[1].Status != history.Cancelled {
		t.Errorf("told %+v", *told)
	}
}
