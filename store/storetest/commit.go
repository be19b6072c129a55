package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"perigee/store"
)

var commitRules = []rule{
	{"CreatesAnExecutionWithItsEvents", func(t *testing.T, s store.Store) {
		c := creation("e1")
		c.Head.Tags = map[string]string{"region": "eu", "tier": "gold"}
		c.Head.ParentID, c.Head.ParentStep, c.Head.RootID, c.Head.DueAtMS = "p1", "sub", "r1", epoch+minute
		commit(t, s, c)
		equal(t, "loaded", store.Loaded{NowMS: epoch, Head: &c.Head, Events: c.Events}, load(t, s, "e1"))
	}},
	{"LosesAgainstAnExecutionThatExists", func(t *testing.T, s store.Store) {
		create(t, s, "e1")
		second := creation("e1", readyTask("e1", "a", 2))
		second.Head.Incarnation = 7_002
		err := s.Commit(t.Context(), second)
		if lost, ok := errors.AsType[*store.LostError](err); !ok || !lost.Exists {
			t.Fatalf("want a *store.LostError with Exists, got %v", err)
		}
		equal(t, "tasks", 0, len(tasksOf(t, s, "e1")))
		equal(t, "incarnation", int64(7_001), load(t, s, "e1").Head.Incarnation)
	}},
	{"AppendsAndMovesTheHead", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		c := following(h, 3)
		c.Head.Status, c.Head.LastAtMS, c.Head.DueAtMS = "COMPLETED", epoch+5, epoch+6
		c.Head.FinishedAtMS, c.Head.ErrorCount = epoch+5, 2
		commit(t, s, c)
		want := store.Loaded{NowMS: epoch, Head: &c.Head, Events: append(newEvents(1, 2, epoch), c.Events...)}
		equal(t, "loaded", want, load(t, s, "e1"))
	}},
	{"WithoutEventsChangesTheHeadOnly", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		c := following(h, 0)
		c.Head.ErrorCount, c.Head.DueAtMS = 3, epoch+minute
		commit(t, s, c)
		equal(t, "loaded", store.Loaded{NowMS: epoch, Head: &c.Head, Events: newEvents(1, 2, epoch)}, load(t, s, "e1"))
		c = following(c.Head, 0)
		c.Head.ErrorCount, c.Head.DueAtMS = 0, 0
		commit(t, s, c)
		equal(t, "head", c.Head, *load(t, s, "e1").Head)
	}},
	{"WithoutEventsIsGuardedToo", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		commit(t, s, following(h, 1))
		wantLost(t, s.Commit(t.Context(), following(h, 0)), "")
	}},
	{"LosesOnAnOlderSeq", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		commit(t, s, following(h, 1))
		stale := following(h, 2)
		stale.Inserted = []store.Task{readyTask("e1", "a", 3)}
		stale.Outbox = []store.Message{{ID: "m1", Source: "e1", Target: "p", Kind: "ended", Payload: "{}", CreatedAtMS: epoch}}
		stale.Snapshot = &store.Snapshot{Seq: 4, Format: 1, Data: "{}"}
		stale.Children = []store.NewExecution{{Head: newHead("e1.sub"), Events: newEvents(1, 2, epoch)}}
		wantLost(t, s.Commit(t.Context(), stale), "")
		loaded := load(t, s, "e1")
		equal(t, "last seq", uint64(3), loaded.Head.LastSeq)
		equal(t, "events", 3, len(loaded.Events))
		equal(t, "tasks", 0, len(tasksOf(t, s, "e1")))
		equal(t, "messages", 0, len(got(s.Outbox(t.Context(), "e1", 10))(t)))
		equal(t, "child", (*store.Head)(nil), load(t, s, "e1.sub").Head)
	}},
	{"LosesOnAnotherIncarnation", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		c := following(h, 1)
		c.Seen.Incarnation = 9
		wantLost(t, s.Commit(t.Context(), c), "")
	}},
	{"LosesWhereThereIsNoExecution", func(t *testing.T, s store.Store) {
		wantLost(t, s.Commit(t.Context(), following(newHead("e1"), 1)), "")
	}},
	{"WritesManyExecutionsAtOnceAsIfOneByOne", writesManyAtOnce},
	{"OnlyOneOfTwoOnTheSameSeqWins", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		const writers = 8
		errs := make([]error, writers)
		var group sync.WaitGroup
		for i := range writers {
			group.Go(func() { errs[i] = s.Commit(t.Context(), following(h, 1)) })
		}
		group.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			wantLost(t, err, "")
		}
		equal(t, "winners", 1, won)
		equal(t, "last seq", uint64(3), load(t, s, "e1").Head.LastSeq)
	}},
	{"OnlyOneOfTwoCreationsWins", func(t *testing.T, s store.Store) {
		const writers = 8
		errs := make([]error, writers)
		var group sync.WaitGroup
		for i := range writers {
			group.Go(func() {
				c := creation("e1")
				c.Head.Incarnation = int64(i + 1)
				errs[i] = s.Commit(t.Context(), c)
			})
		}
		group.Wait()
		winner := int64(0)
		for i, err := range errs {
			if lost, ok := errors.AsType[*store.LostError](err); ok && lost.Exists {
				continue
			}
			must(t, err)
			equal(t, "another winner", int64(0), winner)
			winner = int64(i + 1)
		}
		equal(t, "incarnation", winner, load(t, s, "e1").Head.Incarnation)
	}},
	{"KeepsOneSnapshot", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		c := following(h, 2)
		c.Snapshot = &store.Snapshot{Seq: 4, Format: 1, Data: `{"a":1}`}
		commit(t, s, c)
		loaded := load(t, s, "e1")
		equal(t, "snapshot", c.Snapshot, loaded.Snapshot)
		equal(t, "events after it", 0, len(loaded.Events))
		c = following(c.Head, 2)
		c.Snapshot = &store.Snapshot{Seq: 5, Format: 2, Data: `{"a":2}`}
		commit(t, s, c)
		loaded = load(t, s, "e1")
		equal(t, "snapshot", c.Snapshot, loaded.Snapshot)
		equal(t, "events after it", c.Events[1:], loaded.Events)
	}},
	{"CreatesChildrenWithTheirParent", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		child := store.NewExecution{Head: newHead("e1.sub"), Events: newEvents(1, 2, epoch)}
		child.Head.ParentID, child.Head.ParentStep, child.Head.RootID, child.Head.DueAtMS = "e1", "sub", "e1", epoch
		child.Head.Tags = map[string]string{"k": "v"}
		c := following(h, 1)
		c.Children = []store.NewExecution{child}
		commit(t, s, c)
		equal(t, "child", store.Loaded{NowMS: epoch, Head: &child.Head, Events: child.Events}, load(t, s, "e1.sub"))
		byTag := got(s.Executions(t.Context(), store.Filter{Tags: map[string]string{"k": "v"}, Limit: 9}))(t)
		equal(t, "by tag", []string{"e1.sub"}, ids(byTag))
	}},
	{"FailsWholeWhereAChildExists", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		taken := create(t, s, "e1.b")
		c := following(h, 1)
		c.Children = []store.NewExecution{
			{Head: newHead("e1.a"), Events: newEvents(1, 2, epoch)},
			{Head: newHead("e1.b"), Events: newEvents(1, 2, epoch)},
		}
		c.Children[1].Head.Incarnation = 9
		err := s.Commit(t.Context(), c)
		exists, ok := errors.AsType[*store.ChildExistsError](err)
		if !ok || (exists.ID != "" && exists.ID != "e1.b") {
			t.Fatalf("want a *store.ChildExistsError for e1.b, got %v", err)
		}
		equal(t, "first child", (*store.Head)(nil), load(t, s, "e1.a").Head)
		equal(t, "second child", taken, *load(t, s, "e1.b").Head)
		equal(t, "parent", h, *load(t, s, "e1").Head)
	}},
	{"LosesRatherThanComplainingOfAChild", func(t *testing.T, s store.Store) {
		// Two calls that start the same child: the slower one sees the lost head.
		h := create(t, s, "e1")
		c := following(h, 1)
		c.Children = []store.NewExecution{{Head: newHead("e1.a"), Events: newEvents(1, 2, epoch)}}
		commit(t, s, c)
		wantLost(t, s.Commit(t.Context(), c), "")
	}},
	{"TakesManyEventsAtOnce", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		c := following(h, 2_500)
		commit(t, s, c)
		equal(t, "events", c.Events, got(s.History(t.Context(), "e1", 2, 0, 0))(t))
	}},
}

// writesManyAtOnce takes executions through two commits each, all at once; every
// third loses its second for a task that is not there.
func writesManyAtOnce(t *testing.T, s store.Store) {
	const n = 48
	name := func(i int) string { return fmt.Sprintf("e%02d", i) }
	heads, errs := make([]store.Head, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			id := name(i)
			first := creation(id, readyTask(id, "a", 2), readyTask(id, "b", 2))
			first.Head.Tags = map[string]string{"number": id}
			if errs[i] = s.Commit(t.Context(), first); errs[i] != nil {
				return
			}
			second := following(first.Head, 3)
			second.Removed = []store.TaskRemoval{{Key: id + "/a", Guard: store.Guard{State: store.TaskReady}}}
			if i%3 == 0 {
				second.Removed[0].Key = id + "/none"
			}
			second.Marked = []store.TaskMark{{Key: id + "/b", Guard: store.Guard{State: store.TaskReady}}}
			second.Inserted = []store.Task{dispatchedTask(id, "c", "s1", "secret of "+id)}
			second.Snapshot = &store.Snapshot{Seq: 5, Format: 1, Data: "of " + id}
			second.Children = []store.NewExecution{{Head: newHead(id + ".sub"), Events: newEvents(1, 2, epoch)}}
			second.Outbox = []store.Message{newMessage(id+"/m", id, epoch)}
			errs[i] = s.Commit(t.Context(), second)
			heads[i] = second.Head
			if i%3 == 0 {
				heads[i] = first.Head
			}
		})
	}
	all.Wait()
	for i := range n {
		id, lost := name(i), i%3 == 0
		if lost {
			wantLost(t, errs[i], id+"/none")
		} else {
			must(t, errs[i])
		}
		loaded := load(t, s, id)
		equal(t, id, heads[i], *loaded.Head)
		equal(t, id+": snapshot", !lost, loaded.Snapshot != nil && loaded.Snapshot.Data == "of "+id)
		equal(t, id+": child", !lost, load(t, s, id+".sub").Head != nil)
		equal(t, id+": messages", map[bool]int{true: 0, false: 1}[lost], len(got(s.Outbox(t.Context(), id, 9))(t)))
		states := map[string]store.TaskState{}
		for _, task := range tasksOf(t, s, id) {
			states[task.Unit] = task.State
		}
		want := map[string]store.TaskState{"b": store.TaskHeld, "c": store.TaskDispatched}
		if lost {
			want = map[string]store.TaskState{"a": store.TaskReady, "b": store.TaskReady}
		}
		equal(t, id+": tasks", want, states)
		equal(t, id+": events", int(heads[i].LastSeq), len(got(s.History(t.Context(), id, 0, 99, 0))(t)))
	}
}
