package storetest

import (
	"fmt"
	"testing"

	"perigee/store"
)

var claimRules = []rule{
	{"DispatchesAndAppends", func(t *testing.T, s store.Store) {
		h := newHead("e1")
		h.DueAtMS = epoch + 9*minute
		row := readyTask("e1", "a", 2)
		row.DueAtMS = epoch + 5*minute
		row.RootID = "r1"
		c := creation("e1", row)
		c.Head = h
		commit(t, s, c)
		register(t, s, "s1", epoch)

		r := poll("s1", "poll-1", 2, epoch+10)
		claimed := claim(t, s, r)
		want := row
		want.State, want.Session, want.WorkerID, want.ClaimKey = store.TaskDispatched, "s1", "w1", "poll-1"
		want.Secret, want.TokenHash = r.Secrets[0], hashOf(r.Secrets[0])
		want.DispatchedMS, want.DeadlineMS, want.DueAtMS = epoch+10, epoch+10+minute, epoch+10+sessionTimeout
		equal(t, "claimed", store.Claimed{NowMS: epoch + 10, Known: true, Tasks: []store.Task{want}, Seqs: []uint64{3}}, claimed)
		equal(t, "row", want, got(s.Task(t.Context(), row.Key))(t))

		loaded := load(t, s, "e1")
		h.LastSeq, h.LastAtMS = 3, epoch+10
		equal(t, "head, with its due moment", h, *loaded.Head)
		data := fmt.Sprintf(`{"step":"a","attempt":1,"token":"%s","worker_id":"w1","worker_session":"s1","deadline_ms":%d}`,
			want.TokenHash, epoch+10+minute)
		equal(t, "event", store.Event{Seq: 3, Type: "StepDispatched", AtMS: epoch + 10, Data: data}, loaded.Events[2])
	}},
	{"WritesTextOfEventsAsHistoryDoes", func(t *testing.T, s store.Store) {
		create(t, s, "e1", readyTask("e1", "compensate:ä[3]", 2))
		r := poll("builtin:http", "poll-1", 1, epoch)
		r.WorkerID = "w \"1\" \\ <&> 😀 é\n\t\u0001"
		claim(t, s, r)
		want := fmt.Sprintf(`{"step":"compensate:ä[3]","attempt":1,"token":"%s","worker_id":"w \"1\" \\ <&> 😀 é\n\t\u0001","worker_session":"builtin:http","deadline_ms":%d}`,
			hashOf(r.Secrets[0]), epoch+minute)
		equal(t, "event", want, load(t, s, "e1").Events[2].Data)
	}},
	{"NeverGoesBackInTime", func(t *testing.T, s store.Store) {
		// The head's last event is later than the claim's clock: the event and
		// the deadline count from the head, the worker's silence from the clock.
		create(t, s, "e1", readyTask("e1", "a", 2))
		register(t, s, "s1", epoch-10)
		task := claim(t, s, poll("s1", "poll-1", 1, epoch-5)).Tasks[0]
		equal(t, "dispatched", epoch, task.DispatchedMS)
		equal(t, "deadline", epoch+minute, task.DeadlineMS)
		equal(t, "due", epoch-5+sessionTimeout, task.DueAtMS)
		equal(t, "event", epoch, load(t, s, "e1").Events[2].AtMS)
	}},
	{"LooksAgainAtTheEarlierOfDeadlineAndSilence", func(t *testing.T, s store.Store) {
		short := readyTask("e1", "a", 2)
		short.TimeoutMS = 5 * second
		create(t, s, "e1", short)
		register(t, s, "s1", epoch)
		task := claim(t, s, poll("s1", "poll-1", 1, epoch)).Tasks[0]
		equal(t, "due", epoch+5*second, task.DueAtMS)
	}},
	{"TrustsTheBuiltinAsLongAsASession", func(t *testing.T, s store.Store) {
		// Without a row of its own: whoever claims says how long it needs.
		long, short := readyTask("e1", "a", 2), readyTask("e1", "b", 3)
		short.TimeoutMS = 5 * second
		create(t, s, "e1", long, short)
		claimed := claim(t, s, poll("builtin:http", "poll-1", 2, epoch))
		equal(t, "known", true, claimed.Known)
		equal(t, "due", []int64{epoch + sessionTimeout, epoch + 5*second}, []int64{claimed.Tasks[0].DueAtMS, claimed.Tasks[1].DueAtMS})
		row := claimed.Tasks[0]
		must(t, s.Sight(t.Context(), []store.Sighting{{Key: row.Key, TokenHash: row.TokenHash, DueAtMS: row.DeadlineMS}}))
		equal(t, "due once it was seen", epoch+minute, got(s.Task(t.Context(), row.Key))(t).DueAtMS)
	}},
	{"WithoutATimeoutHasNoDeadline", func(t *testing.T, s store.Store) {
		a, b := readyTask("e1", "a", 1), readyTask("e1", "b", 2)
		a.TimeoutMS, b.TimeoutMS = 0, 0
		create(t, s, "e1", a, b)
		register(t, s, "s1", epoch)
		task := claim(t, s, poll("s1", "poll-1", 1, epoch)).Tasks[0]
		equal(t, "deadline and due", [2]int64{0, epoch + sessionTimeout}, [2]int64{task.DeadlineMS, task.DueAtMS})
		task = claim(t, s, poll("builtin:http", "poll-1", 1, epoch)).Tasks[0]
		equal(t, "deadline and due of the builtin", [2]int64{0, epoch + sessionTimeout}, [2]int64{task.DeadlineMS, task.DueAtMS})
		want := fmt.Sprintf(`{"step":"b","attempt":1,"token":"%s","worker_id":"w1","worker_session":"builtin:http","deadline_ms":null}`, task.TokenHash)
		equal(t, "event", want, load(t, s, "e1").Events[3].Data)
	}},
	{"GivesNothingToAnUnknownSession", func(t *testing.T, s store.Store) {
		create(t, s, "e1", readyTask("e1", "a", 2))
		claimed := claim(t, s, poll("s1", "poll-1", 1, epoch))
		equal(t, "claimed", store.Claimed{NowMS: epoch}, claimed)
		equal(t, "row", store.TaskReady, tasksOf(t, s, "e1")[0].State)
	}},
	{"TakesTheOldestOfAllQueues", func(t *testing.T, s store.Store) {
		row := func(execution, unit, queue string, readyAt int64, readySeq uint64) {
			task := readyTask(execution, unit, readySeq)
			task.Queue, task.ReadyAtMS = queue, readyAt
			create(t, s, execution, task)
		}
		row("e1", "a", "q1", epoch+3, 1)
		row("e2", "a", "q2", epoch+1, 9)
		row("e3", "a", "q1", epoch+2, 5)
		row("e4", "a", "q3", epoch+2, 4)
		row("e6", "a", "q2", epoch+2, 5)
		row("e5", "a", "q1", epoch+2, 5)
		row("e7", "a", "other", epoch, 1)
		register(t, s, "s1", epoch)
		r := poll("s1", "poll-1", 4, epoch+10)
		r.Queues = []string{"q3", "q1", "q2", "none"}
		claimed := claim(t, s, r)
		equal(t, "claimed", []string{"e2/a", "e4/a", "e3/a", "e5/a"}, keys(claimed.Tasks))
		equal(t, "more", true, claimed.More)
		equal(t, "sequence numbers", []uint64{3, 3, 3, 3}, claimed.Seqs)
		r = poll("s1", "poll-2", 4, epoch+10)
		r.Queues = []string{"q2", "q1"}
		claimed = claim(t, s, r)
		equal(t, "claimed then", []string{"e6/a", "e1/a"}, keys(claimed.Tasks))
		equal(t, "more then", false, claimed.More)
	}},
	{"TakesAQueueNamedTwiceAsOne", func(t *testing.T, s store.Store) {
		create(t, s, "e1", readyTask("e1", "a", 1), readyTask("e1", "b", 2))
		register(t, s, "s1", epoch)
		r := poll("s1", "poll-1", 3, epoch)
		r.Queues = []string{queue, queue}
		equal(t, "claimed", []string{"e1/a", "e1/b"}, keys(claim(t, s, r).Tasks))
		wantGapless(t, s, "e1")
		equal(t, "last seq", uint64(4), load(t, s, "e1").Head.LastSeq)
	}},
	{"NumbersSeveralDispatchesOfOneExecution", func(t *testing.T, s store.Store) {
		create(t, s, "e1", readyTask("e1", "a", 3), readyTask("e1", "b", 2), readyTask("e1", "c", 5))
		create(t, s, "e2", readyTask("e2", "a", 4))
		register(t, s, "s1", epoch)
		r := poll("s1", "poll-1", 4, epoch+1)
		claimed := claim(t, s, r)
		equal(t, "claimed", []string{"e1/b", "e1/a", "e2/a", "e1/c"}, keys(claimed.Tasks))
		equal(t, "sequence numbers", []uint64{3, 4, 3, 5}, claimed.Seqs)
		for i, task := range claimed.Tasks {
			equal(t, "secret", r.Secrets[i], task.Secret)
		}
		loaded := load(t, s, "e1")
		equal(t, "last seq", uint64(5), loaded.Head.LastSeq)
		for i, unit := range []string{"b", "a", "c"} {
			e := loaded.Events[2+i]
			equal(t, "seq", uint64(3+i), e.Seq)
			equal(t, "unit", fmt.Sprintf(`{"step":"%s"`, unit), e.Data[:len(`{"step":"a"`)])
		}
	}},
	{"LeavesHeldAndExpiredRows", func(t *testing.T, s store.Store) {
		held := readyTask("e1", "held", 1)
		held.State = store.TaskHeld
		expired := readyTask("e1", "expired", 1)
		expired.DueAtMS = epoch + 10
		open := readyTask("e1", "open", 2)
		open.DueAtMS = epoch + 11
		create(t, s, "e1", held, expired, open)
		register(t, s, "s1", epoch)
		equal(t, "claimed", []string{"e1/open"}, keys(claim(t, s, poll("s1", "poll-1", 9, epoch+10)).Tasks))
		equal(t, "claimed then", 0, len(claim(t, s, poll("s1", "poll-2", 9, epoch+10)).Tasks))
	}},
	{"FindsWorkBehindManyExpiredRows", func(t *testing.T, s store.Store) {
		var rows []store.Task
		for i := range 200 {
			row := readyTask("e1", fmt.Sprintf("a[%d]", i), 2)
			row.DueAtMS = epoch
			rows = append(rows, row)
		}
		create(t, s, "e1", append(rows, readyTask("e1", "open", 3))...)
		register(t, s, "s1", epoch)
		equal(t, "claimed", []string{"e1/open"}, keys(claim(t, s, poll("s1", "poll-1", 1, epoch)).Tasks))
	}},
	{"AnswersARepeatedPollTheSame", func(t *testing.T, s store.Store) {
		create(t, s, "e1", readyTask("e1", "a", 1), readyTask("e1", "b", 2), readyTask("e1", "c", 3), readyTask("e1", "d", 4))
		register(t, s, "s1", epoch)
		register(t, s, "s2", epoch)
		first := claim(t, s, poll("s1", "poll-1", 2, epoch+1))
		again := poll("s1", "poll-1", 2, epoch+2)
		again.Secrets = []string{"another", "and another"}
		repeated := claim(t, s, again)
		equal(t, "repeated", store.Claimed{NowMS: epoch + 2, Known: true, Tasks: first.Tasks, Repeated: true, More: true}, repeated)
		equal(t, "last seq", uint64(4), load(t, s, "e1").Head.LastSeq)

		// What was reported meanwhile is not handed out again.
		equal(t, "reported", true, got(s.Report(t.Context(), store.Report{
			Key: "e1/a", TokenHash: first.Tasks[0].TokenHash, Success: true, Payload: "{}", NowMS: epoch + 3}))(t))
		equal(t, "still dispatched", []string{"e1/b"}, keys(claim(t, s, again).Tasks))

		// The key counts for its own session only.
		equal(t, "another session", []string{"e1/c"}, keys(claim(t, s, poll("s2", "poll-1", 1, epoch+4)).Tasks))
		// Nothing dispatched any more under the key: the poll is a new one.
		equal(t, "another key", []string{"e1/d"}, keys(claim(t, s, poll("s1", "poll-2", 1, epoch+4)).Tasks))
	}},
	{"WithoutAKeyIsNeverARepetition", func(t *testing.T, s store.Store) {
		create(t, s, "e1", readyTask("e1", "a", 1), readyTask("e1", "b", 2))
		first, second := poll("builtin:http", "", 1, epoch), poll("builtin:http", "", 1, epoch)
		second.Secrets = []string{"second"}
		equal(t, "first", []string{"e1/a"}, keys(claim(t, s, first).Tasks))
		claimed := claim(t, s, second)
		equal(t, "second", []string{"e1/b"}, keys(claimed.Tasks))
		equal(t, "repeated", false, claimed.Repeated)
	}},
	{"WantsNothingWithoutSecretsOrQueues", func(t *testing.T, s store.Store) {
		create(t, s, "e1", readyTask("e1", "a", 1))
		register(t, s, "s1", epoch)
		equal(t, "no secrets", 0, len(claim(t, s, poll("s1", "poll-1", 0, epoch)).Tasks))
		r := poll("s1", "poll-1", 1, epoch)
		r.Queues = nil
		equal(t, "no queues", store.Claimed{NowMS: epoch, Known: true}, claim(t, s, r))
	}},
	{"NamesUpToThreeDueExecutions", func(t *testing.T, s store.Store) {
		register(t, s, "s1", epoch)
		equal(t, "none", 0, len(claim(t, s, poll("s1", "poll-1", 1, epoch)).DueIDs))
		for i := range 4 {
			c := creation(fmt.Sprintf("e%d", i))
			c.Head.DueAtMS = epoch + int64(10-i)
			commit(t, s, c)
		}
		expired := readyTask("e9", "a", 1)
		expired.DueAtMS = epoch + 1
		create(t, s, "e9", expired)
		equal(t, "due", []string{"e9", "e3"}, claim(t, s, poll("s1", "poll-1", 1, epoch+7)).DueIDs)
		equal(t, "due", []string{"e9", "e3", "e2"}, claim(t, s, poll("s1", "poll-1", 1, epoch+20)).DueIDs)
	}},
	{"NamesNoExecutionThatHasEndedAndNoneForAReportedRow", func(t *testing.T, s store.Store) {
		register(t, s, "s1", epoch)
		c := creation("e-ended")
		c.Head.Status, c.Head.FinishedAtMS, c.Head.DueAtMS = "COMPLETED", epoch, epoch
		commit(t, s, c)
		reported := dispatchedTask("e-reported", "a", "s2", "one")
		reported.DueAtMS = epoch
		create(t, s, "e-reported", reported)
		equal(t, "reported", true, got(s.Report(t.Context(), store.Report{
			Key: reported.Key, TokenHash: reported.TokenHash, Success: true, Payload: "{}", NowMS: epoch}))(t))
		equal(t, "due", 0, len(claim(t, s, poll("s1", "poll-1", 1, epoch+20)).DueIDs))
	}},
	{"IsASignOfLife", func(t *testing.T, s store.Store) {
		register(t, s, "s1", epoch)
		claim(t, s, poll("s1", "poll-1", 1, epoch+sessionTimeout/2))
		equal(t, "last seen", epoch+sessionTimeout/2, got(s.Session(t.Context(), "s1"))(t).LastSeenMS)
		claim(t, s, poll("s1", "poll-2", 1, epoch))
		equal(t, "last seen", epoch+sessionTimeout/2, got(s.Session(t.Context(), "s1"))(t).LastSeenMS)
	}},
}
