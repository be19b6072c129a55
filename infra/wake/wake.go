package wake

import (
	"context"
	"errors"
	"sync"
	"time"

	"perigee/store"
)

// Store is what a Keeper needs of a store.
type Store interface {
	// Due lists due work, for the nearest moment of all.
	Due(ctx context.Context, r store.DueRequest) (store.Due, error)
	// WakeUp reads to what the schedule is set.
	WakeUp(ctx context.Context) (store.WakeUp, error)
	// SetWakeUp writes to what it has been set; false: somebody else has since.
	SetWakeUp(ctx context.Context, seen store.WakeUp, atMS int64) (set bool, err error)
}

// Keeper knows of the moments that this instance has planned. It is a
// watch.Watcher, and safe for concurrent use.
type Keeper struct {
	Store Store
	// Arm sets the schedule, in place of the moment before.
	Arm func(ctx context.Context, at time.Time) error
	// Ours reports the tasks that the tick function sees to itself, as soon as
	// they are ready; nil: there are none.
	Ours func(store.Task) bool

	mu       sync.Mutex
	planned  int64 // epoch milliseconds of the earliest moment since Settle; 0: none
	ready    bool  // a task of ours is ready
	messages bool  // messages were written, which may be delivered by now
}

const (
	// lostAfter is when a call that should have come does not come any more:
	// Scheduler is up to a minute late and tries for another.
	lostAfter = 2 * time.Minute
	// setTries bounds how often the schedule is set while others set it, too.
	setTries = 8
)

// errBusy says that others set the schedule at the same moment, again and again.
var errBusy = errors.New("the wake-up was set by others each time; theirs stands")

// Committed notes the moments of a decision.
func (k *Keeper) Committed(c store.Commit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.Head.FinishedAtMS == 0 {
		k.plan(c.Head.DueAtMS)
	}
	for i := range c.Inserted {
		k.plan(c.Inserted[i].DueAtMS)
		if k.Ours != nil && k.Ours(c.Inserted[i]) {
			k.plan(time.Now().UnixMilli())
			k.ready = true
		}
	}
	for i := range c.Children {
		k.plan(c.Children[i].Head.DueAtMS)
	}
	k.messages = k.messages || len(c.Outbox) > 0
}

// Claimed notes when attempts have to be looked at.
func (k *Keeper) Claimed(c store.Claimed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range c.Tasks {
		k.plan(c.Tasks[i].DueAtMS)
	}
}

// Looked is of no interest: a tick sets its own wake-up.
func (k *Keeper) Looked(store.Due) {}

func (k *Keeper) plan(ms int64) {
	if ms != 0 && (k.planned == 0 || ms < k.planned) {
		k.planned = ms
	}
}

// Settle sees to it that a call comes at the earliest moment that was planned
// since the last Settle.
func (k *Keeper) Settle(ctx context.Context) error {
	k.mu.Lock()
	planned, ready, messages := k.planned, k.ready, k.messages
	k.planned, k.ready, k.messages = 0, false, false
	k.mu.Unlock()
	if planned == 0 && !messages {
		return nil
	}
	seen, err := k.Store.WakeUp(ctx)
	if err != nil {
		return err
	}
	if stands(seen) && !messages && seen.AtMS <= planned {
		return nil
	}
	at, err := k.nearest(ctx, planned, ready)
	if err != nil || at == 0 {
		return err
	}
	return k.set(ctx, seen, at, false)
}

// Called notes that a call has come, before it looks at what is due: what others
// leave from now on needs another.
func (k *Keeper) Called(ctx context.Context) error {
	seen, err := k.Store.WakeUp(ctx)
	if err != nil || seen.AtMS == 0 || seen.AtMS > time.Now().Add(time.Second).UnixMilli() {
		return err
	}
	// Where somebody has set it meanwhile, that is to come.
	_, err = k.Store.SetWakeUp(ctx, seen, 0)
	return err
}

// Set has the next call come at a moment, or earlier where one is to. It sets the
// schedule even so: whoever set it last may have died before that was written.
func (k *Keeper) Set(ctx context.Context, at time.Time) error {
	seen, err := k.Store.WakeUp(ctx)
	if err != nil {
		return err
	}
	return k.set(ctx, seen, at.UnixMilli(), true)
}

// set moves the schedule to a moment unless an earlier one stands. Who finds that
// another has set it in between does not know whose moment it has now, and sets
// it once more, to the earlier of both.
func (k *Keeper) set(ctx context.Context, seen store.WakeUp, at int64, always bool) error {
	for range setTries {
		if stands(seen) && seen.AtMS <= at {
			if !always {
				return nil
			}
			at = seen.AtMS
		}
		if err := k.Arm(ctx, time.UnixMilli(at)); err != nil {
			return err
		}
		set, err := k.Store.SetWakeUp(ctx, seen, at)
		if err != nil || set {
			return err
		}
		if seen, err = k.Store.WakeUp(ctx); err != nil {
			return err
		}
		always = true
	}
	return errBusy
}

// stands reports whether a call is to come, as far as the row says.
func stands(w store.WakeUp) bool {
	return w.AtMS > time.Now().Add(-lostAfter).UnixMilli()
}

// nearest is the nearest moment in the database, now where something is due, or
// ready that the tick function may have to see to itself; planned where there is
// none, which may be none as well.
func (k *Keeper) nearest(ctx context.Context, planned int64, ready bool) (int64, error) {
	now := time.Now().UnixMilli()
	due, err := k.Store.Due(ctx, store.DueRequest{Limit: 1})
	if err != nil {
		return 0, err
	}
	switch {
	case len(due.ExecutionIDs) > 0 || due.Outbox || ready || k.Ours != nil && due.OldestReady != 0:
		return now, nil
	case due.NextMS != 0:
		return due.NextMS, nil
	}
	return planned, nil
}
