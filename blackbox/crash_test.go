package blackbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/sdk/go/client"
	"perigee/sdk/go/worker"
)

const dying = `
name: dying
version: "1.0.0"
signals: { go: {} }
tasks: { a.step: { version: "1.0.0" } }
steps:
  - { id: first, task: a.step, with: { n: "${input.n}" }, retry: { max_attempts: 3, initial_interval: 1ms } }
  - { id: second, task: a.step, with: { n: "${steps.first.output.n}" }, compensate: { task: a.step, with: { undo: "${output.n}" } } }
  - { id: wait, await: go }
  - { id: last, task: a.step }
`

// dies makes a call whose server dies before anybody hears the answer, and
// then the same call again. It gives both answers: the caller only has the
// second.
func (e *env) dies(method, path, contentType, body string) (unheard, heard reply) {
	e.Helper()
	unheard = e.send(method, path, contentType, body)
	e.crash()
	return unheard, e.send(method, path, contentType, body)
}

// TestCrash_BetweenCommitAndReplyTheCallAgainGetsTheSameAnswer kills the server
// after every kind of call that writes.
func TestCrash_BetweenCommitAndReplyTheCallAgainGetsTheSameAnswer(t *testing.T) {
	onDatabases(t, func(t *testing.T, db testDatabase) {
		e := newEnv(t, processes{}, db, settings{})
		same := func(path, body string) reply {
			e.Helper()
			unheard, heard := e.dies("POST", path, "application/json", body)
			if heard.status != unheard.status || heard.body != unheard.body {
				e.Errorf("%s: %s, and again: %s", path, unheard, heard)
			}
			if heard.status/100 != 2 {
				e.Fatalf("%s: %s", path, heard)
			}
			return heard
		}
		unheard, heard := e.dies("POST", "/v1/definitions", "application/yaml", dying)
		if unheard.status != 201 || heard.status != 200 || unheard.member("definition_hash") != heard.member("definition_hash") {
			e.Errorf("a definition: %s, and again: %s", unheard, heard)
		}
		start := `{"workflow":"dying","execution_id":"d","input":{"n":12345678901234567890}}`
		unheard, heard = e.dies("POST", "/v1/executions", "application/json", start)
		if unheard.status != 201 || heard.status != 200 || heard.member("execution_id") != "d" {
			e.Errorf("a start: %s, and again: %s", unheard, heard)
		}
		e.dies("POST", "/v1/workers/register", "application/json", `{"worker_id":"w","runtime":"go","contracts":[{"task_name":"a.step","contract_version":"1.0.0"}]}`)
		session := e.register("w", "a.step")
		taken := 0
		poll := func() *client.Task {
			e.Helper()
			taken++
			answer := same("/v1/workers/poll", fmt.Sprintf(`{"worker_session_id":%q,"poll_id":"p-%d","wait_ms":5000}`, session, taken))
			var p client.Polled
			if err := json.Unmarshal([]byte(answer.body), &p); err != nil || len(p.Tasks) != 1 {
				e.Fatalf("a poll: %s, %v", answer, err)
			}
			return p.Tasks[0]
		}
		first := poll()
		same("/v1/tasks/fail", fmt.Sprintf(`{"token":%q,"error":{"code":"NO","message":"no"}}`, first.Token))
		second := poll()
		if second.Attempt != 2 || string(second.Input) != string(first.Input) || second.IdempotencyKey != first.IdempotencyKey {
			e.Errorf("after %+v comes %+v", first, second)
		}
		// The answer brings the next task, and brings it again.
		answer := same("/v1/tasks/complete", fmt.Sprintf(`{"token":%q,"output":{"n":12345678901234567890},"next":{"worker_session_id":%q}}`, second.Token, session))
		var reported client.Reported
		if err := json.Unmarshal([]byte(answer.body), &reported); err != nil || reported.Next == nil || string(reported.Next.Input) != `{"n":12345678901234567890}` {
			e.Fatalf("a result with next: %s, %v", answer, err)
		}
		same("/v1/tasks/progress", fmt.Sprintf(`{"token":%q,"details":{"done":1}}`, reported.Next.Token))
		same("/v1/workers/heartbeat", fmt.Sprintf(`{"worker_session_id":%q,"tokens":[%q]}`, session, reported.Next.Token))
		same("/v1/tasks/results", fmt.Sprintf(`{"results":[{"token":%q,"output":{"n":2}}]}`, reported.Next.Token))
		same("/v1/executions/d/signals/go", `{"payload":{"a":1},"signal_id":"s"}`)
		last := poll()
		same("/v1/executions/d/cancel", `{"reason":"enough"}`)
		same("/v1/tasks/complete", fmt.Sprintf(`{"token":%q,"output":{}}`, last.Token))
		undo := poll()
		if undo.StepID != "compensate:second" || string(undo.Input) != `{"undo":2}` {
			e.Errorf("got %s with %s", undo.StepID, undo.Input)
		}
		same("/v1/tasks/complete", fmt.Sprintf(`{"token":%q}`, undo.Token))
		e.end("d", client.Cancelled)
		want := []string{
			"WorkflowCreated", "WorkflowStarted", "StepScheduled(first)", "StepDispatched(first)", "StepAttemptFailed(first)", "RetryScheduled(first)",
			"StepScheduled(first)", "StepDispatched(first)", "StepSucceeded(first)", "StepScheduled(second)", "StepDispatched(second)",
			"AttemptProgress(second)", "StepSucceeded(second)", "SignalAwaitStarted(wait)", "SignalReceived", "SignalDelivered(wait)", "StepScheduled(last)",
			"StepDispatched(last)", "CancelRequested", "StepSucceeded(last)", "CompensationStarted", "StepScheduled(compensate:second)",
			"StepDispatched(compensate:second)", "StepSucceeded(compensate:second)", "CompensationCompleted", "WorkflowCancelled",
		}
		// Progress that is told again is recorded again, at most once a second.
		if diff := cmp.Diff(want, slices.Compact(e.types("d"))); diff != "" {
			e.Errorf("the history (-want +got):\n%s", diff)
		}
		unheard, heard = e.dies("POST", "/v1/workers/unregister", "application/json", fmt.Sprintf(`{"worker_session_id":%q}`, session))
		if unheard.status != 200 || heard.code() != "UNKNOWN_SESSION" {
			e.Errorf("the end of a session: %s, and again: %s", unheard, heard)
		}
	})
}

// front is one address for a server that comes and goes: what cannot be
// forwarded ends as a connection that breaks.
type front struct {
	*httptest.Server
	mu sync.Mutex
	at *url.URL
}

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			f.mu.Lock()
			defer f.mu.Unlock()
			r.SetURL(f.at)
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	f.Server = httptest.NewServer(proxy)
	t.Cleanup(f.Close)
	return f
}

func (f *front) pointAt(t *testing.T, address string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = u
}

// effects counts what handlers did for real, by idempotency key: what a
// worker's own database would hold.
type effects struct {
	mu   sync.Mutex
	done map[string]string // key -> input
}

func (f *effects) record(t *worker.Task) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done == nil {
		f.done = map[string]string{}
	}
	if before, ok := f.done[t.IdempotencyKey]; ok && before != string(t.Input) {
		return fmt.Errorf("%s came with %s, and before with %s", t.IdempotencyKey, t.Input, before)
	}
	f.done[t.IdempotencyKey] = string(t.Input)
	return nil
}

// TestSoak_KilledAtAnyMomentNothingIsLostOrDoubled kills the server again and
// again while workers and callers go on as if nothing were.
func TestSoak_KilledAtAnyMomentNothingIsLostOrDoubled(t *testing.T) {
	onDatabases(t, func(t *testing.T, db testDatabase) {
		e := newEnv(t, processes{}, db, settings{flags: map[string]string{"session-timeout": "3s", "heartbeat-interval": "500ms"}})
		e.deploy(threeSteps)
		f := newFront(t)
		f.pointAt(t, e.server.URL())
		var did effects
		stop := e.workersAt(f.URL, 4, 4, func(ctx context.Context, t *worker.Task) (any, error) {
			if err := did.record(t); err != nil {
				e.Error(err)
			}
			return echo(ctx, t)
		}, func(error) {})

		var started sync.Map // id -> answered
		var count atomic.Int64
		calling, stopCalling := context.WithCancel(context.Background())
		defer stopCalling()
		var callers sync.WaitGroup
		forever := newClient(t, f.URL, client.Forever)
		for range 4 {
			callers.Go(func() {
				for calling.Err() == nil {
					id := fmt.Sprintf("e-%d", count.Add(1))
					_, err := forever.Start(context.Background(), client.StartRequest{
						Workflow: "three", ExecutionID: id, Input: json.RawMessage(fmt.Sprintf(`{"n":%q}`, id)),
					})
					if err != nil {
						e.Errorf("start %s: %v", id, err)
						return
					}
					started.Store(id, true)
					time.Sleep(rand.N(20 * time.Millisecond)) // some load, and not all there can be
				}
			})
		}
		kills := 0
		for begin := time.Now(); kills < 4 || time.Since(begin) < *soak; kills++ {
			time.Sleep(rand.N(400 * time.Millisecond)) // any moment will do
			e.server.kill()
			e.server.restart()
			f.pointAt(t, e.server.URL())
		}
		stopCalling()
		callers.Wait()
		e.connect()
		n := 0
		for key := range started.Range {
			id := key.(string)
			n++
			s, err := forever.Wait(e.ctx(), id)
			if err != nil || s.Status != client.Completed || string(s.Output) != fmt.Sprintf(`{"n":%q}`, id) {
				e.Fatalf("%s: %v, %+v", id, err, s)
			}
			e.eachStepOnce(id)
		}
		stop()
		if len(did.done) != 3*n {
			e.Errorf("%d executions of three steps had %d effects", n, len(did.done))
		}
		page, err := e.api.List(e.ctx(), client.ListRequest{Status: client.Running})
		if err != nil || len(page.Executions) != 0 {
			e.Errorf("still running: %+v, %v", page.Executions, err)
		}
		t.Logf("%d kills, %d executions", kills, n)
	})
}

// eachStepOnce asserts that a history of three steps resolves each once, in
// their order.
func (e *env) eachStepOnce(id string) {
	e.Helper()
	var resolved []string
	for _, w := range e.types(id) {
		if strings.HasPrefix(w, "StepSucceeded") || strings.HasPrefix(w, "Workflow") {
			resolved = append(resolved, w)
		}
	}
	want := []string{"WorkflowCreated", "WorkflowStarted", "StepSucceeded(one)", "StepSucceeded(two)", "StepSucceeded(three)", "WorkflowCompleted"}
	if !slices.Equal(resolved, want) {
		e.Errorf("%s: %v", id, resolved)
	}
}
