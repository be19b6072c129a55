package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/history"
	"perigee/store"
	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
)

func readyTask(execution, unit string) store.Task {
	return store.Task{Key: execution + "/" + unit, ExecutionID: execution, Unit: unit, Queue: "q", ReadyAtMS: 1, ReadySeq: 2,
		Input: "{}", Attempt: 1, TimeoutMS: 60_000}
}

func poll(key string, wanted int) store.ClaimRequest {
	r := store.ClaimRequest{Session: "builtin:test", WorkerID: "w", Queues: []string{"q"}, ClaimKey: key, SessionTimeoutMS: 30_000, NowMS: 10}
	for i := range wanted {
		r.Secrets = append(r.Secrets, fmt.Sprint(key, "-", i))
	}
	return r
}

// TestCalls_CostRoundTrips is the bill of each call, in both modes.
func TestCalls_CostRoundTrips(t *testing.T) {
	t.Parallel()
	type cost struct{ RoundTrips, Commits int64 }
	locked := func(s *postgres.Store, ctx context.Context, decide func(store.Loaded) (*store.Commit, error)) error {
		return s.WithHeadLocked(ctx, store.LoadRequest{ID: "e1"}, decide)
	}
	calls := []struct {
		name string
		want cost
		call func(ctx context.Context, s *postgres.Store) error
	}{
		{"a creation", cost{1, 1}, func(ctx context.Context, s *postgres.Store) error {
			c := creation("e1")
			c.Inserted = []store.Task{readyTask("e1", "a"), readyTask("e1", "b")}
			return s.Commit(ctx, c)
		}},
		{"a load", cost{1, 0}, func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Load(ctx, store.LoadRequest{ID: "e1", DueTasks: true})
			return err
		}},
		{"a commit", cost{1, 1}, func(ctx context.Context, s *postgres.Store) error {
			return s.Commit(ctx, *following(creation("e1").Head))
		}},
		{"a lost commit", cost{1, 0}, func(ctx context.Context, s *postgres.Store) error {
			if err := s.Commit(ctx, *following(creation("e1").Head)); err == nil {
				return fmt.Errorf("want a lost race")
			}
			return nil
		}},
		{"a claim", cost{1, 1}, func(ctx context.Context, s *postgres.Store) error {
			claimed, err := s.Claim(ctx, poll("p1", 1))
			if err == nil && len(claimed.Tasks) != 1 {
				err = fmt.Errorf("claimed %d tasks", len(claimed.Tasks))
			}
			return err
		}},
		{"a repeated claim", cost{1, 0}, func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Claim(ctx, poll("p1", 1))
			return err
		}},
		{"a decision under the lock", cost{2, 1}, func(ctx context.Context, s *postgres.Store) error {
			return locked(s, ctx, func(l store.Loaded) (*store.Commit, error) { return following(*l.Head), nil })
		}},
		{"no decision under the lock", cost{2, 0}, func(ctx context.Context, s *postgres.Store) error {
			return locked(s, ctx, func(store.Loaded) (*store.Commit, error) { return nil, nil })
		}},
		{"a report", cost{1, 1}, func(ctx context.Context, s *postgres.Store) error {
			task, err := s.Task(ctx, "e1/a")
			if err == nil {
				_, err = s.Report(ctx, store.Report{Key: task.Key, TokenHash: task.TokenHash, Payload: "{}"})
			}
			return err
		}},
		{"an empty claim", cost{1, 0}, func(ctx context.Context, s *postgres.Store) error {
			r := poll("p2", 1)
			r.Queues = []string{"other"}
			_, err := s.Claim(ctx, r)
			return err
		}},
		{"the list of due work", cost{1, 0}, func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Due(ctx, store.DueRequest{NowMS: 10, Limit: 10})
			return err
		}},
	}
	for _, mode := range []postgres.Mode{postgres.ModeDirect, postgres.ModePooled} {
		url := pgtest.Migrated(t)
		if mode == postgres.ModePooled {
			url = pgtest.Pooled(t, url)
		}
		s := open(t, postgres.Options{URL: url, Mode: mode})
		for _, c := range calls {
			before := s.Stats()
			if err := c.call(t.Context(), s); err != nil {
				t.Fatalf("%s: %s: %v", mode, c.name, err)
			}
			after := s.Stats()
			got := cost{after.RoundTrips - before.RoundTrips, after.Commits - before.Commits}
			if c.name == "a report" {
				got.RoundTrips-- // reading the task
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", mode, c.name, diff)
			}
		}
	}
}

// TestStatements_AreShort: a proxy pins a connection for a longer text.
func TestStatements_AreShort(t *testing.T) {
	for name, sql := range postgres.Statements {
		if len(sql) >= 16<<10 {
			t.Errorf("%s: %d bytes, want less than 16 KiB", name, len(sql))
		}
	}
}

// TestClaim_WritesEventsAsHistoryDoes: the text that the statement puts
// together is the codec's, whatever characters a unit's key holds.
func TestClaim_WritesEventsAsHistoryDoes(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{URL: pgtest.Migrated(t)})
	var all strings.Builder
	for c := rune(1); c < 0x300; c++ {
		all.WriteRune(c)
	}
	units := []string{"charge", "items[12]", "compensate:items[0]", "on_failure:notify", all.String(), "\u2028\u2029\ufffd<>&'\"\\/ 😀\u007f"}
	for i, unit := range units {
		id := fmt.Sprint("e", i)
		c := creation(id)
		c.Inserted = []store.Task{readyTask(id, unit)}
		c.Inserted[0].ReadySeq, c.Inserted[0].Attempt = uint64(i), uint32(i)+4_000_000_000
		if i%2 == 1 {
			c.Inserted[0].TimeoutMS = 0
		}
		commit(t, s, c)
	}
	r := poll("p", len(units))
	r.WorkerID = units[len(units)-1]
	claimed, err := s.Claim(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if len(claimed.Tasks) != len(units) {
		t.Fatalf("claimed %d of %d tasks", len(claimed.Tasks), len(units))
	}
	for i, task := range claimed.Tasks {
		e := history.StepDispatched{Step: units[i], Attempt: task.Attempt, Token: task.TokenHash, WorkerID: r.WorkerID, WorkerSession: r.Session}
		if task.DeadlineMS != 0 {
			e.DeadlineMS = &task.DeadlineMS
		}
		events, err := s.History(t.Context(), fmt.Sprint("e", i), 2, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(history.AppendFields(nil, e)), events[0].Data); diff != "" {
			t.Errorf("event of %q (-codec +stored):\n%s", units[i], diff)
		}
	}
}

// TestClaim_LooksBehindBusyHeads: the oldest tasks are all of one execution
// whose head is held; more of them than a claim looks at.
func TestClaim_LooksBehindBusyHeads(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{URL: pgtest.Migrated(t)})
	busy := creation("busy")
	for i := range 300 {
		busy.Inserted = append(busy.Inserted, readyTask("busy", fmt.Sprintf("a[%d]", i)))
	}
	commit(t, s, busy)
	later := creation("later")
	later.Inserted = []store.Task{readyTask("later", "a")}
	later.Inserted[0].ReadyAtMS = 5
	commit(t, s, later)
	err := s.WithHeadLocked(t.Context(), store.LoadRequest{ID: "busy"}, func(store.Loaded) (*store.Commit, error) {
		for _, want := range []int{1, 0} {
			claimed, err := s.Claim(t.Context(), poll(fmt.Sprint("p", want), 1))
			if err != nil {
				return nil, err
			}
			if len(claimed.Tasks) != want || !claimed.More {
				t.Errorf("claimed %d tasks, want %d; more are ready: %v", len(claimed.Tasks), want, claimed.More)
			}
			for _, task := range claimed.Tasks {
				if task.ExecutionID != "later" {
					t.Errorf("claimed %s, whose head is held", task.Key)
				}
			}
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := s.Claim(t.Context(), poll("p", 1))
	if err != nil || len(claimed.Tasks) != 1 {
		t.Errorf("once the head is free: claimed %d tasks, %v", len(claimed.Tasks), err)
	}
}

// TestClaim_DoesNotWaitForATask: a report holds a task's row alone,
// and a claim does not wait for it.
func TestClaim_DoesNotWaitForATask(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	s := open(t, postgres.Options{URL: url})
	c := creation("e1")
	c.Inserted = []store.Task{readyTask("e1", "a"), readyTask("e1", "b")}
	commit(t, s, c)
	conn := connect(t, url)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM tasks WHERE key = 'e1/a' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	claimed, err := s.Claim(t.Context(), poll("p", 2))
	if err != nil || len(claimed.Tasks) != 1 || claimed.Tasks[0].Key != "e1/b" {
		t.Errorf("want e1/b alone, got %v, %v", claimed.Tasks, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}
