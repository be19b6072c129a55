package engine

import (
	"context"
	"errors"
	"testing"

	"perigee/engine/decide"
	"perigee/engine/history"
	"perigee/store"
)

// damaged is a store that gives an execution back as spoil leaves it.
type damaged struct {
	store.Store
	spoil func(r store.LoadRequest, l *store.Loaded)
}

func (d *damaged) Load(ctx context.Context, r store.LoadRequest) (store.Loaded, error) {
	l, err := d.Store.Load(ctx, r)
	if err == nil && l.Head != nil {
		d.spoil(r, &l)
	}
	return l, err
}

func (d *damaged) WithHeadLocked(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	return d.Store.WithHeadLocked(ctx, r, func(l store.Loaded) (*store.Commit, error) {
		d.spoil(r, &l)
		return decide(l)
	})
}

// onDamage is an engine without memories on a store that gives back an execution
// "e" so, which waits for the worker of its only step.
func onDamage(t *testing.T, spoil func(r store.LoadRequest, l *store.Loaded)) (*Engine, PollRequest) {
	t.Helper()
	st, engines := openEngines(t, 1, Options{})
	poll := PollRequest{SessionID: sessionOf(t, engines[0])}
	if _, err := engines[0].Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	e, err := New(&damaged{st, spoil}, Options{CacheBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, poll
}

func TestDamage_ASnapshotThatCannotBeReadIsPassedOver(t *testing.T) {
	e, poll := onDamage(t, func(r store.LoadRequest, l *store.Loaded) {
		if r.SnapshotFormat != store.NoSnapshot {
			l.Snapshot, l.Events = &store.Snapshot{Seq: l.Head.LastSeq, Format: history.Format, Data: "{"}, nil
		}
	})
	if state, err := e.Execution(t.Context(), "e", 0); err != nil || state.Status != history.Running {
		t.Errorf("read: %+v, %v", state, err)
	}
	p, err := e.Poll(t.Context(), poll)
	if err != nil || len(p.Tasks) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	answer, err := e.Results(t.Context(), ResultsRequest{Results: []Result{{Token: p.Tasks[0].Token}}})
	if err != nil || !answer.Acks[0].Accepted {
		t.Errorf("the result: %+v, %v", answer, err)
	}
}

// Reads happen in goroutines of the server's own, too, where a panic would end it.
func TestDamage_AStateThatPanicsEndsNothing(t *testing.T) {
	st, engines := openEngines(t, 1, Options{})
	if _, err := engines[0].Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	h := headOfID(t, st, "e")
	spoilt := warmState{id: "e", seen: store.Seen{Incarnation: h.Incarnation, Seq: h.LastSeq}, machine: &decide.Machine{}}
	_, _, err := engines[0].materialize("e", &store.Loaded{Head: &h}, spoilt, nil)
	var broken *decisionError
	if !errors.As(err, &broken) {
		t.Errorf("got %v", err)
	}
}

// A database that is away is no damage.
func TestDoctor_FindsNothingWhereItCannotLook(t *testing.T) {
	st, engines := openEngines(t, 1, Options{})
	if _, err := engines[0].Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: "e"}); err != nil {
		t.Fatal(err)
	}
	e, err := New(&away{st}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	_, err = e.Doctor(t.Context(), false, func(f Finding) { t.Errorf("found %+v", f) })
	if !errors.Is(err, errorf(Unavailable, "")) {
		t.Errorf("got %v, want %s", err, Unavailable)
	}
	if _, err := e.Definition(t.Context(), "one", ""); !errors.Is(err, errorf(Unavailable, "")) {
		t.Errorf("a definition: got %v, want %s", err, Unavailable)
	}
	if _, err := e.Graph(t.Context(), "one", ""); !errors.Is(err, errorf(Unavailable, "")) {
		t.Errorf("a graph: got %v, want %s", err, Unavailable)
	}
}

// away is a store that can only tell what there is.
type away struct{ store.Store }

func (*away) History(context.Context, string, uint64, int, int) ([]store.Event, error) {
	return nil, store.ErrUnavailable
}

func (*away) Definition(context.Context, string) (store.Definition, error) {
	return store.Definition{}, store.ErrUnavailable
}
