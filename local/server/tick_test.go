package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perigee/engine"
)

// clockwork is an engine with tasks that wait for no worker, each of which takes
// so long.
type clockwork struct {
	takes time.Duration
	tasks chan engine.Assignment

	ticks, sweeps, running, most, ended atomic.Int32
}

func (c *clockwork) Tick(context.Context, int) (engine.TickReport, error) {
	c.ticks.Add(1)
	return engine.TickReport{}, nil
}

func (c *clockwork) ClaimBuiltins(_ context.Context, n int) (claimed []engine.Assignment, err error) {
	for len(claimed) < n {
		select {
		case task := <-c.tasks:
			claimed = append(claimed, task)
		default:
			return claimed, nil
		}
	}
	return claimed, nil
}

func (c *clockwork) RunBuiltin(ctx context.Context, _ engine.Assignment) {
	if now := c.running.Add(1); now > c.most.Load() {
		c.most.Store(now)
	}
	defer c.running.Add(-1)
	select {
	case <-time.After(c.takes):
		c.ended.Add(1)
	case <-ctx.Done():
	}
}

func (c *clockwork) ForgetBuiltins()       {}
func (c *clockwork) Sweep(context.Context) { c.sweeps.Add(1) }

// minutes runs everyMinute for so long, and half a minute more.
func (c *clockwork) minutes(t *testing.T, n, tasks int) {
	t.Helper()
	c.tasks = make(chan engine.Assignment, tasks)
	for range tasks {
		c.tasks <- engine.Assignment{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*time.Minute+30*time.Second)
	defer cancel()
	everyMinute(ctx, c, slog.New(slog.DiscardHandler))
}

// A call may take four minutes, and timers do not wait for it.
func TestEveryMinute_ALongTaskHoldsUpNoTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clockwork{takes: 4 * time.Minute}
		c.minutes(t, 5, 1)
		if c.ticks.Load() < 6 || c.ended.Load() != 1 {
			t.Errorf("%d passes in five minutes, and %d tasks ended; want a pass every minute and the task at its end", c.ticks.Load(), c.ended.Load())
		}
	})
}

func TestEveryMinute_TasksRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clockwork{takes: time.Second}
		c.minutes(t, 0, 40)
		if c.ended.Load() != 40 || c.most.Load() != 16 {
			t.Errorf("%d tasks ended, at most %d at once; want 40, 16 at once", c.ended.Load(), c.most.Load())
		}
	})
}

func TestEveryMinute_SweepsSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clockwork{}
		c.minutes(t, 2, 0)
		if c.sweeps.Load() != 3 {
			t.Errorf("swept %d times, want 3: with each tick", c.sweeps.Load())
		}
	})
}

// A server that stops waits for no call; what is under way is given back.
func TestEveryMinute_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := &clockwork{takes: time.Hour}
		c.minutes(t, 0, 1)
		if took := time.Since(start); took != 30*time.Second || c.running.Load() != 0 {
			t.Errorf("it ended after %v with %d tasks running", took, c.running.Load())
		}
	})
}
