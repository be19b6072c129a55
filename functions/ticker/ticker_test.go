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
	swept int                   // how often
}

func (s *script) ClaimBuiltins(_ context.Context, n int) ([]engine.Assignment, error) {
	n = min(n, len(s.tasks))
	claimed := s.tasks[:n]
	s.tasks = s.tasks[n:]
	return claimed, nil
}

func (s *script) ForgetBuiltins() {}

func (s *script) Sweep(context.Context) { s.swept++ }

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

// wakeUps stands in for the schedule, which it sets.
type wakeUps func(ctx context.Context, at time.Time) error

func (w wakeUps) Called(context.Context) error { return nil }

func (w wakeUps) Set(ctx context.Context, at time.Time) error { return w(ctx, at) }

func run(t *testing.T, mode string, limit time.Duration, s *script, set wakeUps) (ticker.Done, error) {
	t.Helper()
	ctx := t.Context()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return ticker.Ticker{Engine: s, Mode: mode, WakeUps: set, Log: slog.New(slog.DiscardHandler)}.Run(ctx)
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

// Some tasks take minutes: what is to come meanwhile must not wait for them.
func TestRun_OnDemandAsksToBeCalledBeforeItWaitsForTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		next := start.Add(time.Minute)
		s := &script{
			tick: func(int, time.Time) (engine.TickReport, error) {
				return engine.TickReport{NextMS: next.UnixMilli()}, nil
			},
			tasks: make([]engine.Assignment, 1),
			work:  func(context.Context) { time.Sleep(50 * time.Second) },
		}
		var asked []time.Duration
		done, err := run(t, config.TickOnDemand, 5*time.Minute, s, func(_ context.Context, at time.Time) error {
			if !at.Equal(next.Truncate(time.Millisecond)) {
				t.Errorf("it asks for a call at %v", at)
			}
			asked = append(asked, time.Since(start))
			return nil
		})
		if err != nil || done.Ran != 1 {
			t.Errorf("%+v, %v; want the task run", done, err)
		}
		if diff := cmp.Diff([]time.Duration{0}, asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
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

// A task that was begun late would be cut off, handed out again and counted as
// lost. The rest is for the next call.
func TestRun_ClaimsNothingAfterItsMinute(t *testing.T) {
	for _, mode := range []string{config.TickPrecise, config.TickMinute, config.TickOnDemand} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			s := &script{
				tick:  func(int, time.Time) (engine.TickReport, error) { return engine.TickReport{}, nil },
				tasks: make([]engine.Assignment, 100),
				work: func(ctx context.Context) {
					select {
					case <-time.After(40 * time.Second):
					case <-ctx.Done():
						t.Errorf("%s: a task was cut off after %v", mode, time.Since(start))
					}
				},
			}
			var armed time.Duration
			done, err := run(t, mode, 310*time.Second, s, func(_ context.Context, at time.Time) error { armed = at.Sub(start); return nil })
			lasted := time.Since(start).Round(time.Second)
			if err != nil || done.Ran != 32 || s.ended.Load() != 32 || lasted != 80*time.Second {
				t.Errorf("%s: %+v, %v; %d tasks ended after %v, want 32 in 80 s", mode, done, err, s.ended.Load(), lasted)
			}
			if mode == config.TickOnDemand && armed != 80*time.Second {
				t.Errorf("it is called again after %v, want 80 s, at once", armed)
			}
		})
	}
}

func TestRun_SweepsOnceACall(t *testing.T) {
	for _, mode := range []string{config.TickPrecise, config.TickMinute, config.TickOnDemand} {
		for _, fault := range []error{nil, errors.New("away")} {
			synctest.Test(t, func(t *testing.T) {
				s := &script{tick: func(int, time.Time) (engine.TickReport, error) { return engine.TickReport{}, fault }}
				_, err := run(t, mode, time.Minute, s, nil)
				if want := map[bool]int{true: 1}[err == nil]; s.swept != want {
					t.Errorf("%s, %v: swept %d times, want %d", mode, err, s.swept, want)
				}
			})
		}
	}
}
