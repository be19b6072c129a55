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

// database is one whose nearest moment is given, with the row of the schedule.
type database struct {
	due    store.Due
	row    store.WakeUp
	before func() // runs once, before the row is next written
}

func (d *database) Due(context.Context, store.DueRequest) (store.Due, error) { return d.due, nil }

func (d *database) WakeUp(context.Context) (store.WakeUp, error) { return d.row, nil }

func (d *database) SetWakeUp(_ context.Context, seen store.WakeUp, atMS int64) (bool, error) {
	if before := d.before; before != nil {
		d.before = nil
		before()
	}
	if d.row.Version != seen.Version {
		return false, nil
	}
	d.row = store.WakeUp{AtMS: atMS, Version: seen.Version + 1}
	return true, nil
}

// keeper is the Keeper of one instance.
type keeper struct {
	*wake.Keeper
	*database
	start time.Time
	armed []time.Duration // each wake-up that was set, since the start
	fails error
}

func newKeeper() *keeper { return onDatabase(&database{}) }

// onDatabase is another instance on a database.
func onDatabase(d *database) *keeper {
	k := &keeper{database: d, start: time.Now()}
	k.Keeper = &wake.Keeper{
		Store: d,
		Arm: func(_ context.Context, at time.Time) error {
			if k.fails == nil {
				k.armed = append(k.armed, at.Sub(k.start))
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
		time.Sleep(time.Minute + time.Second) // the call comes, and finds nothing
		if err := k.Called(t.Context()); err != nil {
			t.Error(err)
		}
		k.commitDueIn(3 * time.Hour)
		k.expect(t, time.Hour, time.Minute, 3*time.Hour+time.Minute+time.Second)
	})
}

// The call for one moment has come, and another instance plans what comes later
// than the moment that it set itself.
func TestSettle_KnowsWhatOthersMadeOfTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newKeeper()
		b := onDatabase(a.database)
		a.commitDueIn(10 * time.Minute)
		a.expect(t, 10*time.Minute)
		// A signal takes the timer away, and a task of the tick's own is ready.
		b.Ours = func(store.Task) bool { return true }
		b.due = store.Due{}
		b.Committed(store.Commit{Inserted: []store.Task{{TaskName: "http.request"}}})
		b.expect(t, 0)
		if err := b.Called(t.Context()); err != nil { // the tick, which finds nothing to come
			t.Error(err)
		}
		a.commitDueIn(15 * time.Minute)
		a.expect(t, 10*time.Minute, 15*time.Minute)
	})
}

// Two set the schedule at once. Which moment it has nobody knows: the one who
// finds that out sets it once more.
func TestSettle_OfTwoAtOnceTheEarlierMomentIsSetLast(t *testing.T) {
	for _, mine := range []time.Duration{time.Hour, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			a := newKeeper()
			b := onDatabase(a.database)
			const theirs = 10 * time.Minute
			a.before = func() {
				b.commitDueIn(theirs)
				b.expect(t, theirs)
				a.due.NextMS = in(min(mine, theirs))
			}
			a.commitDueIn(mine)
			a.expect(t, mine, min(mine, theirs))
			if at := a.row.AtMS; at != in(min(mine, theirs)) {
				t.Errorf("the row says %d, want %d", at, in(min(mine, theirs)))
			}
		})
	}
}

func TestSettle_ACallThatWasLostIsNotReliedOnForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.commitDueIn(0)
		k.expect(t, 0)
		time.Sleep(time.Minute)
		k.commitDueIn(time.Hour)
		k.expect(t, 0) // it may be late
		time.Sleep(2 * time.Minute)
		k.commitDueIn(time.Hour)
		k.expect(t, 0, time.Hour+3*time.Minute)
	})
}

func TestSettle_SetsNothingForMessagesThatAreDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.Committed(store.Commit{Outbox: []store.Message{{ID: "m"}}})
		k.expect(t)
		k.Committed(store.Commit{Outbox: []store.Message{{ID: "m"}}})
		k.due.Outbox = true
		k.expect(t, 0)
	})
}

// A tick says when the next one is due; one that is to come earlier stays.
func TestSet_MovesNothingToLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		for _, in := range []time.Duration{time.Hour, time.Minute, 2 * time.Hour} {
			if err := k.Set(t.Context(), k.start.Add(in)); err != nil {
				t.Error(err)
			}
		}
		k.expect(t, time.Hour, time.Minute, time.Minute)
		if err := k.Called(t.Context()); err != nil { // an hourly call, before its moment
			t.Error(err)
		}
		if at := k.row.AtMS; at != in(time.Minute) {
			t.Errorf("the row says %d, want %d", at, in(time.Minute))
		}
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

// What has ended waits for nothing, whatever its head says.
func TestSettle_AnEndPlansNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.Committed(store.Commit{Head: store.Head{DueAtMS: in(time.Hour), FinishedAtMS: in(0)}})
		k.expect(t)
	})
}

// A message is younger than any moment that was planned: the call that stands may
// be long after it.
func TestSettle_MessagesAreSeenToBeforeTheCallThatStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.commitDueIn(time.Hour)
		k.expect(t, time.Hour)
		k.Committed(store.Commit{Head: store.Head{DueAtMS: in(2 * time.Hour)}, Outbox: []store.Message{{ID: "m"}}})
		k.due.Outbox = true
		k.expect(t, time.Hour, 0)
	})
}

// Scheduler counts in seconds, so that a call may come a little before its moment.
func TestCalled_TakesACallThatIsALittleEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		k.commitDueIn(time.Minute)
		k.expect(t, time.Minute)
		for _, early := range []time.Duration{2 * time.Second, 500 * time.Millisecond} {
			time.Sleep(time.Until(time.UnixMilli(k.row.AtMS).Add(-early)))
			if err := k.Called(t.Context()); err != nil {
				t.Error(err)
			}
			if taken := k.row.AtMS == 0; taken != (early < time.Second) {
				t.Errorf("%v early: the row says %d", early, k.row.AtMS)
			}
		}
	})
}
