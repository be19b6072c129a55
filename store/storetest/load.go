package storetest

import (
	"fmt"
	"sync"
	"testing"

	"perigee/store"
)

var loadRules = []rule{
	{"SaysWhereThereIsNothing", func(t *testing.T, s store.Store) {
		equal(t, "loaded", store.Loaded{NowMS: epoch}, load(t, s, "e1"))
	}},
	{"ReadsOnlyWhatIsNotKnown", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		c := following(h, 3)
		c.Snapshot = &store.Snapshot{Seq: 4, Format: 1, Data: "{}"}
		commit(t, s, c)
		for seq, want := range map[uint64][]store.Event{2: c.Events, 3: c.Events[1:], 4: c.Events[2:], 5: nil} {
			known := store.Seen{Incarnation: h.Incarnation, Seq: seq}
			loaded := got(s.Load(t.Context(), store.LoadRequest{ID: "e1", Known: known, NowMS: epoch}))(t)
			equal(t, fmt.Sprintf("after %d", seq), store.Loaded{NowMS: epoch, Head: &c.Head, Events: want}, loaded)
		}
	}},
	{"IgnoresWhatCannotBeKnown", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		c := following(h, 3)
		c.Snapshot = &store.Snapshot{Seq: 4, Format: 1, Data: "{}"}
		commit(t, s, c)
		want := store.Loaded{NowMS: epoch, Head: &c.Head, Snapshot: c.Snapshot, Events: c.Events[2:]}
		for _, known := range []store.Seen{{Incarnation: 9, Seq: 3}, {Incarnation: h.Incarnation, Seq: 6}} {
			loaded := got(s.Load(t.Context(), store.LoadRequest{ID: "e1", Known: known, NowMS: epoch}))(t)
			equal(t, fmt.Sprintf("known %v", known), want, loaded)
		}
	}},
	{"PassesOverSnapshotsOfAnotherFormat", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		c := following(h, 3)
		c.Snapshot = &store.Snapshot{Seq: 4, Format: 1, Data: "{}"}
		commit(t, s, c)
		for _, format := range []int{2, store.NoSnapshot} {
			loaded := got(s.Load(t.Context(), store.LoadRequest{ID: "e1", SnapshotFormat: format, NowMS: epoch}))(t)
			equal(t, "snapshot", (*store.Snapshot)(nil), loaded.Snapshot)
			equal(t, "events from the first on", c.Head.LastSeq, uint64(len(loaded.Events)))
		}
		loaded := got(s.Load(t.Context(), store.LoadRequest{ID: "e1", SnapshotFormat: 1, NowMS: epoch}))(t)
		equal(t, "snapshot", c.Snapshot, loaded.Snapshot)
	}},
	{"BringsReportsOldestFirst", func(t *testing.T, s store.Store) {
		var rows []store.Task
		for _, unit := range []string{"a", "b", "c", "d"} {
			rows = append(rows, dispatchedTask("e1", unit, "s1", "secret-"+unit))
		}
		create(t, s, "e1", rows...)
		create(t, s, "e2", dispatchedTask("e2", "a", "s1", "secret-2a"))
		retryAfter := int64(1_500)
		reports := []store.Report{
			{Key: "e1/c", TokenHash: hashOf("secret-c"), Success: true, Payload: `{"c":1}`, AtMS: epoch + 1},
			{Key: "e1/a", TokenHash: hashOf("secret-a"), Payload: `{"code":"A"}`, RetryAfterMS: &retryAfter, AtMS: epoch + 2},
			{Key: "e1/b", TokenHash: hashOf("secret-b"), Success: true, Payload: `{"b":1}`, AtMS: epoch + 2},
		}
		for _, i := range []int{2, 0, 1} {
			report := reports[i]
			report.NowMS, report.AtMS = report.AtMS, 0
			equal(t, "reported", true, got(s.Report(t.Context(), report))(t))
		}
		equal(t, "reports", reports, load(t, s, "e1").Reported)
	}},
	{"BringsAttemptsWhoseMomentHasPassed", func(t *testing.T, s store.Store) {
		register(t, s, "s1", epoch-minute)
		late := dispatchedTask("e1", "late", "s1", "secret-1")
		late.SuspectAtMS, late.DueAtMS = epoch+1, epoch+10
		orphan := dispatchedTask("e1", "orphan", "gone", "secret-2")
		orphan.DueAtMS = epoch + 9
		later := dispatchedTask("e1", "later", "s1", "secret-3")
		later.DueAtMS = epoch + 11
		never := dispatchedTask("e1", "never", "builtin:http", "secret-4")
		never.DueAtMS = 0
		waiting := readyTask("e1", "waiting", 2)
		waiting.DueAtMS = epoch
		create(t, s, "e1", late, orphan, later, never, waiting)
		create(t, s, "e2", dispatchedTask("e2", "a", "s1", "secret-5"))
		want := []store.DueTask{
			{Key: late.Key, Unit: "late", TokenHash: late.TokenHash, Session: "s1", WorkerID: "w1", DispatchedMS: epoch,
				DeadlineMS: epoch + minute, SuspectAtMS: epoch + 1, LastSeenMS: epoch - minute},
			{Key: orphan.Key, Unit: "orphan", TokenHash: orphan.TokenHash, Session: "gone", WorkerID: "w1", DispatchedMS: epoch,
				DeadlineMS: epoch + minute},
		}
		r := store.LoadRequest{ID: "e1", DueTasks: true, NowMS: epoch + 10}
		equal(t, "due, by key", want, got(s.Load(t.Context(), r))(t).Due)
		r.DueTasks = false
		equal(t, "due, not asked for", 0, len(got(s.Load(t.Context(), r))(t).Due))
	}},
	{"IsOneSnapshot", func(t *testing.T, s store.Store) {
		// While a writer commits, every load fits together: the events end where
		// the head does, and the one row carries the head's seq.
		h := create(t, s, "e1", readyTask("e1", "a", 2))
		var group sync.WaitGroup
		stop := make(chan struct{})
		for range 3 {
			group.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					loaded, err := s.Load(t.Context(), store.LoadRequest{ID: "e1", NowMS: epoch})
					if err != nil {
						t.Error(err)
						return
					}
					last := loaded.Events[len(loaded.Events)-1].Seq
					if loaded.Head.LastSeq != last || uint64(len(loaded.Events)) != last {
						t.Errorf("head at %d with %d events up to %d", loaded.Head.LastSeq, len(loaded.Events), last)
						return
					}
				}
			})
		}
		for range 50 {
			c := following(h, 2)
			commit(t, s, c)
			h = c.Head
		}
		close(stop)
		group.Wait()
	}},
}
