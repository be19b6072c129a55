package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
	"perigee/store/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// onBothStores runs a test on an empty database of each store.
func onBothStores(t *testing.T, test func(t *testing.T, store string, k *stack)) {
	t.Helper()
	for store, where := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "bench.db") },
		"postgres": func(t *testing.T) string { return pgtest.URL(t) },
	} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			k, err := openStack(t.Context(), where(t), engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(k.close)
			test(t, store, k)
		})
	}
}

// TestCalls_CostWhatTheyMay is the bill of a step. It may get smaller, and
// then its figures here do.
func TestCalls_CostWhatTheyMay(t *testing.T) {
	want := map[string]bill{
		"postgres": {
			Start: cost{1, 3, 1}, Poll: cost{1, 1, 1}, EmptyPoll: cost{1, 1, 0},
			Complete: cost{1, 3, 1}, CompleteWithNext: cost{1, 3, 1}, Read: cost{1, 7, 0},
		},
		"sqlite": {
			Start: cost{1, 5, 1}, Poll: cost{2, 17, 1}, EmptyPoll: cost{1, 7, 0},
			Complete: cost{1, 6, 1}, CompleteWithNext: cost{1, 6, 1}, Read: cost{1, 4, 0},
		},
	}
	onBothStores(t, func(t *testing.T, store string, k *stack) {
		got, err := countCalls(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range []struct {
			name       string
			most, cost cost
		}{
			{"start", want[store].Start, got.Start},
			{"poll", want[store].Poll, got.Poll},
			{"empty poll", want[store].EmptyPoll, got.EmptyPoll},
			{"complete", want[store].Complete, got.Complete},
			{"complete with next", want[store].CompleteWithNext, got.CompleteWithNext},
			{"read", want[store].Read, got.Read},
		} {
			if call.cost.Commits != call.most.Commits || call.cost.RoundTrips > call.most.RoundTrips || call.cost.Statements > call.most.Statements {
				t.Errorf("%s (-at most +counted):\n%s", call.name, cmp.Diff(call.most, call.cost))
			}
		}
	})
}

// TestWorkflow_OfThreeStepsIsFiveCommits: one for its start, one for the poll
// that takes the first step, one for each result, which hands out the next. A
// worker's sign of life may add one to all of them.
func TestWorkflow_OfThreeStepsIsFiveCommits(t *testing.T) {
	onBothStores(t, func(t *testing.T, _ string, k *stack) {
		const n = 20
		got, err := countWorkflows(t.Context(), k, sequential(3), sequentialName(3), n, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got.Commits > 5*n+1 {
			t.Errorf("%d workflows took %d commits, expected at most %d", n, got.Commits, 5*n+1)
		}
	})
}

// TestFanOut_TakesTwoCommitsAnElementAtMost: one that hands it out and one that
// takes its result in, though many of them meet.
func TestFanOut_TakesTwoCommitsAnElementAtMost(t *testing.T) {
	onBothStores(t, func(t *testing.T, _ string, k *stack) {
		const width = 100
		got, err := countWorkflows(t.Context(), k, fanOut(width), fanOutName(width), 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if most := int64(2*width + 4); got.Commits > most {
			t.Errorf("a fan-out of %d took %d commits, expected at most %d", width, got.Commits, most)
		}
	})
}

// walBytes bounds what Postgres writes ahead for a workflow whose three steps are
// given and give 200 bytes; docs/performance.md says what it is made of.
const walBytes = 10_000

func TestWorkflow_OfThreeStepsWritesLittle(t *testing.T) {
	k, err := openStack(t.Context(), pgtest.URL(t), engine.Options{HoldPolls: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.close)
	// The first images of pages after a checkpoint are written before.
	if _, err := countWorkflows(t.Context(), k, sequential(3), sequentialName(3), 50, 1); err != nil {
		t.Fatal(err)
	}
	c, stop, err := k.serve(t.Context(), 16)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	// The server's own work (a vacuum, a checkpoint) may fall into one measurement.
	const n, measurements = 100, 3
	for m := range measurements {
		before := pgtest.WALBytes(t)
		for i := range n {
			if err := runOne(t.Context(), c, sequentialName(3), "order", m*n+i); err != nil {
				t.Fatal(err)
			}
		}
		got := (pgtest.WALBytes(t) - before) / n
		t.Logf("%d bytes a workflow", got)
		if got <= walBytes {
			return
		}
	}
	t.Errorf("expected at most %d bytes a workflow in one of %d measurements", walBytes, measurements)
}

func TestCall_OfAStepAllocatesLittle(t *testing.T) {
	allocations, bytes, err := callMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if allocations > 400 || bytes > 64<<10 {
		t.Errorf("%.0f allocations of %.0f bytes together, expected at most 400 of 64 KiB", allocations, bytes)
	}
}
