package ticker_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
	"perigee/functions/ticker"
	"perigee/infra/config"
)

// script is an engine whose passes are given.
type script struct {
	tick func(pass int, now time.Time) (engine.TickReport, error)
	at   []time.Duration // of each pass, since the start
	from time.Time

	tasks []engine.Assignment   // that wait for no worker
	work  func(context.Context) // what each of them does
	ended atomic.Int32          // tasks that came to an end
}

func (s *script) ClaimBuiltins(_ context.Context, n int) ([]engine.Assignment, error) {
	n = min(n, len(s.tasks))
	claimed := s.tasks[:n]
	s.tasks = s.tasks[n:]
	return claimed, nil
}

func (s *script) ForgetBuiltins() {}

func (s *script) RunBuiltin(ctx context.Context, _ engine.Assignment) {
	s.work(ctx)
	s.ended.Add(1)
}

func (s *script) Tick(context.Context, int) (engine.TickReport, error) {
	now := time.Now()
	if s.from.IsZero() {
		s.from = now
	}
	s.at = append(s.at, now.Sub(s.from))
	return s.tick(len(s.at), now)
}

func run(t *testing.T, mode string, limit time.Duration, s *script, arm func(context.Context, time.Time) error) (ticker.Done, error) {
	t.Helper()
	ctx := t.Context()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return ticker.Ticker{Engine: s, Mode: mode, Arm: arm, Log: slog.New(slog.DiscardHandler)}.Run(ctx)
}

func TestRun_PreciseSleepsUntilTheNextMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{tick: func(pass int, now time.Time) (engine.TickReport, error) {
			next := map[int]time.Duration{1: 300 * time.Millisecond, 2: time.Millisecond, 3: -time.Second}[pass]
			if next == 0 {
				return engine.TickReport{}, nil
			}
			return engine.TickReport{Advanced: 1, NextMS: now.Add(next).UnixMilli()}, nil
		}}
		done, err := run(t, config.TickPrecise, 5*time.Second, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		// It waits for the moment, at least 50 ms, at most a second, and leaves 2 s.
		want := []time.Duration{0, 300 * time.Millisecond, 350 * time.Millisecond, 400 * time.Millisecond, 1400 * time.Millisecond, 2400 * time.Millisecond}
		if diff := cmp.Diff(want, s.at); diff != "" {
			t.Errorf("passes (-want +got):\n%s", diff)
		}
		if done.Passes != 6 || done.Advanced != 3 {
			t.Errorf("done %+v", done)
		}
	})
}

func TestRun_PreciseGoesOnAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{tick: func(pass int, _ time.Time) (engine.TickReport, error) {
			if pass == 1 {
				return engine.TickReport{}, errors.New("the database is away")
			}
			return engine.TickReport{Advanced: 1}, nil
		}}
		if done, err := run(t, config.TickPrecise, 4*time.Second, s, nil); err != nil || done.Advanced == 0 {
			t.Errorf("done %+v, %v", done, err)
		}
	})
}

func TestRun_PreciseWithoutALimitLastsAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &script{tick: func(int, time.Time) (engine.TickReport, error) { return engine.TickReport{}, nil }}
		if _, err := run(t, config.TickPrecise, 0, s, nil); err != nil || time.Since(start) != time.Minute {
			t.Errorf("it lasted %v, %v", time.Since(start), err)
		}
	})
}

func TestRun_APassGoesOnWhileThereIsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{tick: func(pass int, _ time.Time) (engine.TickReport, error) {
			return engine.TickReport{Advanced: 100, Delivered: 1, Parked: 1, More: pass < 3}, nil
		}}
		done, err := run(t, config.TickMinute, time.Minute, s, nil)
		if diff := cmp.Diff(ticker.Done{Passes: 1, Advanced: 300, Delivered: 3, Parked: 3}, done); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func TestRun_OnDemandAsksToBeCalledAtTheNextMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := time.Now().Add(3 * time.Hour)
		for _, c := range []struct {
			name   string
			report engine.TickReport
			err    error
			want   []int64
		}{
			{"a moment", engine.TickReport{NextMS: next.UnixMilli()}, nil, []int64{next.UnixMilli()}},
			{"none", engine.TickReport{}, nil, nil},
			{"a failure", engine.TickReport{}, errors.New("away"), nil},
		} {
			var armed []int64
			s := &script{tick: func(int, time.Time) (engine.TickReport, error) { return c.report, c.err }}
			_, err := run(t, config.TickOnDemand, time.Minute, s, func(_ context.Context, at time.Time) error {
				armed = append(armed, at.UnixMilli())
				return nil
			})
			if diff := cmp.Diff(c.want, armed); diff != "" || !errors.Is(err, c.err) {
				t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
			}
		}
	})
}

// There is one schedule. A result that comes in while a tick ends makes a task
// ready and sets it to now; the tick, which has not seen that, sets it to later.
func TestRun_OnDemandLooksAgainOnceItHasSetTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := time.Now().Add(time.Hour)
		s := &script{
			tick: func(int, time.Time) (engine.TickReport, error) {
				return engine.TickReport{NextMS: next.UnixMilli()}, nil
			},
			work: func(context.Context) {},
		}
		armed := 0
		done, err := run(t, config.TickOnDemand, time.Minute, s, func(context.Context, time.Time) error {
			if armed++; armed == 1 {
				s.tasks = make([]engine.Assignment, 1)
			}
			return nil
		})
		if err != nil || done.Ran != 1 || armed != 2 {
			t.Errorf("%+v, %v, armed %d times; want the task run and the schedule set again", done, err, armed)
		}
	})
}

// Work that is left when the time is over is due at once.
func TestRun_OnDemandIsCalledAgainForWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var armed time.Time
		s := &script{tick: func(int, time.Time) (engine.TickReport, error) {
			time.Sleep(time.Second)
			return engine.TickReport{Advanced: 100, More: true}, nil
		}}
		_, err := run(t, config.TickOnDemand, 5*time.Second, s, func(_ context.Context, at time.Time) error { armed = at; return nil })
		if lasted := armed.Sub(start); err != nil || lasted < 3*time.Second || lasted > 4*time.Second {
			t.Errorf("armed %v after the start, %v; want 3 s, which leaves 2", lasted, err)
		}
	})
}

// Tasks that wait for no worker run beside the passes, so many at once, and end
// with the call.
func TestRun_SeesToTasksThatWaitForNoWorker(t *testing.T) {
	for _, mode := range []string{config.TickPrecise, config.TickMinute} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{
				tick:  func(int, time.Time) (engine.TickReport, error) { return engine.TickReport{}, nil },
				tasks: make([]engine.Assignment, 40),
				work:  func(context.Context) { time.Sleep(500 * time.Millisecond) },
			}
			done, err := run(t, mode, 10*time.Second, s, nil)
			if err != nil || done.Ran != 40 || s.ended.Load() != 40 {
				t.Errorf("%s: %+v, %v; %d tasks ended, want 40", mode, done, err, s.ended.Load())
			}
		})
	}
}

// The next minute's call makes the passes then.
func TestRun_PreciseLeavesATaskMoreTimeThanItsPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &script{
			tick:  func(int, time.Time) (engine.TickReport, error) { return engine.TickReport{}, nil },
			tasks: make([]engine.Assignment, 1),
			work: func(ctx context.Context) {
				select {
				case <-time.After(4 * time.Minute):
				case <-ctx.Done():
					t.Error("the task was cut off")
				}
			},
		}
		if _, err := run(t, config.TickPrecise, 310*time.Second, s, nil); err != nil || time.Since(start) != 4*time.Minute {
			t.Errorf("it took %v, %v", time.Since(start), err)
		}
		if last := s.at[len(s.at)-1]; last >= time.Minute {
			t.Errorf("it made a pass after %v", last)
		}
	})
}

func TestRun_ATaskThatTakesTooLongEndsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &script{
			tick:  func(int, time.Time) (engine.TickReport, error) { return engine.TickReport{}, nil },
			tasks: make([]engine.Assignment, 1),
			work:  func(ctx context.Context) { <-ctx.Done() },
		}
		if _, err := run(t, config.TickMinute, 10*time.Second, s, nil); err != nil || s.ended.Load() != 1 || time.Since(start) != 8*time.Second {
			t.Errorf("it took %v, %v; %d tasks ended", time.Since(start), err, s.ended.Load())
		}
	})
}
