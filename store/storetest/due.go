package storetest

import (
	"fmt"
	"testing"

	"perigee/store"
)

var dueRules = []rule{
	{"NothingIsDueInAnEmptyStore", func(t *testing.T, s store.Store) {
		equal(t, "due", store.Due{NowMS: epoch}, due(t, s, store.DueRequest{NowMS: epoch, Limit: 10}))
	}},
	{"ListsEverySourceEarliestFirst", func(t *testing.T, s store.Store) {
		head := func(id string, dueAt int64, tasks ...store.Task) {
			c := creation(id, tasks...)
			c.Head.DueAtMS = dueAt
			commit(t, s, c)
		}
		waiting := readyTask("e-ready", "a", 1)
		waiting.DueAtMS = epoch + 2
		attempt := dispatchedTask("e-dispatched", "a", "s1", "one")
		attempt.DueAtMS = epoch + 4
		held := readyTask("e-held", "a", 1)
		held.State, held.DueAtMS = store.TaskHeld, epoch
		head("e-head", epoch+3)
		head("e-ready", 0, waiting)
		head("e-dispatched", 0, attempt)
		head("e-held", 0, held)
		head("e-future", epoch+11)
		reported := dispatchedTask("e-reported", "a", "s1", "two")
		reported.DueAtMS = epoch + 1
		head("e-reported", 0, reported)
		equal(t, "reported", true, got(s.Report(t.Context(), store.Report{
			Key: reported.Key, TokenHash: reported.TokenHash, Success: true, Payload: "{}", NowMS: epoch}))(t))

		r := store.DueRequest{NowMS: epoch + 10, Limit: 10, ReportedAgeMS: 5}
		equal(t, "due", store.Due{
			NowMS: epoch + 10, ExecutionIDs: []string{"e-ready", "e-head", "e-dispatched", "e-reported"},
			NextMS: epoch + 11, OldestDueMS: epoch + 2, OldestReady: epoch,
		}, due(t, s, r))
		r.Limit = 2
		equal(t, "due, two at most", []string{"e-ready", "e-head"}, due(t, s, r).ExecutionIDs)
		r.Except = []string{"e-head", "e-ready", "e-reported", "nobody"}
		equal(t, "due, without some", []string{"e-dispatched"}, due(t, s, r).ExecutionIDs)
	}},
	{"AMomentIsDueWhenItComes", func(t *testing.T, s store.Store) {
		c := creation("e1")
		c.Head.DueAtMS = epoch + 10
		commit(t, s, c)
		equal(t, "before", store.Due{NowMS: epoch + 9, NextMS: epoch + 10}, due(t, s, store.DueRequest{NowMS: epoch + 9, Limit: 10}))
		equal(t, "then", store.Due{NowMS: epoch + 10, ExecutionIDs: []string{"e1"}, OldestDueMS: epoch + 10},
			due(t, s, store.DueRequest{NowMS: epoch + 10, Limit: 10}))
	}},
	{"NamesAnExecutionOnceByItsEarliestMoment", func(t *testing.T, s store.Store) {
		var rows []store.Task
		for i := range 20 {
			row := dispatchedTask("e1", fmt.Sprintf("a[%d]", i), "s1", fmt.Sprint("secret", i))
			row.DueAtMS = epoch + int64(i)
			rows = append(rows, row)
		}
		c := creation("e1", rows...)
		c.Head.DueAtMS = epoch + 7
		commit(t, s, c)
		for i, dueAt := range []int64{epoch + 1, epoch} {
			c := creation(fmt.Sprintf("e%d", 2+i))
			c.Head.DueAtMS = dueAt
			commit(t, s, c)
		}
		listed := due(t, s, store.DueRequest{NowMS: epoch + 10, Limit: 10})
		equal(t, "due; of the same moment by id", []string{"e1", "e3", "e2"}, listed.ExecutionIDs)
		equal(t, "next", epoch+11, listed.NextMS)
	}},
	{"ATerminalExecutionIsNotDue", func(t *testing.T, s store.Store) {
		c := creation("e1")
		c.Head.Status, c.Head.FinishedAtMS, c.Head.DueAtMS = "COMPLETED", epoch, epoch
		commit(t, s, c)
		equal(t, "due", store.Due{NowMS: epoch}, due(t, s, store.DueRequest{NowMS: epoch, Limit: 10}))
		equal(t, "due later", store.Due{NowMS: epoch - 1}, due(t, s, store.DueRequest{NowMS: epoch - 1, Limit: 10}))
	}},
	{"AReportMayWaitForAWhile", func(t *testing.T, s store.Store) {
		row := dispatchedTask("e1", "a", "s1", "one")
		create(t, s, "e1", row)
		equal(t, "reported", true, got(s.Report(t.Context(), store.Report{
			Key: row.Key, TokenHash: row.TokenHash, Success: true, Payload: "{}", NowMS: epoch}))(t))
		r := store.DueRequest{NowMS: epoch + 4, Limit: 10, ReportedAgeMS: 5}
		equal(t, "young", store.Due{NowMS: epoch + 4, NextMS: epoch + 5}, due(t, s, r))
		r.NowMS = epoch + 5
		equal(t, "old", store.Due{NowMS: epoch + 5, ExecutionIDs: []string{"e1"}, OldestDueMS: epoch + 5}, due(t, s, r))
	}},
	{"AMessageMayWaitForAWhile", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1")
		c := following(h, 1)
		c.Outbox = []store.Message{{ID: "m1", Kind: "ended", Source: "e1", Target: "p1", Unit: "sub", Payload: "{}", CreatedAtMS: epoch}}
		commit(t, s, c)
		r := store.DueRequest{NowMS: epoch + 4, Limit: 10, ReportedAgeMS: 5}
		equal(t, "young", store.Due{NowMS: epoch + 4, NextMS: epoch + 5}, due(t, s, r))
		r.NowMS = epoch + 5
		equal(t, "old", store.Due{NowMS: epoch + 5, Outbox: true}, due(t, s, r))
	}},
	{"TellsSinceWhenTasksWait", func(t *testing.T, s store.Store) {
		row := func(unit, queue string, readyAt int64, state store.TaskState) store.Task {
			task := readyTask("e1", unit, 2)
			task.Queue, task.ReadyAtMS, task.State = queue, readyAt, state
			return task
		}
		create(t, s, "e1", row("a", "q1", epoch+5, store.TaskReady), row("b", "q2", epoch+4, store.TaskReady),
			row("c", "q3", epoch+3, store.TaskHeld), row("d", "q0", epoch+6, store.TaskReady))
		equal(t, "oldest", epoch+4, due(t, s, store.DueRequest{NowMS: epoch + 9, Limit: 1}).OldestReady)
	}},
	{"SightMovesTheNextLook", func(t *testing.T, s store.Store) {
		a, b, c := dispatchedTask("e1", "a", "s1", "a"), dispatchedTask("e1", "b", "s1", "b"), readyTask("e1", "c", 2)
		create(t, s, "e1", a, b, c)
		must(t, s.Sight(t.Context(), []store.Sighting{
			{Key: a.Key, TokenHash: a.TokenHash, DueAtMS: epoch + 77, SuspectAtMS: epoch + 7},
			{Key: b.Key, TokenHash: hashOf("older"), DueAtMS: epoch + 77, SuspectAtMS: epoch + 7},
			{Key: c.Key, DueAtMS: epoch + 77, SuspectAtMS: epoch + 7},
			{Key: "e1/gone", TokenHash: "x", DueAtMS: epoch + 77},
		}))
		a.DueAtMS, a.SuspectAtMS = epoch+77, epoch+7
		equal(t, "rows", []store.Task{a, b, c}, tasksOf(t, s, "e1"))
		must(t, s.Sight(t.Context(), []store.Sighting{{Key: a.Key, TokenHash: a.TokenHash}}))
		a.DueAtMS, a.SuspectAtMS = 0, 0
		equal(t, "row", a, got(s.Task(t.Context(), a.Key))(t))
		must(t, s.Sight(t.Context(), nil))
	}},
}
