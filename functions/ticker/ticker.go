package ticker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"perigee/engine"
	"perigee/infra/config"
)

// Engine is what a tick needs of the engine.
type Engine interface {
	Tick(ctx context.Context, max int) (engine.TickReport, error)
	// ClaimBuiltins and RunBuiltin see to tasks that wait for no worker.
	ClaimBuiltins(ctx context.Context, n int) ([]engine.Assignment, error)
	RunBuiltin(ctx context.Context, a engine.Assignment)
	// ForgetBuiltins has the next claim look for new definitions.
	ForgetBuiltins()
	// Sweep removes sessions of workers that are gone for good, now and then.
	Sweep(ctx context.Context)
}

// Ticker ticks for the length of one call.
type Ticker struct {
	Engine Engine
	// Mode is config.TickPrecise, config.TickMinute or config.TickOnDemand.
	Mode string
	// WakeUps are how calls come about in mode on-demand.
	WakeUps WakeUps
	Log     *slog.Logger
}

// WakeUps is what a tick needs of wake.Keeper.
type WakeUps interface {
	// Called notes that a call has come.
	Called(ctx context.Context) error
	// Set asks for the next call at a moment.
	Set(ctx context.Context, at time.Time) error
}

// Done is what a call did, for its answer and its metrics.
type Done struct {
	Passes    int   `json:"passes"`
	Advanced  int   `json:"advanced"`
	Delivered int   `json:"delivered"`
	Parked    int   `json:"parked"`
	Ran       int   `json:"ran"`               // tasks that wait for no worker
	NextMS    int64 `json:"next_ms,omitempty"` // 0: nothing is known to come
}

const (
	batch = 100
	// spare is what a call leaves of its time limit.
	spare = 2 * time.Second
	// shift is how long a call makes passes and claims tasks: the next minute's
	// goes on. If it has more time, that is for the tasks that are still running.
	shift = time.Minute
	// Between two passes of a precise call: at least a little, so that due work
	// that will not go away does not make a storm, and at most so long that what
	// another process plans is seen in time.
	shortestNap = 50 * time.Millisecond
	longestNap  = time.Second
)

// Run looks after what is due. In mode precise it goes on for a minute, or until
// shortly before the deadline of ctx, sleeping from one due moment to the next;
// in the others it makes one pass, and on-demand asks to be called again. Tasks
// that it runs may take until shortly before the deadline.
func (t Ticker) Run(ctx context.Context) (Done, error) {
	end := time.Now().Add(shift)
	last := end
	if deadline, ok := ctx.Deadline(); ok {
		last = deadline.Add(-spare)
	}
	work, cancelWork := context.WithDeadline(ctx, last)
	defer cancelWork()
	passes, cancel := context.WithDeadline(work, end)
	defer cancel()
	t.Engine.ForgetBuiltins() // this call may be the one for what was registered a moment ago
	var d Done
	var err error
	switch t.Mode {
	case config.TickPrecise:
		d = t.precise(passes, work)
	case config.TickOnDemand:
		err = t.onDemand(ctx, passes, work, &d)
	default:
		err = t.once(passes, work, &d, func() error { return nil })
	}
	if err == nil {
		t.Engine.Sweep(ctx)
	}
	return d, err
}

// onDemand makes passes like once and asks to be called at the next moment before
// it waits for the tasks that it runs: some take minutes.
func (t Ticker) onDemand(ctx, passes, work context.Context, d *Done) error {
	if err := t.WakeUps.Called(ctx); err != nil {
		return err
	}
	set := int64(0)
	setNext := func() error {
		if d.NextMS == 0 || d.NextMS == set {
			return nil
		}
		set = d.NextMS
		return t.WakeUps.Set(ctx, time.UnixMilli(d.NextMS))
	}
	if err := t.once(passes, work, d, setNext); err != nil {
		return err
	}
	return setNext()
}

// precise goes on until ctx ends. Tasks run beside it; those that have not
// ended when work does are given back.
func (t Ticker) precise(ctx, work context.Context) (d Done) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, tasksAtOnce)
	for {
		if err := t.pass(ctx, &d); err != nil && ctx.Err() == nil {
			t.Log.ErrorContext(ctx, "the tick failed; the next pass tries again", "error", err)
		}
		n, err := t.run(ctx, work, slots, &running)
		if err != nil && ctx.Err() == nil {
			t.Log.ErrorContext(ctx, "tasks could not be claimed; the next pass tries again", "error", err)
		}
		d.Ran += n
		next := d.NextMS
		if n > 0 {
			next = 1 // there may be more at once
		}
		if !nap(ctx, next) {
			return d
		}
	}
}

// once goes on until nothing is due and no task is left, or ctx ends: then tasks
// that have begun go on until work does, and what is left is due at once. looked is
// called when it is known what is to come.
func (t Ticker) once(ctx, work context.Context, d *Done, looked func() error) error {
	for {
		if err := t.pass(ctx, d); err != nil && ctx.Err() == nil {
			return err
		}
		var running sync.WaitGroup
		n, err := t.run(ctx, work, make(chan struct{}, tasksAtOnce), &running)
		err = errors.Join(err, looked())
		running.Wait()
		d.Ran += n
		switch {
		case ctx.Err() != nil:
			d.NextMS = time.Now().UnixMilli()
			return nil
		case n == 0 || err != nil:
			return err
		}
	}
}

// tasksAtOnce bounds the tasks that one call runs at once.
const tasksAtOnce = 16

// run claims as many tasks as there are free slots and starts them; they have
// the time of work.
func (t Ticker) run(ctx, work context.Context, slots chan struct{}, running *sync.WaitGroup) (n int, err error) {
	free := cap(slots) - len(slots)
	if free == 0 || ctx.Err() != nil {
		return 0, nil
	}
	tasks, err := t.Engine.ClaimBuiltins(work, free) // to its end: what it takes nobody else runs
	for _, task := range tasks {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			t.Engine.RunBuiltin(work, task)
		})
	}
	return len(tasks), err
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
