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
