package sqlite_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"perigee/store"
	"perigee/store/sqlite"
)

// lifecycle takes one execution of a single task from its creation to its end:
// the store calls of a start, a poll and a result.
func lifecycle(b *testing.B, s store.Store, id, session string) {
	const at = int64(1_700_000_000_000)
	h := store.Head{ID: id, Incarnation: 1, Workflow: "order", Version: "1", DefinitionHash: "d", Status: "RUNNING", LastSeq: 3, LastAtMS: at, CreatedAtMS: at}
	event := func(seq uint64) store.Event {
		return store.Event{Seq: seq, Type: "StepSkipped", AtMS: at, Data: `{"step":"a","reason":"a reason of a usual length for an event of this kind"}`}
	}
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	_, err := s.Load(b.Context(), store.LoadRequest{ID: id, NowMS: at})
	check(err)
	check(s.Commit(b.Context(), store.Commit{Head: h, Events: []store.Event{event(1), event(2), event(3)}, Inserted: []store.Task{{
		Key: id + "/a", ExecutionID: id, Unit: "a", Queue: session, ReadyAtMS: at, ReadySeq: 3, TaskName: "charge", ContractVersion: "1",
		Workflow: "order", WorkflowVersion: "1", Input: `{"amount":1}`, Attempt: 1, TimeoutMS: 60_000,
	}}}))
	claimed, err := s.Claim(b.Context(), store.ClaimRequest{Session: "builtin:" + session, WorkerID: "w", Queues: []string{session},
		ClaimKey: id, Secrets: []string{id}, SessionTimeoutMS: 30_000, NowMS: at})
	check(err)
	loaded, err := s.Load(b.Context(), store.LoadRequest{ID: id, NowMS: at})
	check(err)
	h = *loaded.Head
	seen := store.Seen{Incarnation: h.Incarnation, Seq: h.LastSeq}
	h.LastSeq, h.Status, h.FinishedAtMS = h.LastSeq+2, "COMPLETED", at
	check(s.Commit(b.Context(), store.Commit{Seen: seen, Head: h, Events: []store.Event{event(seen.Seq + 1), event(seen.Seq + 2)},
		Removed: []store.TaskRemoval{{Key: id + "/a", Guard: store.Guard{State: store.TaskDispatched, TokenHash: claimed.Tasks[0].TokenHash}}}}))
}

func BenchmarkLifecycle(b *testing.B) {
	for _, way := range []struct {
		name    string
		options func() sqlite.Options
	}{
		{"memory", func() sqlite.Options { return sqlite.Options{Path: sqlite.Memory} }},
		{"file", func() sqlite.Options { return sqlite.Options{Path: b.TempDir() + "/perigee.db"} }},
		{"file-alone", func() sqlite.Options { return sqlite.Options{Path: b.TempDir() + "/perigee.db", NoGroupCommit: true} }},
	} {
		for _, callers := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/callers=%d", way.name, callers), func(b *testing.B) {
				s, err := sqlite.Open(b.Context(), way.options())
				if err == nil {
					_, _, err = s.Migrate(b.Context())
				}
				if err != nil {
					b.Fatal(err)
				}
				var caller atomic.Int64
				b.SetParallelism(callers)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					session := fmt.Sprintf("c%d", caller.Add(1))
					for n := 0; pb.Next(); n++ {
						lifecycle(b, s, fmt.Sprintf("%s-%d", session, n), session)
					}
				})
				b.StopTimer()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkWide shows that calls about one element of a wide fan-out do not
// cost more the wider it is.
func BenchmarkWide(b *testing.B) {
	const at = int64(1_700_000_000_000)
	for _, width := range []int{10, 10_000} {
		s, err := sqlite.Open(b.Context(), sqlite.Options{Path: sqlite.Memory})
		if err == nil {
			_, _, err = s.Migrate(b.Context())
		}
		c := store.Commit{Head: store.Head{ID: "e", Incarnation: 1, LastSeq: 1, LastAtMS: at, CreatedAtMS: at},
			Events: []store.Event{{Seq: 1, Type: "StepFanOut", AtMS: at, Data: "{}"}}}
		for i := range width {
			key := fmt.Sprintf("e/a[%d]", i)
			c.Inserted = append(c.Inserted, store.Task{Key: key, ExecutionID: "e", Unit: key, Queue: "q", ReadyAtMS: at, ReadySeq: uint64(i),
				DueAtMS: at + 1_000_000, Input: "{}", Attempt: 1, TimeoutMS: 60_000})
		}
		if err == nil {
			err = s.Commit(b.Context(), c)
		}
		if err != nil {
			b.Fatal(err)
		}
		for _, call := range []struct {
			name string
			run  func(i int) error
		}{
			{"load", func(int) error {
				_, err := s.Load(b.Context(), store.LoadRequest{ID: "e", Known: store.Seen{Incarnation: 1, Seq: 1}, DueTasks: true, NowMS: at})
				return err
			}},
			{"due", func(int) error { _, err := s.Due(b.Context(), store.DueRequest{NowMS: at, Limit: 10}); return err }},
			{"empty-poll", func(int) error {
				_, err := s.Claim(b.Context(), store.ClaimRequest{Session: "builtin:x", Queues: []string{"none"}, Secrets: []string{"s"}, NowMS: at})
				return err
			}},
			{"poll", func(i int) error {
				_, err := s.Claim(b.Context(), store.ClaimRequest{Session: "builtin:x", Queues: []string{"q"}, ClaimKey: fmt.Sprint(i), Secrets: []string{fmt.Sprint(i)}, NowMS: at})
				return err
			}},
		} {
			b.Run(fmt.Sprintf("width=%d/%s", width, call.name), func(b *testing.B) {
				for i := range b.N {
					if err := call.run(i); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
