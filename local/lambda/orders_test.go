package lambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
	"perigee/local/lambda"
	"perigee/sdk/go/client"
	"perigee/sdk/go/worker"
	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
)

// effects is the world that workers change: once for each idempotency key.
type effects struct {
	mu   sync.Mutex
	done map[string]bool
}

func (e *effects) once(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done[key] = true
}

// TestScale_OrdersThroughFailingFunctions: 8 worker instances and 3 ticks at
// once on one database behind a pooler; of ten calls one is throttled, cut off,
// stopped for a while or left without an answer, and of five one meets a new
// process. Nothing is lost or done twice.
func TestScale_OrdersThroughFailingFunctions(t *testing.T) {
	orders := 60
	if os.Getenv("PERIGEE_SCALE") == "full" {
		orders = 500
	}
	direct := pgtest.Migrated(t)
	environment := []string{"PERIGEE_DATABASE=" + pgtest.Pooled(t, direct), "PERIGEE_DATABASE_MODE=pooled"}
	url, _ := serve(t, lambda.Options{Environment: environment, Concurrency: 8, Unrest: lambda.NewUnrest(0.2, 0.1, 1)})
	moreTicks(t, environment, 2)

	world := &effects{done: map[string]bool{}}
	work(t, url, world, "go", "inventory.reserve", "inventory.release", "shipping.label", "shipping.void", "shipping.ship")
	work(t, url, world, "python", "payment.charge", "payment.refund", "ops.alert")

	api := newClient(t, url)
	source, err := os.ReadFile(filepath.Join("..", "..", "examples", "order", "order.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.RegisterDefinition(t.Context(), source, client.YAML); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	ids := make(chan string)
	for range 8 {
		all.Go(func() {
			for id := range ids {
				order(t, api, id)
			}
		})
	}
	want := map[string]bool{}
	for i := range orders {
		id := fmt.Sprintf("order-%d", i)
		for _, unit := range []string{"reserve[0]", "reserve[1]", "charge", "label", "ship[0]", "ship[1]"} {
			want[id+"/"+unit] = true
		}
		ids <- id
	}
	close(ids)
	all.Wait()
	if diff := cmp.Diff(want, world.done); diff != "" {
		t.Errorf("what was done (-want +got):\n%s", diff)
	}
	noFindings(t, direct)
}

// order starts an execution, waits for its end and looks at its history.
func order(t *testing.T, api *client.Client, id string) {
	input := fmt.Sprintf(`{"order_id":%q,"total":80,"card":"tok_visa","items":[{"sku":"teapot","quantity":1},{"sku":"cup","quantity":4}]}`, id)
	_, err := api.Start(t.Context(), client.StartRequest{Workflow: "order-fulfilment", ExecutionID: id, Input: json.RawMessage(input)})
	if err != nil {
		t.Errorf("start %s: %v", id, err)
		return
	}
	end, err := api.Wait(t.Context(), id)
	if err != nil || end.Status != client.Completed {
		t.Errorf("%s: %v, %+v", id, err, end)
		return
	}
	succeeded, seq := map[string]int{}, uint64(0)
	for e, err := range api.Events(t.Context(), id, false) {
		if err != nil {
			t.Errorf("history of %s: %v", id, err)
			return
		}
		if seq++; e.Seq != seq {
			t.Errorf("history of %s: event %d stands at place %d", id, e.Seq, seq)
		}
		if e.Type == "StepSucceeded" {
			succeeded[e.Step]++
		}
	}
	for _, step := range slices.Sorted(maps.Keys(succeeded)) {
		if succeeded[step] != 1 {
			t.Errorf("%s: step %s succeeded %d times", id, step, succeeded[step])
		}
	}
}

// work runs a worker until the test ends.
func work(t *testing.T, url string, world *effects, runtime string, tasks ...string) {
	t.Helper()
	w, err := worker.New(newClient(t, url), worker.Options{
		WorkerID: runtime, Runtime: runtime, Concurrency: 16, DrainTimeout: time.Second, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		w.Handle(task, "1.0.0", func(_ context.Context, k *worker.Task) (any, error) {
			world.once(k.IdempotencyKey)
			return map[string]string{"reservation": k.StepID, "label": k.StepID, "parcel": k.StepID, "charge": k.StepID}, nil
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("worker %s: %v", runtime, err)
		}
	})
}

// moreTicks calls tick functions without end beside those of the schedule; half
// of the calls do not end well.
func moreTicks(t *testing.T, environment []string, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &lambda.Function{
		Name: "tick", Bootstrap: filepath.Join(built(t), "tick", "bootstrap"), Environment: environment,
		Timeout: 5 * time.Second, Concurrency: n, MemoryMB: 256, Log: io.Discard, Unrest: lambda.NewUnrest(0.3, 0.5, 2),
	}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				f.Call(ctx, []byte("{}")) // that it fails is the point
			}
		})
	}
	t.Cleanup(func() { cancel(); all.Wait(); f.Close() })
}

func newClient(t *testing.T, url string) *client.Client {
	t.Helper()
	c, err := client.New(url, client.Options{RetryFor: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// noFindings asserts that every projection is what its history says.
func noFindings(t *testing.T, database string) {
	t.Helper()
	st, err := postgres.Open(t.Context(), postgres.Options{URL: database})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	e, err := engine.New(st, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Doctor(t.Context(), false, func(f engine.Finding) { t.Errorf("doctor: %s: %s", f.ExecutionID, f.What) }); err != nil {
		t.Fatal(err)
	}
}
