package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/sdk/go/client"
)

func echo(_ context.Context, t *Task) (any, error) { return t.Input, nil }

// results waits for n results and gives them in order of arrival.
func results(t *testing.T, f *fakeServer, n int) []client.Result {
	t.Helper()
	if !f.until(t.Context(), func() bool { return len(f.results) >= n }) {
		t.Fatalf("fewer than %d results", n)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]client.Result(nil), f.results...)
}

func TestWorker_ReportsOutputAndGoesOnByNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.add(task("a"), task("b"), task("c"))
		stop := start(t, f, Options{Concurrency: 1}, echo)
		got := results(t, f, 3)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		want := []client.Result{{Token: "a", Output: json.RawMessage(`{"n":1}`)}, {Token: "b", Output: json.RawMessage(`{"n":1}`)}, {Token: "c", Output: json.RawMessage(`{"n":1}`)}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if f.polls != 2 {
			t.Errorf("polls: got %d, want the first and the one that is held", f.polls)
		}
		if diff := cmp.Diff([]string{"session-1"}, f.goodbyes); diff != "" {
			t.Errorf("goodbyes (-want +got):\n%s", diff)
		}
		wantReg := []client.RegisterRequest{{WorkerID: "w-1", Runtime: "go", SDK: sdkName, Contracts: []client.Contract{{TaskName: "echo", ContractVersion: "1.0.0"}}}}
		if diff := cmp.Diff(wantReg, f.registered); diff != "" {
			t.Errorf("registration (-want +got):\n%s", diff)
		}
	})
}

func TestWorker_RunsAtMostConcurrencyTasksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		for i := range 20 {
			f.add(task(fmt.Sprint(i)))
		}
		var now, most atomic.Int32
		stop := start(t, f, Options{Concurrency: 3}, func(context.Context, *Task) (any, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			now.Add(-1)
			return nil, nil
		})
		results(t, f, 20)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if most.Load() != 3 {
			t.Errorf("at once: got %d, want 3", most.Load())
		}
	})
}

func TestWorker_ErrorsOnTheWire(t *testing.T) {
	soon := 5 * time.Second
	cases := []struct {
		name string
		err  error
		want client.Result
	}{
		{"plain", errors.New("disk full"), client.Result{Error: &client.TaskError{Code: CodeHandlerError, Message: "disk full", Retryable: true}}},
		{"typed", fmt.Errorf("charge: %w", Fail("CARD_DECLINED", "declined", map[string]int{"n": 1})),
			client.Result{Error: &client.TaskError{Code: "CARD_DECLINED", Message: "declined", Retryable: true, Details: json.RawMessage(`{"n":1}`)}}},
		{"not retryable", NonRetryable(errors.New("bad input")), client.Result{Error: &client.TaskError{Code: CodeHandlerError, Message: "bad input"}}},
		{"retryable again", Retryable(NonRetryable(Fail("A", "m", nil))), client.Result{Error: &client.TaskError{Code: "A", Message: "m", Retryable: true}}},
		{"retry after", RetryAfter(Fail("BUSY", "later", nil), soon), client.Result{Error: &client.TaskError{Code: "BUSY", Message: "later", Retryable: true}, RetryAfter: &soon}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.add(task("a"))
				stop := start(t, f, Options{}, func(context.Context, *Task) (any, error) { return nil, tc.err })
				got := results(t, f, 1)
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				tc.want.Token = "a"
				if diff := cmp.Diff([]client.Result{tc.want}, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestWorker_PanicIsAFailureWithoutAStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.add(task("a"))
		stop := start(t, f, Options{}, func(context.Context, *Task) (any, error) { panic("boom") })
		got := results(t, f, 1)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		want := []client.Result{{Token: "a", Error: &client.TaskError{Code: CodePanic, Message: "the handler panicked: boom", Retryable: true}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestWorker_OutputThatIsNoJSONIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.add(task("a"), task("b"))
		stop := start(t, f, Options{Concurrency: 1}, func(_ context.Context, t *Task) (any, error) {
			if t.Token == "a" {
				return json.RawMessage(`{"half":`), nil
			}
			return make(chan int), nil
		})
		for _, r := range results(t, f, 2) {
			if r.Error == nil || r.Error.Code != CodeOutputInvalid || r.Error.Retryable {
				t.Errorf("%s: got %+v", r.Token, r.Error)
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWorker_RefusedOutputIsReportedAsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.onReport = func(r client.Result) (client.Reported, error) {
			if r.Error == nil {
				return client.Reported{}, &client.Error{Code: "PAYLOAD_TOO_LARGE", Status: 413, Message: "at most 1 MiB"}
			}
			return client.Reported{Accepted: true}, nil
		}
		f.add(task("a"))
		stop := start(t, f, Options{}, echo)
		got := results(t, f, 1)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		want := []client.Result{{Token: "a", Error: &client.TaskError{Code: CodeTooLarge, Message: "at most 1 MiB"}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestWorker_HeartbeatsListWhatIsHeldAndCancelWhatTheyAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.add(task("a"), task("b"))
		stop := start(t, f, Options{Concurrency: 2}, func(ctx context.Context, t *Task) (any, error) {
			if t.Token == "b" {
				time.Sleep(25 * time.Second)
				return nil, nil
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		time.Sleep(11 * time.Second)
		f.update(func() { f.cancel = []string{"a", "not-ours"} })
		got := results(t, f, 1)
		want := []client.Result{{Token: "a", Error: &client.TaskError{Code: CodeCancelled, Message: ErrCancelled.Error()}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		results(t, f, 2)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]string{{"a", "b"}, {"a", "b"}}, f.beats); diff != "" {
			t.Errorf("heartbeats (-want +got):\n%s", diff)
		}
	})
}

func TestWorker_ProgressMayCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.add(task("a"))
		stop := start(t, f, Options{}, func(ctx context.Context, t *Task) (any, error) {
			if err := t.Progress(ctx, map[string]int{"percent": 10}); err != nil {
				return nil, err
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if got := results(t, f, 1); got[0].Error.Code != CodeCancelled {
			t.Errorf("got %+v", got[0].Error)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWorker_AttemptThatRanOutOfTimeIsLeftToTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		late := task("late")
		late.TimeoutMS = 1000
		late.DeadlineMS = 1 // a clock far off: the time-out counts
		f.add(late)
		ended := make(chan error, 1)
		stop := start(t, f, Options{Concurrency: 1}, func(ctx context.Context, t *Task) (any, error) {
			if t.Token == "late" {
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return nil, ctx.Err()
			}
			return nil, nil
		})
		began := time.Now()
		if cause := <-ended; !errors.Is(cause, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("ended with %v after %v", cause, time.Since(began))
		}
		f.add(task("next"))
		if got := results(t, f, 1); got[0].Token != "next" {
			t.Errorf("reported: %+v", got)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWorker_RegistersAgainWhenItsSessionIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.add(task("a"))
		stop := start(t, f, Options{Concurrency: 1}, func(context.Context, *Task) (any, error) {
			time.Sleep(15 * time.Second) // past one heartbeat
			return nil, nil
		})
		time.Sleep(time.Second)
		f.update(func() { f.known = false })
		results(t, f, 1)
		f.add(task("b"))
		results(t, f, 2)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if len(f.registered) != 2 {
			t.Errorf("registrations: got %d, want 2", len(f.registered))
		}
		if diff := cmp.Diff([]string{"session-2"}, f.goodbyes); diff != "" {
			t.Errorf("goodbyes (-want +got):\n%s", diff)
		}
	})
}

// A heartbeat registers again and gets no answer, a poll waits for it: that keeps
// nobody from stopping.
func TestWorker_StopsWhileItsRegistrationHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.add(task("a"))
		stop := start(t, f, Options{Concurrency: 2, DrainTimeout: time.Second}, func(ctx context.Context, _ *Task) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		time.Sleep(time.Second)
		f.update(func() {
			f.known = false
			f.onRegister = func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}
		})
		time.Sleep(2 * pollWait)
		began := time.Now()
		if err := stop(); err != nil || time.Since(began) > time.Second+stopGrace {
			t.Errorf("it stopped after %v, %v", time.Since(began), err)
		}
	})
}

func TestWorker_ObeysNextPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.holdPolls, f.nextPollMS = false, 5000
		stop := start(t, f, Options{}, echo)
		time.Sleep(21 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if f.polls != 5 {
			t.Errorf("polls in 21 s at every 5 s: got %d, want 5", f.polls)
		}
	})
}

// While one poll brings its tasks another is open; all of them together ask for
// no more than there are slots.
func TestWorker_KeepsSeveralPollsOpenWhereTheyAreHeld(t *testing.T) {
	for _, c := range []struct{ concurrency, polls, asked int }{{1, 1, 1}, {2, 2, 2}, {16, heldPolls, 16}, {1000, heldPolls, heldPolls * maxTasks}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.maxWaitMS = 25_000
			stop := start(t, f, Options{Concurrency: c.concurrency}, echo)
			synctest.Wait()
			if f.polls != c.polls || f.asked != c.asked {
				t.Errorf("%d slots: %d polls ask for %d tasks, want %d for %d", c.concurrency, f.polls, f.asked, c.polls, c.asked)
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestWorker_DoesNotCircleWhereAServerDoesNotHoldPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.holdPolls = false
		stop := start(t, f, Options{}, echo)
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if f.polls > 21 {
			t.Errorf("polls in 1 s: got %d, want at most 21", f.polls)
		}
	})
}

func TestWorker_DrainLetsTasksEndAndTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.add(task("a"))
		stop := start(t, f, Options{Concurrency: 1}, func(context.Context, *Task) (any, error) {
			time.Sleep(10 * time.Second)
			return nil, nil
		})
		synctest.Wait()
		f.add(task("b"))
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if len(f.results) != 1 || f.results[0].Token != "a" || len(f.ready) != 1 {
			t.Errorf("results %+v, still ready %d", f.results, len(f.ready))
		}
	})
}

func TestWorker_DrainTimeoutEndsHandlersAndLeavesTheirAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.add(task("a"))
		var cause error
		stop := start(t, f, Options{DrainTimeout: 2 * time.Second}, func(ctx context.Context, _ *Task) (any, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil, ctx.Err()
		})
		synctest.Wait()
		began := time.Now()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(cause, ErrStopping) || time.Since(began) != 2*time.Second {
			t.Errorf("cause %v after %v", cause, time.Since(began))
		}
		if len(f.results) != 0 || len(f.goodbyes) != 1 {
			t.Errorf("results %+v, goodbyes %v", f.results, f.goodbyes)
		}
	})
}

func TestWorker_RefusalEndsRun(t *testing.T) {
	forbidden := &client.Error{Code: "FORBIDDEN", Status: 403, Message: "this token may not"}
	t.Run("of a poll", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.onPoll = func() error { return forbidden }
			stop := start(t, f, Options{}, echo)
			time.Sleep(time.Minute)
			if err := stop(); !errors.Is(err, forbidden) {
				t.Errorf("got %v", err)
			}
			if f.polls != 1 {
				t.Errorf("polls: got %d, want 1", f.polls)
			}
		})
	})
	t.Run("of the registration", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.onRegister = func(context.Context) error { return forbidden }
			stop := start(t, f, Options{}, echo)
			synctest.Wait()
			if err := stop(); !errors.Is(err, forbidden) {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestWorker_ResultsThatWaitTravelTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.reportTime = time.Second
		for i := range 10 {
			f.add(task(fmt.Sprint(i)))
		}
		stop := start(t, f, Options{Concurrency: 10, Reports: 1}, echo)
		results(t, f, 10)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if f.batches != 1 {
			t.Errorf("batches: got %d, want one of the nine that waited for the first", f.batches)
		}
	})
}

// One of the results that travel together is not looked at, and takes an hour
// until it is: all other slots are free, and it is not lost.
func TestWorker_AResultThatIsNotLookedAtIsReportedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, others = 10, 9
		f := newFake()
		f.reportTime, f.undecided = time.Second, "5"
		f.onReport = func(r client.Result) (client.Reported, error) {
			if r.Token == f.undecided {
				time.Sleep(time.Hour)
			}
			return client.Reported{Accepted: true}, nil
		}
		f.add(tenApart()...)
		var together sync.WaitGroup
		together.Add(others)
		stop := start(t, f, Options{Concurrency: slots, Reports: 2}, func(_ context.Context, t *Task) (any, error) {
			if strings.HasPrefix(t.Token, "more") {
				together.Done()
				together.Wait() // each has a slot
			}
			return nil, nil
		})
		results(t, f, others)
		began := time.Now()
		for i := range others {
			f.add(task(fmt.Sprint("more", i)))
		}
		results(t, f, 2*others)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the other slots were free after %v", took)
		}
		if all := results(t, f, 2*others+1); all[2*others].Token != f.undecided {
			t.Errorf("the last result is of %s, want %s", all[2*others].Token, f.undecided)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWorker_ResultsOfOneExecutionTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.reportTime = time.Second
		for i := range 9 {
			f.add(task(fmt.Sprint(i)))
		}
		other := task("other")
		other.ExecutionID = "y"
		f.add(other)
		began := time.Now()
		stop := start(t, f, Options{Concurrency: 10}, echo)
		first := results(t, f, 2)
		if took := time.Since(began); took != time.Second {
			t.Errorf("the first results of both executions: after %v, want 1s", took)
		}
		if !slices.ContainsFunc(first, func(r client.Result) bool { return r.Token == "other" }) {
			t.Errorf("the other execution's result waited for those of the first: %v", first)
		}
		results(t, f, 10)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("all results: after %v, want 2s", took)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if f.batches != 1 {
			t.Errorf("batches: got %d, want one of the eight that waited for the first", f.batches)
		}
	})
}

// tenApart are ten tasks of ten executions.
func tenApart() (tasks []*client.Task) {
	for i := range 10 {
		one := task(fmt.Sprint(i))
		one.ExecutionID = fmt.Sprint("x", i)
		tasks = append(tasks, one)
	}
	return tasks
}

// Ten results of ten executions: two calls at once while they are quick, and
// more of them once those take long.
func TestWorker_ReportsThatAreSlowHoldNobodyUp(t *testing.T) {
	for _, c := range []struct {
		reportTime, all time.Duration
		batches         int
	}{
		{reportTime: 8 * time.Millisecond, all: 16 * time.Millisecond, batches: 1},
		{reportTime: time.Second, all: slowReport + time.Second, batches: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.reportTime = c.reportTime
			f.add(tenApart()...)
			began := time.Now()
			stop := start(t, f, Options{Concurrency: 10}, echo)
			results(t, f, 10)
			if took := time.Since(began); took != c.all {
				t.Errorf("calls of %v: all results after %v, want %v", c.reportTime, took, c.all)
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if f.batches != c.batches {
				t.Errorf("calls of %v: %d batches, want %d beside the two results that went first", c.reportTime, f.batches, c.batches)
			}
		})
	}
}

// Once a call is known to last long even while nothing else runs, ten results of
// ten executions go at once, where a call is not paid for: to a server that stands.
func TestWorker_WhereCallsWaitMoreOfThemRunAtOnce(t *testing.T) {
	for _, c := range []struct {
		maxWaitMS int64
		all       time.Duration
		batches   int
	}{
		{maxWaitMS: 20_000, all: 8 * time.Millisecond, batches: 0},
		{maxWaitMS: 0, all: 16 * time.Millisecond, batches: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.reportTime, f.maxWaitMS, f.noNext = 8*time.Millisecond, c.maxWaitMS, true
			f.add(task("first"))
			stop := start(t, f, Options{Concurrency: 10}, echo)
			results(t, f, 1)
			synctest.Wait()
			began := time.Now()
			f.add(tenApart()...)
			results(t, f, 11)
			if took := time.Since(began); took < c.all || took > c.all+gatherTime {
				t.Errorf("a server that holds polls for %d ms: all results after %v, want %v", c.maxWaitMS, took, c.all)
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if f.batches != c.batches {
				t.Errorf("a server that holds polls for %d ms: %d batches, want %d", c.maxWaitMS, f.batches, c.batches)
			}
		})
	}
}

func TestAway_SaysOnceInAWhileThatCallsAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		a := &away{log: slog.New(slog.NewTextHandler(&log, nil))}
		for range 61 {
			a.tell(errors.New("connection refused"), time.Second)
			time.Sleep(time.Second)
		}
		if lines := strings.Count(log.String(), "connection refused"); lines != 3 {
			t.Errorf("a minute of failures has %d lines, want 3:\n%s", lines, log.String())
		}
	})
}

func TestRun_RefusesMistakesOfSetUp(t *testing.T) {
	w, err := newWorker(newFake(), newFake(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); err == nil {
		t.Error("no handlers: no error")
	}
	w.Handle("a", "1.0.0", echo)
	w.Handle("a", "1.0.0", echo)
	w.Handle("b", "", echo)
	if err := w.Run(t.Context()); err == nil {
		t.Error("twice the same task, and one without a version: no error")
	}
	for _, n := range []int{-1, maxHeld + 1} {
		if _, err := newWorker(newFake(), newFake(), Options{Concurrency: n}); err == nil {
			t.Errorf("concurrency %d: no error", n)
		}
	}
}
