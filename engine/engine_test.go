package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/store"
	"perigee/store/sqlite"
)

// bench is an engine on a store in memory, with a clock of its own.
type bench struct {
	*engine.Engine
	t     *testing.T
	store *sqlite.Store
	now   int64
}

const epoch = 1_800_000_000_000

func newBench(t *testing.T, opts engine.Options) *bench {
	t.Helper()
	b := &bench{t: t, now: epoch}
	st, err := sqlite.Open(t.Context(), sqlite.Options{Path: ":memory:"})
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
	if opts.Clock == nil {
		opts.Clock = func() int64 { return b.now }
	}
	e, err := engine.New(st, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	b.Engine, b.store = e, st
	return b
}

func (b *bench) deploy(source string) {
	b.t.Helper()
	if _, err := b.RegisterDefinition(b.t.Context(), []byte(source), definition.YAML); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) start(workflow, id, input string) {
	b.t.Helper()
	if _, err := b.Start(b.t.Context(), engine.StartRequest{Workflow: workflow, ExecutionID: id, Input: exactjson.Value(input)}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) register(tasks ...string) string {
	b.t.Helper()
	r := engine.RegisterRequest{WorkerID: "w", Runtime: "go"}
	for _, task := range tasks {
		r.Contracts = append(r.Contracts, store.Contract{TaskName: task, ContractVersion: "1.0.0"})
	}
	reg, err := b.RegisterWorker(b.t.Context(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	return reg.SessionID
}

func (b *bench) poll(session string) engine.Assignment {
	b.t.Helper()
	p, err := b.Poll(b.t.Context(), engine.PollRequest{SessionID: session})
	if err != nil {
		b.t.Fatal(err)
	}
	if len(p.Tasks) != 1 {
		b.t.Fatalf("a poll got %d tasks, want 1", len(p.Tasks))
	}
	return p.Tasks[0]
}

func (b *bench) types(id string) []string {
	b.t.Helper()
	page, err := b.History(b.t.Context(), engine.HistoryRequest{ExecutionID: id})
	if err != nil {
		b.t.Fatal(err)
	}
	var types []string
	for _, e := range page.Events {
		types = append(types, e.Type)
	}
	return types
}

// healthy asserts that every projection is what its history says.
func (b *bench) healthy() {
	b.t.Helper()
	if _, err := b.Doctor(b.t.Context(), false, func(f engine.Finding) { b.t.Errorf("%s: %s", f.ExecutionID, f.What) }); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) status(id string) history.Status {
	b.t.Helper()
	s, err := b.Execution(b.t.Context(), id, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return s.Status
}

// chain is a definition of n sequential steps.
func chain(n int) string {
	text := "name: chain\nversion: \"1.0.0\"\ntasks:\n  a.step: { version: \"1.0.0\" }\nsteps:\n"
	for i := range n {
		text += fmt.Sprintf("  - { id: s%d, task: a.step, with: { n: %d } }\n", i, i)
	}
	return text
}

func TestSequentialStep_CostsOneCommitAndOneRoundTripWithNext(t *testing.T) {
	b := newBench(t, engine.Options{})
	b.deploy(chain(3))
	session := b.register("a.step")
	b.start("chain", "e", `{}`)

	before := b.store.Stats()
	task := b.poll(session)
	if diff := cmp.Diff(store.Stats{RoundTrips: 1, Commits: 1}, spent(b, before)); diff != "" {
		t.Errorf("a poll that finds work (-want +got):\n%s", diff)
	}
	for i := range 2 {
		before = b.store.Stats()
		answer, err := b.Results(context.Background(), engine.ResultsRequest{
			Results: []engine.Result{{Token: task.Token, Output: `{}`}}, NextSession: session,
		})
		if err != nil || len(answer.Next) != 1 || !answer.Acks[0].Accepted {
			t.Fatalf("step %d: %+v, %v", i, answer, err)
		}
		// The state is known: it is what this process's own claim or commit left.
		if diff := cmp.Diff(store.Stats{RoundTrips: 1, Commits: 1}, spent(b, before)); diff != "" {
			t.Errorf("step %d with next (-want +got):\n%s", i, diff)
		}
		task = answer.Next[0]
	}
	if _, err := b.Results(context.Background(), engine.ResultsRequest{Results: []engine.Result{{Token: task.Token}}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"WorkflowCreated", "WorkflowStarted",
		"StepScheduled", "StepDispatched", "StepSucceeded",
		"StepScheduled", "StepDispatched", "StepSucceeded",
		"StepScheduled", "StepDispatched", "StepSucceeded", "WorkflowCompleted"}
	if diff := cmp.Diff(want, b.types("e")); diff != "" {
		t.Error(diff)
	}
	b.healthy()
}

// spent is what went over the store's boundary since, statements left out.
func spent(b *bench, since store.Stats) store.Stats {
	s := b.store.Stats()
	return store.Stats{RoundTrips: s.RoundTrips - since.RoundTrips, Commits: s.Commits - since.Commits}
}

func TestResults_OfSeveralExecutionsEachBringTheirOwnNextTask(t *testing.T) {
	b := newBench(t, engine.Options{})
	b.deploy(chain(2))
	session := b.register("a.step")
	req := engine.ResultsRequest{NextSession: session, NextMax: 3}
	for i := range 3 {
		b.start("chain", fmt.Sprint("e", i), `{}`)
		req.Results = append(req.Results, engine.Result{Token: b.poll(session).Token})
	}
	answer, err := b.Results(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	next := map[string]string{}
	for _, a := range answer.Next {
		next[a.ExecutionID] = a.StepID
	}
	if diff := cmp.Diff(map[string]string{"e0": "s1", "e1": "s1", "e2": "s1"}, next); diff != "" {
		t.Errorf("next tasks (-want +got):\n%s", diff)
	}
	// The same results again, after a lost reply, get the same tasks again.
	again, err := b.Results(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	byID := func(a, b engine.Assignment) int { return strings.Compare(a.ExecutionID, b.ExecutionID) }
	slices.SortFunc(answer.Next, byID)
	slices.SortFunc(again.Next, byID)
	if diff := cmp.Diff(answer, again); diff != "" {
		t.Errorf("the same results again (-first +second):\n%s", diff)
	}
	b.healthy()
}

func TestResult_AloneShowsThatItsWorkerIsAlive(t *testing.T) {
	b := newBench(t, engine.Options{})
	b.deploy(chain(2))
	session := b.register("a.step")
	b.start("chain", "e", `{}`)
	task := b.poll(session)
	b.now += 20_000
	if _, err := b.Results(t.Context(), engine.ResultsRequest{Results: []engine.Result{{Token: task.Token}}}); err != nil {
		t.Fatal(err)
	}
	workers, err := b.Workers(t.Context())
	if err != nil || len(workers) != 1 {
		t.Fatalf("%+v, %v", workers, err)
	}
	if diff := cmp.Diff(b.now, workers[0].LastSeenMS); diff != "" {
		t.Errorf("last seen (-want +got):\n%s", diff)
	}
}
