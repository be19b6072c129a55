package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"perigee/store"
)

const (
	epoch          int64 = 1_700_000_000_000 // the moment at which rules begin
	second         int64 = 1_000
	minute         int64 = 60 * second
	sessionTimeout       = 30 * second
	queue                = "charge@1.0.0/go"
)

// newHead is the head of an execution that has its first two events.
func newHead(id string) store.Head {
	return store.Head{
		ID: id, Incarnation: 7_001, Workflow: "order", Version: "1.0.0", DefinitionHash: "d1",
		Status: "RUNNING", LastSeq: 2, LastAtMS: epoch, CreatedAtMS: epoch,
	}
}

// newEvents are the events from .. to, all at one moment.
func newEvents(from, to uint64, atMS int64) []store.Event {
	var events []store.Event
	for seq := from; seq <= to; seq++ {
		events = append(events, store.Event{Seq: seq, Type: "StepSkipped", AtMS: atMS, Data: fmt.Sprintf(`{"step":"s%d","reason":"r"}`, seq)})
	}
	return events
}

// creation is the commit that creates an execution with two events and these tasks.
func creation(id string, tasks ...store.Task) store.Commit {
	return store.Commit{Head: newHead(id), Events: newEvents(1, 2, epoch), Inserted: tasks}
}

// following is a commit of n more events upon a head.
func following(h store.Head, n uint64) store.Commit {
	seen := seenOf(h)
	h.LastSeq += n
	return store.Commit{Seen: seen, Head: h, Events: newEvents(seen.Seq+1, h.LastSeq, h.LastAtMS)}
}

func seenOf(h store.Head) store.Seen {
	return store.Seen{Incarnation: h.Incarnation, Seq: h.LastSeq}
}

// readyTask is the row of a unit that waits for a worker.
func readyTask(execution, unit string, readySeq uint64) store.Task {
	return store.Task{
		Key: execution + "/" + unit, ExecutionID: execution, Unit: unit, State: store.TaskReady,
		Queue: queue, ReadyAtMS: epoch, ReadySeq: readySeq,
		TaskName: "charge", ContractVersion: "1.0.0", Workflow: "order", WorkflowVersion: "1.0.0",
		Input: `{"amount":1.50}`, Attempt: 1, TimeoutMS: minute,
	}
}

// dispatchedTask is the row of a unit that is with a worker.
func dispatchedTask(execution, unit, session, secret string) store.Task {
	task := readyTask(execution, unit, 2)
	task.State, task.Session, task.WorkerID, task.ClaimKey = store.TaskDispatched, session, "w1", "poll-0"
	task.Secret, task.TokenHash = secret, hashOf(secret)
	task.DispatchedMS, task.DeadlineMS, task.DueAtMS = epoch, epoch+minute, epoch+sessionTimeout
	return task
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// got is the result of a call that may not fail.
func got[T any](result T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return result
	}
}

func commit(t *testing.T, s store.Store, c store.Commit) {
	t.Helper()
	must(t, s.Commit(t.Context(), c))
}

// create makes an execution with two events and returns its head.
func create(t *testing.T, s store.Store, id string, tasks ...store.Task) store.Head {
	t.Helper()
	c := creation(id, tasks...)
	commit(t, s, c)
	return c.Head
}

// load reads an execution whole, at the moment epoch.
func load(t *testing.T, s store.Store, id string) store.Loaded {
	t.Helper()
	return got(s.Load(t.Context(), store.LoadRequest{ID: id, NowMS: epoch}))(t)
}

func tasksOf(t *testing.T, s store.Store, id string) []store.Task {
	t.Helper()
	return got(s.Tasks(t.Context(), id))(t)
}

// register puts a session of the worker w1.
func register(t *testing.T, s store.Store, hash string, nowMS int64) {
	t.Helper()
	must(t, s.PutSession(t.Context(), store.Session{
		Hash: hash, WorkerID: "w1", Runtime: "go", SDK: "go/1.0.0", NowMS: nowMS,
		Contracts: []store.Contract{{TaskName: "charge", ContractVersion: "1.0.0"}},
	}))
}

// poll is a claim of up to n tasks of the common queue under its own key.
func poll(session, key string, n int, nowMS int64) store.ClaimRequest {
	r := store.ClaimRequest{
		Session: session, WorkerID: "w1", Queues: []string{queue}, ClaimKey: key,
		SessionTimeoutMS: sessionTimeout, NowMS: nowMS,
	}
	for i := range n {
		r.Secrets = append(r.Secrets, fmt.Sprintf("%s/%s/%d", session, key, i))
	}
	return r
}

func claim(t *testing.T, s store.Store, r store.ClaimRequest) store.Claimed {
	t.Helper()
	return got(s.Claim(t.Context(), r))(t)
}

func due(t *testing.T, s store.Store, r store.DueRequest) store.Due {
	t.Helper()
	return got(s.Due(t.Context(), r))(t)
}

func keys(tasks []store.Task) []string {
	var keys []string
	for _, task := range tasks {
		keys = append(keys, task.Key)
	}
	return keys
}

func ids(heads []store.Head) []string {
	var ids []string
	for _, h := range heads {
		ids = append(ids, h.ID)
	}
	return ids
}

// equal compares; nil and empty lists and maps are the same.
func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// wantError wants an error that is target.
func wantError(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("want the error %q, got %v", target, err)
	}
}

// wantLost wants a lost race. A backend may leave out which task it was.
func wantLost(t *testing.T, err error, task string) {
	t.Helper()
	lost, ok := errors.AsType[*store.LostError](err)
	if !ok {
		t.Fatalf("want a *store.LostError, got %v", err)
	}
	if lost.Exists {
		t.Fatalf("want a lost guard, got %v", err)
	}
	if lost.Task != "" && lost.Task != task {
		t.Fatalf("want a race lost for %q, got %v", task, err)
	}
}
