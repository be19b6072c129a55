package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/definition"
	"perigee/store"
)

const sleeps = `
name: sleeps
version: "1.0.0"
steps: [ { id: nap, sleep: 10s } ]
`

const fairEpoch = 1_800_000_000_000

// atEpoch is an engine whose clock stands where the test sets it.
func atEpoch(t *testing.T) (st store.Store, e *Engine, now *int64) {
	t.Helper()
	now = new(int64(fairEpoch))
	st, engines := openEngines(t, 1, Options{Clock: func() int64 { return *now }})
	e = engines[0]
	if _, err := e.RegisterDefinition(t.Context(), []byte(sleeps), definition.YAML); err != nil {
		t.Fatal(err)
	}
	return st, e, now
}

// sleeper starts an execution that is due in ten seconds.
func sleeper(t *testing.T, e *Engine, id string) {
	t.Helper()
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "sleeps", ExecutionID: id}); err != nil {
		t.Fatal(err)
	}
}

// fromTheFuture gives an execution an event that this release cannot read: it
// fails whenever it is looked at, and nothing may be written about it.
func fromTheFuture(t *testing.T, st store.Store, id string) {
	t.Helper()
	l, err := st.Load(t.Context(), store.LoadRequest{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	h := *l.Head
	h.LastSeq++
	err = st.Commit(t.Context(), store.Commit{
		Seen: store.Seen{Incarnation: h.Incarnation, Seq: l.Head.LastSeq}, Head: h,
		Events: []store.Event{{Seq: h.LastSeq, Type: "FromTheFuture", AtMS: h.LastAtMS, Data: "{}"}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func headOfID(t *testing.T, st store.Store, id string) store.Head {
	t.Helper()
	l, err := st.Load(t.Context(), store.LoadRequest{ID: id})
	if err != nil || l.Head == nil {
		t.Fatalf("%s: %+v, %v", id, l.Head, err)
	}
	return *l.Head
}

func TestTick_AFewThatAlwaysFailDoNotKeepOthersFromTheirTurn(t *testing.T) {
	st, e, now := atEpoch(t)
	for i := range 3 {
		id := fmt.Sprint("bad", i)
		sleeper(t, e, id)
		fromTheFuture(t, st, id)
	}
	*now += 1000
	sleeper(t, e, "good")
	*now += 10_000
	var reports []TickReport
	for range 3 {
		r, err := e.Tick(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, TickReport{Advanced: r.Advanced, Parked: r.Parked, More: r.More})
	}
	want := []TickReport{{Advanced: 2, Parked: 2, More: true}, {Advanced: 2, Parked: 1, More: true}, {}}
	if diff := cmp.Diff(want, reports); diff != "" {
		t.Error(diff)
	}
	if s := headOfID(t, st, "good").Status; s != "COMPLETED" {
		t.Errorf("the one behind them is %s", s)
	}
	// They get their turn again, less and less often.
	var turns []int
	for range 8 {
		*now += 1000
		r, err := e.Tick(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		turns = append(turns, r.Advanced)
	}
	if diff := cmp.Diff([]int{3, 0, 3, 0, 0, 0, 3, 0}, turns); diff != "" {
		t.Error(diff)
	}
	if h := headOfID(t, st, "bad0"); h.ErrorCount != 0 {
		t.Errorf("something was written about the history of a newer release: %+v", h)
	}
}

func TestPoll_SeesToDueWorkBehindWhatAlwaysFails(t *testing.T) {
	st, e, now := atEpoch(t)
	session := sessionOf(t, e)
	for i := range 3 {
		id := fmt.Sprint("bad", i)
		sleeper(t, e, id)
		fromTheFuture(t, st, id)
	}
	*now += 1000
	sleeper(t, e, "good")
	*now += 10_000
	for range 2 {
		if _, err := e.Poll(t.Context(), PollRequest{SessionID: session}); err != nil {
			t.Fatal(err)
		}
	}
	if s := headOfID(t, st, "good").Status; s != "COMPLETED" {
		t.Errorf("the one behind them is %s", s)
	}
}

func TestTick_MessagesThatCannotBeDeliveredDoNotHoldUpOthers(t *testing.T) {
	st, e, now := atEpoch(t)
	for _, id := range []string{"bad", "good"} {
		sleeper(t, e, id)
	}
	message := func(id, source string) store.Message {
		*now++
		return store.Message{ID: id, Kind: messageChildEnded, Source: source, Target: "nobody", Unit: "u", Payload: "{}", CreatedAtMS: *now}
	}
	h := headOfID(t, st, "good")
	c := store.Commit{Seen: store.Seen{Incarnation: h.Incarnation, Seq: h.LastSeq}, Head: h}
	for i := range deliverBatch {
		c.Outbox = append(c.Outbox, message(fmt.Sprint("m", i), "bad"))
	}
	c.Outbox = append(c.Outbox, message("last", "good"))
	if err := st.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	fromTheFuture(t, st, "bad")
	*now += 2 * reportedAgeMS
	delivered := 0
	for range 2 {
		r, err := e.Tick(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		delivered += r.Delivered
	}
	if delivered != 1 {
		t.Errorf("%d messages were delivered, want the last", delivered)
	}
}

func TestTick_AnExecutionWithoutItsDefinitionIsParked(t *testing.T) {
	st, e, now := atEpoch(t)
	err := st.Commit(t.Context(), store.Commit{
		Head:   store.Head{ID: "e", Incarnation: 1, Status: "RUNNING", DefinitionHash: "sha256:none", LastSeq: 1, LastAtMS: *now, CreatedAtMS: *now, DueAtMS: *now},
		Events: []store.Event{{Seq: 1, Type: "WorkflowStarted", AtMS: *now, Data: "{}"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := e.Tick(t.Context(), 10); err != nil || r.Parked != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if h := headOfID(t, st, "e"); h.ErrorCount != 1 || h.DueAtMS != *now+parkFirst.Milliseconds() {
		t.Errorf("it is parked %d times, until %d", h.ErrorCount, h.DueAtMS)
	}
}

func TestTick_ADecisionThatTheDatabaseCannotTakeIsParked(t *testing.T) {
	st, e, now := atEpoch(t)
	sleeper(t, e, "e")
	*now += 10_000
	h, e := hook(t, st, Options{Clock: func() int64 { return *now }})
	h.commit = func(ctx context.Context, c store.Commit) error {
		if len(c.Events) > 0 {
			return store.ErrTooLarge
		}
		return st.Commit(ctx, c)
	}
	if r, err := e.Tick(t.Context(), 10); err != nil || r.Parked != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if h := headOfID(t, st, "e"); h.ErrorCount != 1 || h.DueAtMS != *now+parkFirst.Milliseconds() {
		t.Errorf("it is parked %d times, until %d", h.ErrorCount, h.DueAtMS)
	}
}

func TestAsides_AreBounded(t *testing.T) {
	var a asides
	for i := range maxAsides + 5 {
		a.failed(fmt.Sprint(i), int64(i))
	}
	if n := len(a.waiting(0)); n != maxAsides {
		t.Errorf("%d wait, want %d", n, maxAsides)
	}
}

// A frozen process may wake up with a monotonic clock that stood still.
func TestClock_IsNotTrustedWhereTheProcessStoodStill(t *testing.T) {
	e := &Engine{}
	e.clock.learn(fairEpoch)
	if _, ok := e.clock.now(e); !ok {
		t.Error("an answer of this moment is not trusted")
	}
	e.clock.wall = e.clock.wall.Add(-5 * time.Second) // the wall clock went on
	if _, ok := e.clock.now(e); ok {
		t.Error("an answer is trusted although a clock stood still")
	}
}

// An answer that was long on its way names a moment before the one that is known:
// what starts after it must not look older than what started before.
func TestClock_DoesNotStepBackForALateAnswer(t *testing.T) {
	_, engines := openEngines(t, 1, Options{})
	e := engines[0]
	e.clock.learn(fairEpoch)
	before, _ := e.clock.now(e)
	e.clock.learn(fairEpoch - 20)
	if after, _ := e.clock.now(e); after < before {
		t.Errorf("%d ms after %d", after, before)
	}
	e.clock.at = e.clock.at.Add(-2 * keptFor) // long ago
	e.clock.learn(fairEpoch)
	if after, _ := e.clock.now(e); after > fairEpoch+keptFor.Milliseconds() {
		t.Errorf("%d ms ahead of what the database said", after-fairEpoch)
	}
}

// A parent with many children may be cancelled at once.
func TestTick_SaysWhetherMessagesAreLeft(t *testing.T) {
	st, e, now := atEpoch(t)
	sleeper(t, e, "good")
	h := headOfID(t, st, "good")
	c := store.Commit{Seen: store.Seen{Incarnation: h.Incarnation, Seq: h.LastSeq}, Head: h}
	const messages = 2*deliverBatch + 1
	for i := range messages {
		c.Outbox = append(c.Outbox, store.Message{
			ID: fmt.Sprint("m", i), Kind: messageChildEnded, Source: "good", Target: "nobody", Unit: "u", Payload: "{}", CreatedAtMS: *now,
		})
	}
	if err := st.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	*now += 2 * reportedAgeMS
	var reports []TickReport
	for range 3 {
		r, err := e.Tick(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, TickReport{Delivered: r.Delivered, More: r.More})
	}
	want := []TickReport{{Delivered: deliverBatch, More: true}, {Delivered: deliverBatch, More: true}, {Delivered: 1}}
	if diff := cmp.Diff(want, reports); diff != "" {
		t.Error(diff)
	}
}

func TestSweep_RemovesSessionsThatEndedLongAgoOnceAnHour(t *testing.T) {
	_, e, now := atEpoch(t)
	left := func() int {
		t.Helper()
		workers, err := e.Workers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(workers)
	}
	sessionOf(t, e)
	e.Sweep(t.Context())
	if n := left(); n != 1 {
		t.Errorf("%d workers are left of one that has just come", n)
	}
	*now += sweepEvery.Milliseconds() - 1
	e.Sweep(t.Context())
	*now += 2
	if n := left(); n != 1 {
		t.Errorf("%d workers are left within the hour", n)
	}
	e.Sweep(t.Context())
	if n := left(); n != 0 {
		t.Errorf("%d workers are left of one that went an hour ago", n)
	}
}

// A command whose commit is too large is its caller's affair: the execution goes on.
func TestSignal_OneThatTheDatabaseCannotTakeParksNothing(t *testing.T) {
	st, e, now := atEpoch(t)
	sleeper(t, e, "e")
	h, e := hook(t, st, Options{Clock: func() int64 { return *now }})
	h.commit = func(context.Context, store.Commit) error { return store.ErrTooLarge }
	if _, err := e.Cancel(t.Context(), "e", "enough"); CodeOf(err) != PayloadTooLarge {
		t.Errorf("got %v, want %s", err, PayloadTooLarge)
	}
	h.commit = nil
	if h := headOfID(t, st, "e"); h.ErrorCount != 0 || h.Status != "RUNNING" {
		t.Errorf("its head: %+v", h)
	}
}

// Whoever was faster has looked as well: a look that lost does not try again.
func TestTick_ALookThatLosesARaceIsDropped(t *testing.T) {
	st, e, now := atEpoch(t)
	sleeper(t, e, "e")
	*now += 10_000
	h, e := hook(t, st, Options{Clock: func() int64 { return *now }})
	commits, locks := 0, 0
	h.commit = func(context.Context, store.Commit) error { commits++; return &store.LostError{} }
	h.locked = func(context.Context, store.LoadRequest, func(store.Loaded) (*store.Commit, error)) error {
		locks++
		return &store.LostError{}
	}
	if r, err := e.Tick(t.Context(), 10); err != nil || r.Parked != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if commits != 1 || locks != 0 {
		t.Errorf("it tried %d commits and %d locks, want one commit", commits, locks)
	}
}
