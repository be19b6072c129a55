package engine

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/definition"
	"perigee/store"
	"perigee/store/sqlite"
)

const oneStep = `
name: one
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps: [ { id: only, task: a.step } ]
`

func openEngines(t *testing.T, n int, opts Options) (*sqlite.Store, []*Engine) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Options{Path: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var engines []*Engine
	for range n {
		e, err := New(st, opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		engines = append(engines, e)
	}
	if _, err := engines[0].RegisterDefinition(t.Context(), []byte(oneStep), definition.YAML); err != nil {
		t.Fatal(err)
	}
	return st, engines
}

func sessionOf(t *testing.T, e *Engine) string {
	t.Helper()
	r, err := e.RegisterWorker(t.Context(), RegisterRequest{WorkerID: "w", Runtime: "go", Contracts: []store.Contract{{TaskName: "a.step", ContractVersion: "1.0.0"}}})
	if err != nil {
		t.Fatal(err)
	}
	return r.SessionID
}

// waitingPoll polls in the background and returns when the poll is held.
func waitingPoll(t *testing.T, e *Engine, r PollRequest) <-chan Polled {
	t.Helper()
	got := make(chan Polled, 1)
	go func() {
		p, err := e.Poll(context.Background(), r)
		if err != nil {
			t.Error(err)
		}
		got <- p
	}()
	for e.hub.opened() == 0 {
		runtime.Gosched()
	}
	return got
}

// opened counts the polls that are held.
func (h *hub) opened() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, w := range h.polls {
		if w.takes != nil {
			n++
		}
	}
	return n
}

func TestPoll_ThatWaitsGetsItsTaskInTheCommitThatMakesItReady(t *testing.T) {
	st, engines := openEngines(t, 1, Options{HoldPolls: true})
	e := engines[0]
	session := sessionOf(t, e)
	got := waitingPoll(t, e, PollRequest{SessionID: session, PollID: "p1", Wait: time.Minute})
	before := st.Stats().Commits
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	polled := <-got
	if len(polled.Tasks) != 1 || polled.Tasks[0].StepID != "only" {
		t.Fatalf("the poll got %+v", polled.Tasks)
	}
	if diff := cmp.Diff(int64(1), st.Stats().Commits-before); diff != "" {
		t.Errorf("commits for a start with its first dispatch (-want +got):\n%s", diff)
	}
	// A lost reply loses nothing: the same poll again gives the same task.
	again, err := e.Poll(t.Context(), PollRequest{SessionID: session, PollID: "p1"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(polled.Tasks, again.Tasks); diff != "" {
		t.Errorf("the same poll again (-first +second):\n%s", diff)
	}
	if _, err := e.Doctor(t.Context(), false, func(f Finding) { t.Errorf("%s: %s", f.ExecutionID, f.What) }); err != nil {
		t.Fatal(err)
	}
}

func TestGuess_ThatIsWrongWritesNothingAndLoads(t *testing.T) {
	_, engines := openEngines(t, 2, Options{Clock: func() int64 { return 1_800_000_000_000 }})
	here, there := engines[0], engines[1]
	session := sessionOf(t, here)
	if _, err := here.Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	// Another process hands out the task: what is warm here is not the latest.
	p, err := there.Poll(t.Context(), PollRequest{SessionID: session})
	if err != nil || len(p.Tasks) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	answer, err := here.Results(t.Context(), ResultsRequest{Results: []Result{{Token: p.Tasks[0].Token, Output: `{"a":1}`}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Ack{{Token: p.Tasks[0].Token, Accepted: true}}, answer.Acks); diff != "" {
		t.Error(diff)
	}
	// The stale machine knew nothing of the token: nothing was written, so
	// nothing was lost either.
	if !here.guesses.allowed(1_800_000_000_000) {
		t.Error("a guess that had nothing to write counts as lost")
	}
}
