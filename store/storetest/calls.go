package storetest

import (
	"context"
	"testing"
	"time"

	"perigee/store"
)

// wantNow wants a moment of the present, by a clock that may be an hour off.
func wantNow(t *testing.T, what string, ms int64) {
	t.Helper()
	if off := time.Since(time.UnixMilli(ms)).Abs(); off > time.Hour {
		t.Errorf("%s: want the present, got %s", what, time.UnixMilli(ms).UTC())
	}
}

// callRules are about all methods: clocks, contexts, counters.
var callRules = []rule{
	{"WithoutAMomentUseTheDatabasesClock", func(t *testing.T, s store.Store) {
		row := dispatchedTask("e1", "a", "s1", "secret")
		create(t, s, "e1", row, readyTask("e1", "b", 2))
		register(t, s, "s1", 0)
		wantNow(t, "session", got(s.Session(t.Context(), "s1"))(t).LastSeenMS)
		wantNow(t, "load", got(s.Load(t.Context(), store.LoadRequest{ID: "e1"}))(t).NowMS)
		wantNow(t, "due", due(t, s, store.DueRequest{Limit: 1}).NowMS)
		wantNow(t, "touch", got(s.TouchSession(t.Context(), "s1", 0, 0))(t).NowMS)
		claimed := claim(t, s, poll("s1", "poll-1", 1, 0))
		wantNow(t, "claim", claimed.NowMS)
		equal(t, "deadline", claimed.NowMS+minute, claimed.Tasks[0].DeadlineMS)
		got(s.Report(t.Context(), store.Report{Key: row.Key, TokenHash: row.TokenHash, Success: true, Payload: "{}"}))(t)
		wantNow(t, "report", got(s.Task(t.Context(), row.Key))(t).Report.AtMS)
		must(t, s.WithHeadLocked(t.Context(), store.LoadRequest{ID: "e1"}, func(l store.Loaded) (*store.Commit, error) {
			wantNow(t, "locked", l.NowMS)
			return nil, nil
		}))
	}},
	{"UnderAContextThatEndedWriteNothing", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1", readyTask("e1", "a", 2))
		register(t, s, "s1", epoch)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantError(t, s.Commit(ctx, following(h, 1)), context.Canceled)
		_, err := s.Claim(ctx, poll("s1", "poll-1", 1, epoch))
		wantError(t, err, context.Canceled)
		_, err = s.Load(ctx, store.LoadRequest{ID: "e1"})
		wantError(t, err, context.Canceled)
		wantError(t, s.WithHeadLocked(ctx, store.LoadRequest{ID: "e1"}, appendOne), context.Canceled)
		wantError(t, s.DropSessions(ctx, epoch+1), context.Canceled)
		equal(t, "head", h, *load(t, s, "e1").Head)
		equal(t, "state", store.TaskReady, tasksOf(t, s, "e1")[0].State)
		equal(t, "sessions", 1, len(got(s.Workers(t.Context()))(t)))
	}},
	{"AreCounted", func(t *testing.T, s store.Store) {
		create(t, s, "e1")
		before := s.Stats()
		load(t, s, "e1")
		after := s.Stats()
		equal(t, "round trips of a load", int64(1), after.RoundTrips-before.RoundTrips)
		equal(t, "commits of a load", int64(0), after.Commits-before.Commits)
		commit(t, s, following(newHead("e1"), 1))
		last := s.Stats()
		equal(t, "commits of a commit", int64(1), last.Commits-after.Commits)
		if last.Statements <= after.Statements || last.RoundTrips <= after.RoundTrips {
			t.Errorf("a commit counts nothing: %+v, then %+v", after, last)
		}
	}},
	{"PingAnswers", func(t *testing.T, s store.Store) {
		must(t, s.Ping(t.Context()))
		must(t, s.CheckSchema(t.Context()))
	}},
}
