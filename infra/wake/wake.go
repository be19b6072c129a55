package wake

import (
	"context"
	"sync"
	"time"

	"perigee/store"
)

// Keeper knows of the moments that this instance has planned. It is a
// watch.Watcher, and safe for concurrent use.
type Keeper struct {
	// Due lists due work, for the nearest moment of all.
	Due func(context.Context, store.DueRequest) (store.Due, error)
	// Arm sets the wake-up, in place of the one before.
	Arm func(ctx context.Context, at time.Time) error
	// Ours reports the tasks that the tick function sees to itself, as soon as
	// they are ready; nil: there are none.
	Ours func(store.Task) bool

	mu      sync.Mutex
	planned int64 // epoch milliseconds of the earliest moment since Settle; 0: none
	armed   int64 // that is known to be set; 0: none
	ready   bool  // a task of ours is ready
}

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

// Settle sets the wake-up where a moment was planned that comes before it. There
// is one schedule for all instances: what it is set to is the nearest moment in
// the database, so that nobody puts off another's. Who set it in between has
// written what for before: a second look finds that.
func (k *Keeper) Settle(ctx context.Context) error {
	k.mu.Lock()
	planned := k.planned
	needed := planned != 0 && (k.armed <= time.Now().UnixMilli() || planned < k.armed)
	ready := k.ready
	k.planned, k.ready = 0, false
	k.mu.Unlock()
	if !needed {
		return nil
	}
	at, err := k.nearest(ctx, planned, ready)
	if err != nil {
		return err
	}
	if err := k.Set(ctx, time.UnixMilli(at)); err != nil || at <= time.Now().UnixMilli() {
		return err
	}
	again, err := k.nearest(ctx, at, false)
	if err != nil || again >= at {
		return err
	}
	return k.Set(ctx, time.UnixMilli(again))
}

// nearest is the nearest moment in the database, now where something is due, or
// ready that the tick function may have to see to itself; planned where there is
// none.
func (k *Keeper) nearest(ctx context.Context, planned int64, ready bool) (int64, error) {
	now := time.Now().UnixMilli()
	due, err := k.Due(ctx, store.DueRequest{Limit: 1})
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

// Set sets the wake-up.
func (k *Keeper) Set(ctx context.Context, at time.Time) error {
	if err := k.Arm(ctx, at); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed = at.UnixMilli()
	return nil
}
