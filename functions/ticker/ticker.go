package ticker

import (
	"context"
	"log/slog"
	"time"

	"perigee/engine"
	"perigee/infra/config"
)

// Engine is what a tick needs of the engine.
type Engine interface {
	Tick(ctx context.Context, max int) (engine.TickReport, error)
}

// Ticker ticks for the length of one call.
type Ticker struct {
	Engine Engine
	// Mode is config.TickPrecise, config.TickMinute or config.TickOnDemand.
	Mode string
	// Arm asks for the next call at a moment, in mode on-demand.
	Arm func(ctx context.Context, at time.Time) error
	Log *slog.Logger
}

// Done is what a call did, for its answer and its metrics.
type Done struct {
	Passes    int   `json:"passes"`
	Advanced  int   `json:"advanced"`
	Delivered int   `json:"delivered"`
	Parked    int   `json:"parked"`
	NextMS    int64 `json:"next_ms,omitempty"` // 0: nothing is known to come
}

const (
	batch = 100
	// spare is what a call leaves of its time limit.
	spare = 2 * time.Second
	// shift is how long a precise call lasts where it has no time limit.
	shift = time.Minute
	// Between two passes of a precise call: at least a little, so that due work
	// that will not go away does not make a storm, and at most so long that what
	// another process plans is seen in time.
	shortestNap = 50 * time.Millisecond
	longestNap  = time.Second
)

// Run looks after what is due. In mode precise it goes on until shortly before
// the deadline of ctx, sleeping from one due moment to the next; in the others
// it makes one pass, and on-demand asks to be called again.
func (t Ticker) Run(ctx context.Context) (Done, error) {
	end := time.Now().Add(shift)
	if deadline, ok := ctx.Deadline(); ok {
		end = deadline.Add(-spare)
	}
	work, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	var d Done
	for {
		err := t.pass(work, &d)
		if t.Mode != config.TickPrecise {
			if err == nil && t.Mode == config.TickOnDemand && d.NextMS != 0 {
				err = t.Arm(ctx, time.UnixMilli(d.NextMS))
			}
			return d, err
		}
		if err != nil && work.Err() == nil {
			t.Log.ErrorContext(ctx, "the tick failed; the next pass tries again", "error", err)
		}
		if !nap(work, d.NextMS) {
			return d, nil
		}
	}
}

// pass ticks until nothing is due.
func (t Ticker) pass(ctx context.Context, d *Done) error {
	d.Passes++
	for {
		r, err := t.Engine.Tick(ctx, batch)
		d.Advanced += r.Advanced
		d.Delivered += r.Delivered
		d.Parked += r.Parked
		d.NextMS = r.NextMS
		if err != nil {
			return err
		}
		if r.More && ctx.Err() != nil {
			d.NextMS = time.Now().UnixMilli() // there is work left
		}
		if !r.More || ctx.Err() != nil {
			return nil
		}
	}
}

// nap sleeps until the next due moment. False: the time is over.
func nap(ctx context.Context, nextMS int64) bool {
	length := longestNap
	if nextMS != 0 {
		length = min(longestNap, max(shortestNap, time.Until(time.UnixMilli(nextMS))))
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
