package engine

import (
	"context"
	"sync"
	"testing"

	"perigee/store"
)

func TestDoctor_ARebuildLosesNoResultThatIsReportedMeanwhile(t *testing.T) {
	st, _ := openEngines(t, 1, Options{})
	h, e := hook(t, st, Options{})
	session := sessionOf(t, e)
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	p, err := e.Poll(t.Context(), PollRequest{SessionID: session})
	if err != nil || len(p.Tasks) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	head := headOfID(t, st, "e")
	head.Status = "PAUSED"
	if err := st.Commit(t.Context(), store.Commit{Seen: store.Seen{Incarnation: head.Incarnation, Seq: head.LastSeq}, Head: head}); err != nil {
		t.Fatal(err)
	}
	token, _ := parseToken(p.Tasks[0].Token)
	var once sync.Once
	h.commit = func(ctx context.Context, c store.Commit) error {
		once.Do(func() {
			ok, err := st.Report(ctx, store.Report{Key: "e/only", TokenHash: token.hash(), Success: true, Payload: "{}"})
			if err != nil || !ok {
				t.Errorf("the report: %v, %v", ok, err)
			}
		})
		return st.Commit(ctx, c)
	}
	repaired := 0
	if _, err := e.Doctor(t.Context(), true, func(f Finding) {
		if f.Repaired {
			repaired++
		}
	}); err != nil || repaired != 1 {
		t.Errorf("%d differences were repaired, want 1; %v", repaired, err)
	}
	row, err := st.Task(t.Context(), "e/only")
	if err != nil || row.State != store.TaskReported || row.Report == nil {
		t.Errorf("the row: %+v, %v", row, err)
	}
}

// Between the commits of a long winding-down there are rows that nobody may claim.
func TestDoctor_ARebuildHandsOutNothingOfWhatWindsDown(t *testing.T) {
	st, engines := openEngines(t, 1, Options{})
	e := engines[0]
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	h := headOfID(t, st, "e")
	seen := store.Seen{Incarnation: h.Incarnation, Seq: h.LastSeq}
	h.LastSeq++
	err := st.Commit(t.Context(), store.Commit{
		Seen: seen, Head: h, Marked: []store.TaskMark{{Key: "e/only", Guard: store.Guard{State: store.TaskReady}}},
		Events: []store.Event{{Seq: h.LastSeq, Type: "CancelRequested", AtMS: h.LastAtMS, Data: `{"reason":"enough"}`}},
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	if _, err := e.Doctor(t.Context(), true, func(Finding) { found++ }); err != nil || found == 0 {
		t.Fatalf("%d differences, %v; want the head's, which was not moved on with its history", found, err)
	}
	if row, err := st.Task(t.Context(), "e/only"); err != nil || row.State != store.TaskHeld {
		t.Errorf("the row: %+v, %v; want it held", row, err)
	}
}
