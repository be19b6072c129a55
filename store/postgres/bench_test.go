package postgres_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"perigee/store"
	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
)

// BenchmarkCalls measures single calls against a local server whose commits
// reach the disk; wal_B is the write-ahead log that a call causes.
func BenchmarkCalls(b *testing.B) {
	for _, mode := range []postgres.Mode{postgres.ModeDirect, postgres.ModePooled} {
		s := open(b, postgres.Options{URL: pgtest.Migrated(b), Mode: mode})
		b.Run(fmt.Sprintf("%s/load", mode), func(b *testing.B) { benchmarkLoad(b, s) })
		b.Run(fmt.Sprintf("%s/step", mode), func(b *testing.B) { benchmarkStep(b, s) })
		b.Run(fmt.Sprintf("%s/empty poll", mode), func(b *testing.B) { benchmarkEmptyPoll(b, s) })
		b.Run(fmt.Sprintf("%s/poll past a busy head", mode), func(b *testing.B) { benchmarkBusyPoll(b, s) })
	}
}

var ids atomic.Int64

// newID is an execution id that no earlier round of the benchmark used.
func newID(kind string) string { return fmt.Sprint(kind, "-", ids.Add(1)) }

// measure runs a call for each turn and reports its log.
func measure(b *testing.B, call func(i int) error) {
	b.Helper()
	before := pgtest.WALBytes(b)
	i := 0
	for b.Loop() {
		if err := call(i); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(pgtest.WALBytes(b)-before)/float64(i), "wal_B/op")
}

func benchmarkLoad(b *testing.B, s store.Store) {
	c := creation(newID("loaded"))
	c.Head.LastSeq, c.Events = 22, nil
	for seq := uint64(1); seq <= 22; seq++ {
		c.Events = append(c.Events, store.Event{Seq: seq, Type: "StepSkipped", AtMS: 1, Data: `{"step":"a","reason":"r"}`})
	}
	commit(b, s, c)
	r := store.LoadRequest{ID: c.Head.ID, Known: store.Seen{Incarnation: 1, Seq: 20}, DueTasks: true}
	measure(b, func(int) error {
		_, err := s.Load(b.Context(), r)
		return err
	})
}

// benchmarkStep is the store's part of one step: a claim, and the commit that
// takes the result in and readies the next task.
func benchmarkStep(b *testing.B, s store.Store) {
	c := creation(newID("stepped"))
	c.Inserted = []store.Task{readyTask(c.Head.ID, "s0")}
	c.Inserted[0].Queue = c.Head.ID
	commit(b, s, c)
	head := c.Head
	measure(b, func(i int) error {
		r := poll(fmt.Sprint(head.ID, i), 1)
		r.Queues = []string{head.ID}
		claimed, err := s.Claim(b.Context(), r)
		if err != nil || len(claimed.Tasks) != 1 {
			return errors.Join(err, fmt.Errorf("claimed %d tasks", len(claimed.Tasks)))
		}
		head.LastSeq++
		step := store.Commit{Seen: store.Seen{Incarnation: 1, Seq: head.LastSeq}, Head: head}
		for range 2 {
			step.Head.LastSeq++
			step.Events = append(step.Events, store.Event{Seq: step.Head.LastSeq, Type: "StepSucceeded", AtMS: 10, Data: `{"step":"a","attempt":1,"output":{}}`})
		}
		task := claimed.Tasks[0]
		step.Removed = []store.TaskRemoval{{Key: task.Key, Guard: store.Guard{State: store.TaskDispatched, TokenHash: task.TokenHash}}}
		step.Inserted = []store.Task{readyTask(head.ID, fmt.Sprint("s", i+1))}
		step.Inserted[0].Queue = head.ID
		head = step.Head
		return s.Commit(b.Context(), step)
	})
}

func benchmarkEmptyPoll(b *testing.B, s store.Store) {
	r := poll("p", 1)
	r.Queues = []string{"none", "neither"}
	measure(b, func(int) error {
		_, err := s.Claim(b.Context(), r)
		return err
	})
}

// benchmarkBusyPoll polls while 10 000 ready tasks are behind a held head.
func benchmarkBusyPoll(b *testing.B, s store.Store) {
	c := creation(newID("wide"))
	for i := range 10_000 {
		task := readyTask(c.Head.ID, fmt.Sprintf("a[%d]", i))
		task.Queue = c.Head.ID
		c.Inserted = append(c.Inserted, task)
	}
	commit(b, s, c)
	r := poll("p", 1)
	r.Queues = []string{c.Head.ID}
	err := s.WithHeadLocked(b.Context(), store.LoadRequest{ID: c.Head.ID}, func(store.Loaded) (*store.Commit, error) {
		measure(b, func(int) error {
			_, err := s.Claim(b.Context(), r)
			return err
		})
		return nil, nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
