package watch_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/infra/watch"
	"perigee/store"
	"perigee/store/sqlite"
	"perigee/store/storetest"
)

// notes is a watcher that keeps what it is told.
type notes struct {
	mu     sync.Mutex
	events []string
	tasks  int
	looked int
}

func (n *notes) Committed(c store.Commit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range c.Events {
		n.events = append(n.events, e.Type)
	}
}

func (n *notes) Claimed(c store.Claimed) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tasks += len(c.Tasks)
}

func (n *notes) Looked(store.Due) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.looked++
}

func open(t *testing.T, w ...watch.Watcher) store.Store {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "perigee.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	if _, _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return watch.Store(st, w...)
}

func TestStore_KeepsTheRules(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, &notes{}) }, storetest.Serial)
}

// Every event of a history was seen once, whichever way it was written.
func TestStore_TellsWhatWasWritten(t *testing.T) {
	n := &notes{}
	st := open(t, n)
	e, err := engine.New(st, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	const source = `
name: one
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps: [{ id: only, task: a.step }]
`
	if _, err := e.RegisterDefinition(ctx, []byte(source), definition.YAML); err != nil {
		t.Fatal(err)
	}
	worker, err := e.RegisterWorker(ctx, engine.RegisterRequest{
		WorkerID: "w", Runtime: "go", Contracts: []store.Contract{{TaskName: "a.step", ContractVersion: "1.0.0"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Start(ctx, engine.StartRequest{Workflow: "one", ExecutionID: "x"}); err != nil {
		t.Fatal(err)
	}
	poll := engine.PollRequest{SessionID: worker.SessionID, PollID: "p"}
	polled, err := e.Poll(ctx, poll)
	if err != nil || len(polled.Tasks) != 1 {
		t.Fatalf("%+v, %v", polled, err)
	}
	if _, err := e.Poll(ctx, poll); err != nil { // the same answer again is no second dispatch
		t.Fatal(err)
	}
	if _, err := e.Results(ctx, engine.ResultsRequest{Results: []engine.Result{{Token: polled.Tasks[0].Token}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Tick(ctx, 10); err != nil {
		t.Fatal(err)
	}
	want := []string{"WorkflowCreated", "WorkflowStarted", "StepScheduled", "StepSucceeded", "WorkflowCompleted"}
	if diff := cmp.Diff(want, n.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if n.tasks != 1 || n.looked != 1 {
		t.Errorf("%d tasks and %d ticks were told, want one each", n.tasks, n.looked)
	}
}
