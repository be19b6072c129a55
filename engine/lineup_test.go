package engine

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/decide"
	"perigee/engine/definition"
	"perigee/engine/history"
	"perigee/store"
)

// hooked is a store whose calls a test can get between.
type hooked struct {
	store.Store
	commit   func(context.Context, store.Commit) error
	locked   func(context.Context, store.LoadRequest, func(store.Loaded) (*store.Commit, error)) error
	tryDrain func(context.Context, store.LoadRequest, func(store.Loaded) (*store.Commit, error)) error
	claim    func(context.Context, store.ClaimRequest) (store.Claimed, error)
}

func (h *hooked) Claim(ctx context.Context, r store.ClaimRequest) (store.Claimed, error) {
	if h.claim != nil {
		return h.claim(ctx, r)
	}
	return h.Store.Claim(ctx, r)
}

func (h *hooked) Commit(ctx context.Context, c store.Commit) error {
	if h.commit != nil {
		return h.commit(ctx, c)
	}
	return h.Store.Commit(ctx, c)
}

func (h *hooked) WithHeadLocked(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	if h.locked != nil {
		return h.locked(ctx, r, decide)
	}
	return h.Store.WithHeadLocked(ctx, r, decide)
}

func (h *hooked) TryDrain(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	if h.tryDrain != nil {
		return h.tryDrain(ctx, r, decide)
	}
	return h.Store.TryDrain(ctx, r, decide)
}

// hook puts a hooked store under an engine.
func hook(t *testing.T, st store.Store, opts Options) (*hooked, *Engine) {
	t.Helper()
	h := &hooked{Store: st}
	e, err := New(h, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return h, e
}

// together has calls that come one after the other wait for each other, and
// serves them as one batch.
func together(t *testing.T, e *Engine, id string, calls ...func()) {
	t.Helper()
	if !e.lines.join(id, &job{done: make(chan struct{}), apply: func(*decide.Machine, *store.Loaded) error { return nil }}) {
		t.Fatal("the line has a leader")
	}
	e.lines.take(id)
	ended := make(chan struct{})
	for i, call := range calls {
		go func() {
			call()
			ended <- struct{}{}
		}()
		for e.lines.length(id) <= i {
			runtime.Gosched()
		}
	}
	e.lead(t.Context(), id, e.lines.take(id))
	for range calls {
		<-ended
	}
}

func (l *lineup) length(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines[id].waiting)
}

const withSignal = `
name: signalled
version: "1.0.0"
input: { type: object, required: [n] }
signals: { go: {} }
steps: [ { id: only, await: go } ]
`

func TestLineup_ACommandThatComesBeforeTheStartFindsNothing(t *testing.T) {
	_, engines := openEngines(t, 1, Options{})
	e := engines[0]
	if _, err := e.RegisterDefinition(t.Context(), []byte(withSignal), definition.YAML); err != nil {
		t.Fatal(err)
	}
	var signalled, cancelled error
	together(t, e, "e",
		func() { _, signalled = e.Signal(t.Context(), "e", "go", `{}`, "s") },
		func() { _, cancelled = e.Cancel(t.Context(), "e", "no more") },
		func() {
			s, err := e.Start(t.Context(), StartRequest{Workflow: "signalled", ExecutionID: "e", Input: `{"n":1}`})
			if err != nil || !s.Created {
				t.Errorf("the start: %+v, %v", s, err)
			}
		},
	)
	if CodeOf(signalled) != NotFound || CodeOf(cancelled) != NotFound {
		t.Errorf("the signal: %v; the cancellation: %v; want %s", signalled, cancelled, NotFound)
	}
	page, err := e.History(t.Context(), HistoryRequest{ExecutionID: "e"})
	if err != nil || len(page.Events) == 0 || page.Events[0].Type != "WorkflowCreated" {
		t.Errorf("the history: %+v, %v", page.Events, err)
	}
}

func TestLineup_AStartThatIsRefusedLeavesNothingToTheNext(t *testing.T) {
	st, engines := openEngines(t, 1, Options{})
	e := engines[0]
	if _, err := e.RegisterDefinition(t.Context(), []byte(withSignal), definition.YAML); err != nil {
		t.Fatal(err)
	}
	var refused error
	together(t, e, "e",
		func() {
			_, refused = e.Start(t.Context(), StartRequest{Workflow: "signalled", ExecutionID: "e", Tags: map[string]string{"of": "the first"}})
		},
		func() {
			s, err := e.Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e", Tags: map[string]string{"of": "the second"}})
			if err != nil || !s.Created {
				t.Errorf("the second start: %+v, %v", s, err)
			}
		},
	)
	if CodeOf(refused) != InvalidInput {
		t.Errorf("the first start: %v, want %s", refused, InvalidInput)
	}
	state, err := e.Execution(t.Context(), "e", 0)
	if err != nil || state.Workflow != "one" || state.Unit("only").Status != history.UnitScheduled {
		t.Errorf("the execution: %+v, %v", state, err)
	}
	l, err := st.Load(t.Context(), store.LoadRequest{ID: "e"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"of": "the second"}, l.Head.Tags); diff != "" {
		t.Error(diff)
	}
}

// Where -race is on, this is also about what the callers' answers are read from.
func TestLineup_ACallerThatHangsUpTakesNobodyAlong(t *testing.T) {
	st, _ := openEngines(t, 1, Options{})
	h, e := hook(t, st, Options{})
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	inCommit, goOn := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	h.commit = func(ctx context.Context, c store.Commit) error {
		if first.CompareAndSwap(false, true) {
			close(inCommit)
			<-goOn
		}
		return st.Commit(ctx, c)
	}
	leader, hangUp := context.WithCancel(t.Context())
	led := make(chan error)
	go func() {
		_, err := e.Cancel(leader, "e", "the leader's")
		led <- err
	}()
	<-inCommit
	hangUp()
	// One behind hangs up as well, while its command is under way or before.
	behind, hangUpToo := context.WithCancel(t.Context())
	follower := make(chan error)
	go func() {
		_, err := e.Start(behind, StartRequest{Workflow: "one", ExecutionID: "e"})
		follower <- err
	}()
	for e.lines.length("e") == 0 {
		runtime.Gosched()
	}
	hangUpToo()
	if err := <-follower; CodeOf(err) != Unavailable {
		t.Errorf("the one behind: %v, want %s", err, Unavailable)
	}
	close(goOn)
	if err := <-led; err != nil {
		t.Errorf("the leader's command was committed, and it heard %v", err)
	}
	state, err := e.Execution(t.Context(), "e", 0)
	if err != nil || state.Status != "CANCELLED" {
		t.Errorf("the execution: %+v, %v", state, err)
	}
}

func TestLineup_ABatchHasTheTimeOfTheLastOfItsCallers(t *testing.T) {
	soon, later := time.Now().Add(time.Second), time.Now().Add(2*time.Second)
	if got := endOf([]*job{{until: soon}, {until: later}}); !got.Equal(later) {
		t.Errorf("with two deadlines the end is %s, want the later, %s", got, later)
	}
	if got := endOf([]*job{{until: soon}, {}}); got.Before(later) {
		t.Errorf("with a caller without deadline the end is %s", got)
	}
}

func TestLineup_APanicEndsACallAndNotItsLine(t *testing.T) {
	st, _ := openEngines(t, 1, Options{})
	h, e := hook(t, st, Options{})
	h.commit = func(context.Context, store.Commit) error { panic("a fault in the store") }
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e"}); CodeOf(err) != Internal {
		t.Errorf("the call that panics: %v, want %s", err, Internal)
	}
	h.commit = nil
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e"}); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

func TestPass_ASignalWhoseOutcomeIsUnknownIsTakenOnce(t *testing.T) {
	st, _ := openEngines(t, 1, Options{})
	h, e := hook(t, st, Options{})
	if _, err := e.RegisterDefinition(t.Context(), []byte(withSignal), definition.YAML); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "signalled", ExecutionID: "e", Input: `{"n":1}`}); err != nil {
		t.Fatal(err)
	}
	h.commit = func(ctx context.Context, c store.Commit) error {
		return errors.Join(st.Commit(ctx, c), store.ErrUnknownOutcome) // the answer is lost
	}
	seq, err := e.Signal(t.Context(), "e", "go", `{}`, "")
	if err != nil {
		t.Fatal(err)
	}
	page, err := e.History(t.Context(), HistoryRequest{ExecutionID: "e"})
	if err != nil {
		t.Fatal(err)
	}
	var taken []uint64
	for _, event := range page.Events {
		if event.Type == "SignalReceived" {
			taken = append(taken, event.Seq)
		}
	}
	if diff := cmp.Diff([]uint64{seq}, taken); diff != "" {
		t.Errorf("the answer (-) and the signals in the history (+):\n%s", diff)
	}
}

func TestPass_ALockThatIsNotToBeHadIsTriedAgain(t *testing.T) {
	st, _ := openEngines(t, 1, Options{})
	h, e := hook(t, st, Options{})
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	h.commit = func(context.Context, store.Commit) error { return &store.LostError{} }
	busy := 0
	h.locked = func(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
		if busy++; busy < 3 {
			return errors.Join(store.ErrBusy)
		}
		return st.WithHeadLocked(ctx, r, decide)
	}
	if _, err := e.Cancel(t.Context(), "e", "enough"); err != nil {
		t.Errorf("after %d tries: %v", busy, err)
	}
}
