package engine

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/store"
)

// heldPoll is a poll that is held, and what became of it.
type heldPoll struct {
	polled Polled
	err    error
}

// holdPoll polls in the background and returns when the poll is held.
func holdPoll(ctx context.Context, e *Engine, session string) <-chan heldPoll {
	before := e.hub.opened()
	got := make(chan heldPoll, 1)
	go func() {
		p, err := e.Poll(ctx, PollRequest{SessionID: session, Wait: time.Minute})
		got <- heldPoll{p, err}
	}()
	for e.hub.opened() == before {
		runtime.Gosched()
	}
	return got
}

func TestPoll_EndsWithItsSession(t *testing.T) {
	_, engines := openEngines(t, 1, Options{HoldPolls: true})
	e := engines[0]
	session := sessionOf(t, e)
	got := holdPoll(t.Context(), e, session)
	if err := e.Unregister(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	if p := <-got; CodeOf(p.err) != UnknownSession || p.err == nil {
		t.Errorf("the poll got %+v, %v; want %s", p.polled, p.err, UnknownSession)
	}
}

func TestPoll_ATaskThatIsHandedToASessionWhileItEndsIsGivenBack(t *testing.T) {
	st, _ := openEngines(t, 1, Options{})
	h, e := hook(t, st, Options{HoldPolls: true})
	session := sessionOf(t, e)
	got := holdPoll(t.Context(), e, session)
	inCommit, goOn, started := make(chan struct{}), make(chan struct{}), make(chan error)
	h.commit = func(ctx context.Context, c store.Commit) error {
		if c.Seen.Seq == 0 {
			close(inCommit)
			<-goOn
		}
		return st.Commit(ctx, c)
	}
	go func() {
		_, err := e.Start(context.Background(), StartRequest{Workflow: "one", ExecutionID: "e"})
		started <- err
	}()
	<-inCommit // the poll is reserved
	if err := e.Unregister(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if p := <-got; CodeOf(p.err) != UnknownSession || len(p.polled.Tasks) > 0 {
		t.Errorf("the poll got %+v, %v; want %s", p.polled, p.err, UnknownSession)
	}
	p, err := e.Poll(t.Context(), PollRequest{SessionID: sessionOf(t, e)})
	if err != nil || len(p.Tasks) != 1 || !p.Tasks[0].Redelivery {
		t.Errorf("the next worker gets %+v, %v", p.Tasks, err)
	}
}

func TestPoll_ASignalThatWasOfNoUseGoesOn(t *testing.T) {
	st, _ := openEngines(t, 1, Options{})
	h, e := hook(t, st, Options{HoldPolls: true})
	one, two := sessionOf(t, e), sessionOf(t, e)
	var away atomic.Bool
	h.claim = func(ctx context.Context, r store.ClaimRequest) (store.Claimed, error) {
		switch {
		case !away.Load():
			return st.Claim(ctx, r)
		case r.Session == hashSecret(one):
			return store.Claimed{}, store.ErrUnavailable
		}
		<-ctx.Done()
		return store.Claimed{}, ctx.Err()
	}
	first := holdPoll(t.Context(), e, one)
	ctx, hangUp := context.WithCancel(t.Context())
	second := holdPoll(ctx, e, two)
	away.Store(true)
	e.hub.wakeQueue("a.step@1.0.0/any")
	if p := <-first; CodeOf(p.err) != Unavailable {
		t.Errorf("the first poll: %v", p.err)
	}
	if e.hub.opened() != 0 {
		t.Error("the second poll waits still")
	}
	hangUp()
	<-second
}

// Where there are no locks, claims that meet have conflicts.
func TestPoll_ThatOthersWereFasterThanGetsNothing(t *testing.T) {
	st, _ := openEngines(t, 1, Options{})
	h, e := hook(t, st, Options{})
	session := sessionOf(t, e)
	h.claim = func(context.Context, store.ClaimRequest) (store.Claimed, error) {
		return store.Claimed{}, store.ErrBusy
	}
	if p, err := e.Poll(t.Context(), PollRequest{SessionID: session}); err != nil || len(p.Tasks) > 0 || p.NextPoll == 0 {
		t.Errorf("the poll got %+v, %v", p, err)
	}
}

func TestPoll_TasksAreNotKeptFromTheirWorkerByDueWork(t *testing.T) {
	t.Parallel()
	st, e, now := atEpoch(t)
	session := sessionOf(t, e)
	sleeper(t, e, "due")
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	*now += 10_000
	h, e := hook(t, st, Options{Clock: func() int64 { return *now }})
	h.commit = func(ctx context.Context, _ store.Commit) error {
		<-ctx.Done() // a database that hangs
		return ctx.Err()
	}
	began := time.Now()
	p, err := e.Poll(t.Context(), PollRequest{SessionID: session})
	if err != nil || len(p.Tasks) != 1 {
		t.Errorf("the poll got %+v, %v", p, err)
	}
	if took := time.Since(began); took > callTimeout/2 {
		t.Errorf("it took %s", took)
	}
}

// One execution that cannot be decided is no reason to take a worker for dead.
func TestHeartbeat_OfAnAttemptThatCannotBeDecidedFindsTheOthers(t *testing.T) {
	st, e, now := atEpoch(t)
	session := sessionOf(t, e)
	for _, id := range []string{"bad", "good"} {
		if _, err := e.Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: id}); err != nil {
			t.Fatal(err)
		}
		if p, err := e.Poll(t.Context(), PollRequest{SessionID: session}); err != nil || len(p.Tasks) != 1 {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	fromTheFuture(t, st, "bad")
	*now += 11_000
	if _, err := e.Heartbeat(t.Context(), session, []string{}); err != nil {
		t.Errorf("the heartbeat: %v", err)
	}
	row, err := st.Task(t.Context(), "good/only")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(store.TaskReady, row.State); diff != "" || !row.Redelivery {
		t.Errorf("what was never received: %s", diff)
	}
	if err := e.Unregister(t.Context(), session); err != nil {
		t.Errorf("the end of the session: %v", err)
	}
}
