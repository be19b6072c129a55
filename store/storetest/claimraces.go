package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"perigee/store"
)

// wantGapless checks that the stored events of an execution are numbered
// without gaps and end where the head says.
func wantGapless(t *testing.T, s store.Store, id string) {
	t.Helper()
	loaded := load(t, s, id)
	for i, e := range loaded.Events {
		equal(t, id+": seq", uint64(i+1), e.Seq)
	}
	equal(t, id+": last seq", uint64(len(loaded.Events)), loaded.Head.LastSeq)
}

var claimRaceRules = []rule{
	{"NoTaskGoesToTwoWorkers", func(t *testing.T, s store.Store) {
		const executions, width, workers = 10, 12, 8
		for i := range executions {
			id := fmt.Sprintf("e%d", i)
			var rows []store.Task
			for j := range width {
				rows = append(rows, readyTask(id, fmt.Sprintf("a[%d]", j), uint64(j+1)))
			}
			create(t, s, id, rows...)
		}
		var left atomic.Int64
		left.Store(executions * width)
		owners := make([]map[string]string, workers)
		var group sync.WaitGroup
		for w := range workers {
			session := fmt.Sprintf("s%d", w)
			register(t, s, session, epoch)
			owners[w] = map[string]string{}
			group.Go(func() {
				// An empty answer may only mean that others held the heads.
				for n := 0; left.Load() > 0 && n < 10_000; n++ {
					claimed, err := s.Claim(t.Context(), poll(session, fmt.Sprintf("poll-%d", n), 1+n%3, epoch))
					if err != nil {
						t.Error(err)
						return
					}
					for _, task := range claimed.Tasks {
						owners[w][task.Key] = task.TokenHash
					}
					left.Add(-int64(len(claimed.Tasks)))
				}
			})
		}
		group.Wait()
		all := map[string]string{}
		for _, claimed := range owners {
			for key, token := range claimed {
				if _, twice := all[key]; twice {
					t.Fatalf("%s was claimed twice", key)
				}
				all[key] = token
			}
		}
		equal(t, "claimed", executions*width, len(all))
		for i := range executions {
			id := fmt.Sprintf("e%d", i)
			wantGapless(t, s, id)
			for _, task := range tasksOf(t, s, id) {
				equal(t, task.Key, all[task.Key], task.TokenHash)
			}
		}
	}},
	{"APollSentTwiceAtOnceClaimsOnce", func(t *testing.T, s store.Store) {
		// The network repeats a request while the first is under way. Whoever is
		// second gets the same tasks, or none, but never more.
		create(t, s, "e1", readyTask("e1", "a", 1), readyTask("e1", "b", 2), readyTask("e1", "c", 3))
		register(t, s, "s1", epoch)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if _, err := s.Claim(t.Context(), poll("s1", "poll-1", 1, epoch)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		wantGapless(t, s, "e1")
	}},
	{"AClaimAndADecisionExcludeEachOther", func(t *testing.T, s store.Store) {
		register(t, s, "s1", epoch)
		for i := range 40 {
			id := fmt.Sprintf("e%02d", i)
			h := create(t, s, id, readyTask(id, "a", 2))
			c := following(h, 1)
			c.Removed = []store.TaskRemoval{{Key: id + "/a", Guard: store.Guard{State: store.TaskReady}}}
			var claimed store.Claimed
			var claimErr, commitErr error
			var group sync.WaitGroup
			group.Go(func() { claimed, claimErr = s.Claim(t.Context(), poll("s1", id, 1, epoch)) })
			group.Go(func() { commitErr = s.Commit(t.Context(), c) })
			group.Wait()
			must(t, claimErr)
			if commitErr != nil {
				wantLost(t, commitErr, id+"/a")
			}
			if removed := commitErr == nil; removed == (len(claimed.Tasks) == 1) {
				t.Fatalf("%s: removed %v, claimed %v", id, removed, keys(claimed.Tasks))
			}
			wantGapless(t, s, id)
			equal(t, "last seq", uint64(3), load(t, s, id).Head.LastSeq)
		}
	}},
	{"ADecisionFromBeforeAClaimLoses", func(t *testing.T, s store.Store) {
		h := create(t, s, "e1", readyTask("e1", "a", 2))
		register(t, s, "s1", epoch)
		claim(t, s, poll("s1", "poll-1", 1, epoch))
		wantLost(t, s.Commit(t.Context(), following(h, 1)), "")
	}},
	{"ClaimsAndDecisionsOfOneExecutionKeepItsHistoryWhole", func(t *testing.T, s store.Store) {
		var rows []store.Task
		for i := range 30 {
			rows = append(rows, readyTask("e1", fmt.Sprintf("a[%d]", i), uint64(i+1)))
		}
		create(t, s, "e1", rows...)
		register(t, s, "s1", epoch)
		claimed := map[string]bool{}
		var group sync.WaitGroup
		group.Go(func() {
			for n := 0; len(claimed) < len(rows) && n < 10_000; n++ {
				answer, err := s.Claim(t.Context(), poll("s1", fmt.Sprintf("poll-%d", n), 1, epoch))
				if err != nil {
					t.Error(err)
					return
				}
				for _, task := range answer.Tasks {
					claimed[task.Key] = true
				}
			}
		})
		decided := 0
		for n := 0; decided < 10 && n < 10_000; n++ {
			err := s.Commit(t.Context(), following(*load(t, s, "e1").Head, 1))
			if _, lost := errors.AsType[*store.LostError](err); lost {
				continue
			}
			must(t, err)
			decided++
		}
		group.Wait()
		equal(t, "claimed", keys(tasksOf(t, s, "e1")), slices.Sorted(maps.Keys(claimed)))
		equal(t, "last seq", uint64(2+30+10), load(t, s, "e1").Head.LastSeq)
		wantGapless(t, s, "e1")
	}},
}
