package wake_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/infra/wake"
	"perigee/store"
)

// keeper is a Keeper on a database whose nearest moment is given.
type keeper struct {
	*wake.Keeper
	due   store.Due
	armed []time.Duration // each wake-up that was set, since the start
	fails error
}

func newKeeper() *keeper {
	k, start := &keeper{}, time.Now()
	k.Keeper = &wake.Keeper{
		Due: func(context.Context, store.DueRequest) (store.Due, error) { return k.due, nil },
		Arm: func(_ context.Context, at time.Time) error {
			if k.fails == nil {
				k.armed = append(k.armed, at.Sub(start))
			}
			return k.fails
		},
	}
	return k
}

// in is a moment from now.
func in(d time.Duration) int64 { return time.Now().Add(d).UnixMilli() }

func (k *keeper) commitDueIn(d time.Duration) {
	k.due.NextMS = in(d)
	k.Committed(store.Commit{Head: store.Head{DueAtMS: in(d)}})
}

func (k *keeper) expect(t *testing.T, want ...time.Duration) {
	t.Helper()
	if err := k.Settle(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, k.armed); diff != "" {
		t.Errorf("wake-ups (-want +got):\n%s", diff)
	}
}

func TestSettle_SetsAWakeUpForAnEarlierMomentOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.expect(t) // nothing was planned
		k.commitDueIn(time.Hour)
		k.expect(t, time.Hour)
		k.commitDueIn(2 * time.Hour)
		k.expect(t, time.Hour)
		k.commitDueIn(time.Minute)
		k.expect(t, time.Hour, time.Minute)
		time.Sleep(2 * time.Minute) // the wake-up came, and a tick may have set the next
		k.commitDueIn(3 * time.Hour)
		k.expect(t, time.Hour, time.Minute, 3*time.Hour+2*time.Minute)
	})
}

// One schedule serves all: what others planned must not be put off.
func TestSettle_NeverPutsOffAnotherInstancesMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.Committed(store.Commit{Head: store.Head{DueAtMS: in(time.Hour)}})
		k.due = store.Due{NextMS: in(time.Minute)}
		k.expect(t, time.Minute)
	})
}

func TestSettle_WhatIsDueAlreadyIsSeenToNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.Committed(store.Commit{Head: store.Head{DueAtMS: in(0)}})
		k.due = store.Due{ExecutionIDs: []string{"child"}, NextMS: in(time.Hour)}
		k.expect(t, 0)
	})
}

func TestSettle_LooksAtTasksAndChildrenToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.Committed(store.Commit{Inserted: []store.Task{{DueAtMS: in(time.Hour)}}})
		k.expect(t, time.Hour)
		k.Claimed(store.Claimed{Tasks: []store.Task{{DueAtMS: in(time.Minute)}}})
		k.expect(t, time.Hour, time.Minute)
		k.Committed(store.Commit{Children: []store.NewExecution{{Head: store.Head{DueAtMS: in(time.Second)}}}})
		k.expect(t, time.Hour, time.Minute, time.Second)
	})
}

func TestSettle_AFailureIsToldAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.fails = errors.New("throttled")
		k.commitDueIn(time.Hour)
		if err := k.Settle(t.Context()); !errors.Is(err, k.fails) {
			t.Errorf("got %v", err)
		}
		k.fails = nil
		k.commitDueIn(2 * time.Hour)
		k.expect(t, 2*time.Hour)
	})
}

func TestSettle_ATaskOfOursIsSeenToNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.Ours = func(task store.Task) bool { return task.TaskName == "http.request" }
		k.due = store.Due{NextMS: in(time.Hour)}
		k.Committed(store.Commit{Inserted: []store.Task{{TaskName: "a.step"}}})
		k.expect(t)
		k.Committed(store.Commit{Inserted: []store.Task{{TaskName: "http.request"}}})
		k.expect(t, 0)
	})
}

// Another instance's task is ready, for which it has set the wake-up to now.
func TestSettle_ATaskThatMayBeOursIsNotPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.Ours = func(store.Task) bool { return false }
		k.due = store.Due{NextMS: in(time.Hour), OldestReady: in(-time.Second)}
		k.Committed(store.Commit{Head: store.Head{DueAtMS: in(time.Hour)}})
		k.expect(t, 0)
	})
}

// One schedule, and two that set it: the later one looks again.
func TestSettle_LooksAgainAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.Ours = func(store.Task) bool { return false }
		arm := k.Arm
		k.Arm = func(ctx context.Context, at time.Time) error {
			if len(k.armed) == 0 {
				k.due.OldestReady = in(0) // became ready, and set the wake-up, just before
			}
			return arm(ctx, at)
		}
		k.commitDueIn(time.Hour)
		k.expect(t, time.Hour, 0)
	})
}
