package storetest

import (
	"errors"
	"fmt"
	"testing"

	"perigee/store"
)

// rowsInEachState are rows as they stand after a commit, a claim, a report and
// the start of winding down, and the guard that fits each.
func rowsInEachState() (rows []store.Task, guards []store.Guard) {
	ready := readyTask("e1", "ready", 2)
	held := readyTask("e1", "held", 2)
	held.State = store.TaskHeld
	dispatched := dispatchedTask("e1", "dispatched", "s1", "secret-d")
	reported := dispatchedTask("e1", "reported", "s1", "secret-r")
	reported.State = store.TaskReported
	reported.Report = &store.Report{Key: reported.Key, TokenHash: reported.TokenHash, Success: true, Payload: "{}", AtMS: epoch}
	return []store.Task{ready, held, dispatched, reported}, []store.Guard{
		{State: store.TaskReady},
		{State: store.TaskReady},
		{State: store.TaskDispatched, TokenHash: dispatched.TokenHash},
		{State: store.TaskReported, TokenHash: reported.TokenHash},
	}
}

var commitTaskRules = []rule{
	{"StoresEveryMemberOfARow", func(t *testing.T, s store.Store) {
		ready := readyTask("e1", "a", 2)
		ready.DueAtMS, ready.Redelivery, ready.Attempt, ready.RootID = epoch+minute, true, 3, "r1"
		busy := dispatchedTask("e1", "b", "s1", "secret-b")
		busy.SuspectAtMS, busy.Stop = epoch+3, true
		retryAfter := int64(0)
		reported := dispatchedTask("e1", "c", "s1", "secret-c")
		reported.State = store.TaskReported
		reported.Report = &store.Report{
			Key: reported.Key, TokenHash: reported.TokenHash,
			Payload: `{"code":"X"}`, RetryAfterMS: &retryAfter, AtMS: epoch + 4,
		}
		create(t, s, "e1", ready, busy, reported)
		equal(t, "rows", []store.Task{ready, busy, reported}, tasksOf(t, s, "e1"))
		equal(t, "row", reported, got(s.Task(t.Context(), "e1/c"))(t))
	}},
	{"FindsNoRowThatIsNotThere", func(t *testing.T, s store.Store) {
		_, err := s.Task(t.Context(), "e1/a")
		wantError(t, err, store.ErrNotFound)
		equal(t, "rows", 0, len(tasksOf(t, s, "e1")))
	}},
	{"RemovesRowsInEachState", func(t *testing.T, s store.Store) {
		rows, guards := rowsInEachState()
		h := create(t, s, "e1", rows...)
		c := following(h, 1)
		for i, row := range rows {
			c.Removed = append(c.Removed, store.TaskRemoval{Key: row.Key, Guard: guards[i]})
		}
		commit(t, s, c)
		equal(t, "rows", 0, len(tasksOf(t, s, "e1")))
	}},
	{"RemovesNothingUnderAnotherGuard", func(t *testing.T, s store.Store) {
		rows, guards := rowsInEachState()
		h := create(t, s, "e1", rows...)
		wrong := append(guards, store.Guard{State: store.TaskDispatched, TokenHash: hashOf("another")},
			store.Guard{State: store.TaskReported, TokenHash: hashOf("another")})
		for i, row := range rows {
			for _, guard := range wrong {
				if guard == guards[i] {
					continue
				}
				c := following(h, 1)
				c.Removed = []store.TaskRemoval{{Key: row.Key, Guard: guard}}
				wantLost(t, s.Commit(t.Context(), c), row.Key)
			}
		}
		c := following(h, 1)
		c.Removed = []store.TaskRemoval{{Key: "e1/gone", Guard: guards[0]}}
		wantLost(t, s.Commit(t.Context(), c), "e1/gone")
		equal(t, "rows", 4, len(tasksOf(t, s, "e1")))
		equal(t, "head", h, *load(t, s, "e1").Head)
	}},
	{"MarksRowsOfAnExecutionThatWindsDown", func(t *testing.T, s store.Store) {
		rows, guards := rowsInEachState()
		h := create(t, s, "e1", rows...)
		c := following(h, 1)
		for i, row := range rows {
			c.Marked = append(c.Marked, store.TaskMark{Key: row.Key, Guard: guards[i]})
		}
		commit(t, s, c)
		rows[0].State = store.TaskHeld
		rows[2].Stop, rows[3].Stop = true, true
		want := []store.Task{rows[2], rows[1], rows[0], rows[3]}
		equal(t, "rows", want, tasksOf(t, s, "e1"))
	}},
	{"MarksNothingUnderAnotherGuard", func(t *testing.T, s store.Store) {
		rows, _ := rowsInEachState()
		h := create(t, s, "e1", rows...)
		for key, guard := range map[string]store.Guard{
			"e1/ready":      {State: store.TaskDispatched, TokenHash: hashOf("secret-d")},
			"e1/dispatched": {State: store.TaskReady},
			"e1/reported":   {State: store.TaskDispatched, TokenHash: hashOf("secret-r")},
			"e1/gone":       {State: store.TaskReady},
		} {
			c := following(h, 1)
			c.Marked = []store.TaskMark{{Key: key, Guard: guard}}
			wantLost(t, s.Commit(t.Context(), c), key)
		}
		equal(t, "head", h, *load(t, s, "e1").Head)
	}},
	{"PutsARowBackIntoTheQueue", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1", dispatchedTask("e1", "a", "s1", "one"))
		again := readyTask("e1", "a", 3)
		again.Attempt, again.Redelivery = 2, true
		c := following(h, 1)
		c.Removed = []store.TaskRemoval{{Key: "e1/a", Guard: store.Guard{State: store.TaskDispatched, TokenHash: hashOf("one")}}}
		c.Inserted = []store.Task{again}
		commit(t, s, c)
		equal(t, "rows", []store.Task{again}, tasksOf(t, s, "e1"))
	}},
	{"InsertsNothingOverARowThatExists", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1", readyTask("e1", "a", 2))
		c := following(h, 1)
		c.Inserted = []store.Task{readyTask("e1", "a", 3)}
		var lost *store.LostError
		if err := s.Commit(t.Context(), c); !errors.As(err, &lost) {
			t.Fatalf("got %v, want a lost race for a row that exists", err)
		}
		equal(t, "head", h, *load(t, s, "e1").Head)
	}},
	{"ReplacesAllRowsOfTheExecution", func(t *testing.T, s store.Store) {
		rows, _ := rowsInEachState()
		h := create(t, s, "e1", rows...)
		other := readyTask("e10", "a", 2)
		create(t, s, "e10", other)
		c := following(h, 0)
		c.ReplaceTasks = true
		c.Inserted = []store.Task{readyTask("e1", "ready", 9)}
		commit(t, s, c)
		equal(t, "rows", c.Inserted, tasksOf(t, s, "e1"))
		equal(t, "others", []store.Task{other}, tasksOf(t, s, "e10"))
	}},
	{"TakesManyRowsAtOnce", func(t *testing.T, s store.Store) {
		var rows []store.Task
		for i := range 1_000 {
			rows = append(rows, readyTask("e1", fmt.Sprintf("a[%04d]", i), 2))
		}
		h := create(t, s, "e1", rows...)
		equal(t, "rows", rows, tasksOf(t, s, "e1"))
		c := following(h, 1)
		for _, row := range rows[1:] {
			c.Removed = append(c.Removed, store.TaskRemoval{Key: row.Key, Guard: store.Guard{State: store.TaskReady}})
		}
		commit(t, s, c)
		equal(t, "rows", rows[:1], tasksOf(t, s, "e1"))
	}},
}
