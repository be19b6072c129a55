package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"perigee/store"
	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
)

// gate is a store whose first commit is under way and kept from ending: it
// waits for a head that another transaction holds.
type gate struct {
	*postgres.Store
	open  func() // lets it end, and checks that it did well
	heads map[string]store.Head
}

// behindGate makes executions e0 to e4 and puts a gate before their commits. A
// group is written for so long before the next is, too.
func behindGate(t *testing.T, alone time.Duration) *gate {
	t.Helper()
	url := pgtest.Migrated(t)
	g := &gate{Store: open(t, postgres.Options{URL: url}), heads: map[string]store.Head{}}
	g.Groups(1, alone)
	for _, id := range []string{"gate", "e0", "e1", "e2", "e3", "e4"} {
		c := creation(id)
		c.Inserted = []store.Task{readyTask(id, "a")}
		commit(t, g, c)
		g.heads[id] = c.Head
	}
	tx, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM executions WHERE id = 'gate' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	first := g.start(t.Context(), following(g.heads["gate"]))
	waitFor(t, func() bool { return holdsUp(t, url) })
	g.open = func() {
		if err := tx.Rollback(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
	}
	return g
}

func (g *gate) start(ctx context.Context, c *store.Commit) <-chan error {
	done := make(chan error, 1)
	go func() { done <- g.Commit(ctx, *c) }()
	return done
}

// line starts commits and returns when all of them wait.
func (g *gate) line(t *testing.T, ctx context.Context, commits ...*store.Commit) (done []<-chan error) {
	t.Helper()
	for _, c := range commits {
		before := g.Waiting()
		done = append(done, g.start(ctx, c))
		waitFor(t, func() bool { return g.Waiting() == before+1 })
	}
	return done
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for !done() {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
}

// holdsUp reports whether a transaction waits for another's lock.
func holdsUp(t *testing.T, url string) (waits bool) {
	t.Helper()
	const sql = `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`
	if err := connect(t, url).QueryRow(t.Context(), sql).Scan(&waits); err != nil {
		t.Fatal(err)
	}
	return waits
}

// step moves an execution on: its row leaves the queue and another comes.
func step(h store.Head) *store.Commit {
	c := following(h)
	c.Removed = []store.TaskRemoval{{Key: h.ID + "/a", Guard: store.Guard{State: store.TaskReady}}}
	c.Inserted = []store.Task{readyTask(h.ID, "b")}
	c.Outbox = []store.Message{{ID: h.ID + "/m", Kind: "k", Source: h.ID, Target: "t", Payload: "{}", CreatedAtMS: 1}}
	c.Snapshot = &store.Snapshot{Seq: c.Head.LastSeq, Format: 1, Data: h.ID}
	return c
}

func TestGroup_CommitsThatMeetShareATransaction(t *testing.T) {
	t.Parallel()
	g := behindGate(t, time.Hour)
	created := creation("new")
	created.Inserted = []store.Task{readyTask("new", "a")}
	commits := []*store.Commit{&created}
	for i := range 5 {
		commits = append(commits, step(g.heads[fmt.Sprint("e", i)]))
	}
	done := g.line(t, t.Context(), commits...)
	before := g.Stats().Commits
	g.open()
	for i, err := range done {
		if err := <-err; err != nil {
			t.Errorf("commit %d: %v", i, err)
		}
	}
	if n := g.Stats().Commits - before; n != 2 {
		t.Errorf("%d transactions, want one for the gate and one for the others", n)
	}
	wantLastSeq(t, g, "new", 2)
	for i := range 5 {
		id := fmt.Sprint("e", i)
		l, err := g.Load(t.Context(), store.LoadRequest{ID: id})
		if err != nil || l.Head.LastSeq != 3 || l.Snapshot == nil || l.Snapshot.Data != id {
			t.Errorf("%s: %+v with %+v, %v", id, l.Head, l.Snapshot, err)
		}
		tasks, err := g.Tasks(t.Context(), id)
		if err != nil || len(tasks) != 1 || tasks[0].Unit != "b" {
			t.Errorf("%s has tasks %+v, %v", id, tasks, err)
		}
		messages, err := g.Outbox(t.Context(), id, 9)
		if err != nil || len(messages) != 1 {
			t.Errorf("%s has messages %+v, %v", id, messages, err)
		}
	}
}

func TestGroup_AMemberThatLostTakesNobodyAlong(t *testing.T) {
	t.Parallel()
	g := behindGate(t, time.Hour)
	stale, gone, child := following(g.heads["e1"]), step(g.heads["e2"]), following(g.heads["e3"])
	stale.Seen.Seq = 1
	gone.Removed[0].Key = "e2/gone"
	taken := creation("e0")
	child.Children = []store.NewExecution{{Head: taken.Head, Events: taken.Events}}
	done := g.line(t, t.Context(), step(g.heads["e0"]), stale, gone, child, step(g.heads["e4"]))
	g.open()
	var lost *store.LostError
	var exists *store.ChildExistsError
	errs := make([]error, len(done))
	for i := range done {
		errs[i] = <-done[i]
	}
	if errs[0] != nil || errs[4] != nil {
		t.Errorf("%v and %v of those whose guards held", errs[0], errs[4])
	}
	if !errors.As(errs[1], &lost) || lost.Task != "" {
		t.Errorf("%v of the one that saw an older head", errs[1])
	}
	if !errors.As(errs[2], &lost) || lost.Task != "e2/gone" {
		t.Errorf("%v of the one whose task was gone", errs[2])
	}
	if !errors.As(errs[3], &exists) || exists.ID != "e0" {
		t.Errorf("%v of the one whose child exists", errs[3])
	}
	for id, want := range map[string]uint64{"e0": 3, "e1": 2, "e2": 2, "e3": 2, "e4": 3} {
		if l, err := g.Load(t.Context(), store.LoadRequest{ID: id}); err != nil || l.Head.LastSeq != want {
			t.Errorf("%s: %+v, %v; want it at %d", id, l.Head, err, want)
		}
	}
}

func TestGroup_HasNoExecutionTwice(t *testing.T) {
	t.Parallel()
	g := behindGate(t, time.Hour)
	first := following(g.heads["e0"])
	second := following(first.Head)
	done := g.line(t, t.Context(), first, second, following(g.heads["e1"]))
	g.open()
	for i, err := range done {
		if err := <-err; err != nil {
			t.Errorf("commit %d: %v", i, err)
		}
	}
	wantLastSeq(t, g, "e0", 4)
}

func TestGroup_OneThatTakesLongHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	g := behindGate(t, time.Millisecond)
	for i := range 3 {
		commit(t, g, *step(g.heads[fmt.Sprint("e", i)]))
	}
	g.open()
}

// TestGroup_WhereGroupsWaitSeveralAreWrittenAtOnce: they last twice as long as
// they cost, so there is room for one beside the gate.
func TestGroup_WhereGroupsWaitSeveralAreWrittenAtOnce(t *testing.T) {
	t.Parallel()
	g := behindGate(t, time.Hour)
	g.Groups(8, time.Hour)
	g.GroupsTake(1)
	waits := g.line(t, t.Context(), step(g.heads["e0"]))
	g.GroupsTake(2)
	commit(t, g, *step(g.heads["e1"])) // takes along who waits, and passes the gate
	if err := <-waits[0]; err != nil {
		t.Error(err)
	}
	g.open()
	for _, id := range []string{"e0", "e1", "gate"} {
		if l, err := g.Load(t.Context(), store.LoadRequest{ID: id}); err != nil || l.Head.LastSeq != 3 {
			t.Errorf("%s: %+v, %v; want it at 3", id, l.Head, err)
		}
	}
}

func TestGroup_WhoGivesUpBeforeItFormedHasWrittenNothing(t *testing.T) {
	t.Parallel()
	g := behindGate(t, time.Hour)
	ctx, giveUp := context.WithCancel(t.Context())
	done := g.line(t, ctx, step(g.heads["e0"]))
	others := g.line(t, t.Context(), step(g.heads["e1"]))
	giveUp()
	if err := <-done[0]; !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("%v, want the end of its context and nothing more", err)
	}
	g.open()
	if err := <-others[0]; err != nil {
		t.Error(err)
	}
	wantLastSeq(t, g, "e0", 2)
}

// TestStep_LocksTheHeadBeforeTheRow: the other way round it and a claim, which
// takes the head first, would hold each other up.
func TestStep_LocksTheHeadBeforeTheRow(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	s := open(t, postgres.Options{URL: url})
	c := creation("e1")
	c.Inserted = []store.Task{readyTask("e1", "a")}
	commit(t, s, c)
	holder, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), `SELECT 1 FROM executions WHERE id = 'e1' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Commit(t.Context(), *step(c.Head)) }()
	waitFor(t, func() bool { return holdsUp(t, url) })
	exec(t, url, `SELECT 1 FROM tasks WHERE key = 'e1/a' FOR UPDATE NOWAIT`) // fails where it is locked
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if l, err := s.Load(t.Context(), store.LoadRequest{ID: "e1"}); err != nil || l.Head.LastSeq != 3 {
		t.Errorf("%+v, %v; want it at 3", l.Head, err)
	}
}
