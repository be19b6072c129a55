package blackbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perigee/sdk/go/client"
	"perigee/sdk/go/worker"
)

const threeSteps = `
name: three
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps:
  - { id: one, task: a.step, with: { n: "${input.n}" } }
  - { id: two, task: a.step, with: { n: "${steps.one.output.n}" } }
  - { id: three, task: a.step, with: { n: "${steps.two.output.n}" } }
output: "${steps.three.output}"
`

// workers run the library's worker until stop is called.
func (e *env) workers(n, concurrency int, handle worker.Handler, onRetry func(error)) (stop func()) {
	e.Helper()
	return e.workersAt(e.server.URL(), n, concurrency, handle, onRetry)
}

// workersAt is workers for a server that is reached elsewhere.
func (e *env) workersAt(address string, n, concurrency int, handle worker.Handler, onRetry func(error)) (stop func()) {
	e.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range n {
		c, err := client.New(address, client.Options{OnRetry: func(err error, _ time.Duration) { onRetry(err) }})
		if err != nil {
			e.Fatal(err)
		}
		w, err := worker.New(c, worker.Options{
			WorkerID: fmt.Sprintf("w-%d", i), Concurrency: concurrency, DrainTimeout: time.Second, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			e.Fatal(err)
		}
		w.Handle("a.step", "1.0.0", handle)
		all.Go(func() {
			if err := w.Run(ctx); err != nil {
				e.Errorf("worker: %v", err)
			}
			c.CloseIdleConnections()
		})
	}
	stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	e.Cleanup(stop)
	return stop
}

// echo gives back what it got.
func echo(_ context.Context, t *worker.Task) (any, error) { return json.RawMessage(t.Input), nil }

// TestScale_ManyWorkersAndExecutions: every call of 16 workers and 500
// executions succeeds the first time it is made.
func TestScale_ManyWorkersAndExecutions(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		n := size(150, 500)
		e.deploy(threeSteps)
		var busy atomic.Int64
		stop := e.workers(16, 4, echo, func(err error) {
			busy.Add(1)
			e.Errorf("a worker had to repeat a call: %v", err)
		})
		var all sync.WaitGroup
		next := atomic.Int64{}
		for range 8 {
			all.Go(func() {
				for i := next.Add(1); i <= int64(n); i = next.Add(1) {
					id := fmt.Sprintf("e-%d", i)
					s, err := e.api.Start(e.Context(), client.StartRequest{
						Workflow: "three", ExecutionID: id, Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)), Wait: 20 * time.Second,
					})
					if err == nil && s.Status == "" { // functions do not wait
						var end *client.State
						if end, err = e.api.Wait(e.Context(), id); err == nil {
							s.Status, s.Output = end.Status, end.Output
						}
					}
					if want := fmt.Sprintf(`{"n":%d}`, i); err != nil || s.Status != client.Completed || string(s.Output) != want {
						e.Errorf("%s: %+v, %v", id, s, err)
						return
					}
				}
			})
		}
		all.Wait()
		stop()
		for _, line := range e.server.log().lines("") {
			if strings.Contains(line, "database is locked") || strings.Contains(line, `"status":5`) {
				e.Errorf("the log says %s", line)
			}
		}
		for _, i := range []int{1, n / 2, n} {
			if got := len(e.history(fmt.Sprintf("e-%d", i))); got != 12 {
				e.Errorf("e-%d has %d events, want 12", i, got)
			}
		}
	})
}

// TestScale_MemoryStaysFlat runs the binary, whose memory nothing else shares.
func TestScale_MemoryStaysFlat(t *testing.T) {
	const most = 150 << 20
	n := size(400, 10_000)
	t.Parallel()
	db := newDatabase(t, "sqlite")
	e := newEnv(t, processes{}, db, settings{flags: map[string]string{"log-level": "warn"}})
	e.deploy(threeSteps)
	stop := e.workers(4, 16, echo, func(err error) { e.Errorf("a worker had to repeat a call: %v", err) })
	begin, finished := time.Now(), atomic.Int64{}
	var after [4]int64 // memory after each quarter
	for quarter := range after {
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for finished.Add(1) <= int64((quarter+1)*n/len(after)) {
					s, err := e.api.Start(context.Background(), client.StartRequest{Workflow: "three", Input: json.RawMessage(`{"n":1}`), Wait: 20 * time.Second})
					if err != nil || s.Status != client.Completed {
						e.Errorf("%+v, %v", s, err)
						return
					}
				}
			})
		}
		all.Wait()
		finished.Store(int64((quarter + 1) * n / len(after)))
		after[quarter] = residentBytes(e)
	}
	stop()
	e.Logf("%d executions in %v: %d MiB resident after each quarter: %v", n, time.Since(begin).Round(time.Millisecond), after[3]>>20,
		[]int64{after[0] >> 20, after[1] >> 20, after[2] >> 20, after[3] >> 20})
	if after[3] > most {
		e.Errorf("%d MiB are resident after %d executions, want at most %d", after[3]>>20, n, most>>20)
	}
	if grown := after[3] - after[1]; fullScale && grown > 20<<20 {
		e.Errorf("the second half made it grow by %d MiB", grown>>20)
	}
}

// residentBytes is what the server's process has in memory.
func residentBytes(e *env) int64 {
	e.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.server.(*process).cmd.Process.Pid))
	if err != nil {
		e.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	e.Fatal("the system does not tell how much memory a process has")
	return 0
}
