package blackbox_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"perigee/sdk/go/client"
)

// once runs a step whose every loss is its end, so that completion and rescue
// cannot both win.
const once = `
name: once
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps: [ { id: work, task: a.step, timeout: TIMEOUT, retry: none, max_redeliveries: 0 } ]
output: "${steps.work.output}"
`

// TestScale_RescueAgainstCompletion lets one server find that attempts are out
// of time, or their worker silent, at the very moment at which another server
// gets their results.
func TestScale_RescueAgainstCompletion(t *testing.T) {
	const sessionTimeout, beat = 30_000, 5_000 // defaults of the server
	for _, way := range []struct {
		name, timeout string
		approach      []int64 // moves of the clock, with a look after each but the last
	}{
		{"Deadline", "10s", []int64{10_000}},
		{"LostWorker", "1h", []int64{sessionTimeout, 2 * beat}},
	} {
		t.Run(way.name, func(t *testing.T) {
			everyDatabaseWithClock(t, func(e *env, c *clock) {
				e.deploy(replace(once, "TIMEOUT", way.timeout))
				other := &env{T: e.T, db: e.db, set: e.set, server: inProcess{}.start(e.T, e.db, e.set)}
				other.connect()
				n := size(250, 1000)
				const batch = 50
				for first := 0; first < n; first += batch {
					e.raceOnce(other, c, fmt.Sprintf("r-%d", first), batch, way.approach)
				}
			})
		})
	}
}

func (e *env) raceOnce(other *env, c *clock, prefix string, n int, approach []int64) {
	e.Helper()
	session := other.register(prefix, "a.step")
	for i := range n {
		e.start("once", fmt.Sprintf("%s-%d", prefix, i), "")
	}
	var tasks []*client.Task
	for len(tasks) < n {
		p, err := other.api.Poll(other.ctx(), client.PollRequest{SessionID: session, MaxTasks: 32})
		if err != nil {
			e.Fatal(err)
		}
		tasks = append(tasks, p.Tasks...)
	}
	for i, ms := range approach {
		c.advance(ms)
		if i < len(approach)-1 {
			e.tick()
		}
	}
	accepted := make([]bool, n)
	var all sync.WaitGroup
	all.Go(e.tick)
	all.Go(func() {
		// In another order than the tick's, they meet in the middle for sure.
		for _, i := range rand.Perm(n) {
			r, err := other.api.Complete(other.Context(), tasks[i].Token, json.RawMessage(`{"done":true}`), "")
			if err != nil {
				e.Errorf("complete %s: %v", tasks[i].ExecutionID, err)
			}
			accepted[i] = r.Accepted
		}
	})
	all.Wait()
	e.tick()
	for i, task := range tasks {
		s := e.state(task.ExecutionID)
		var succeeded, failed int
		for _, w := range e.types(task.ExecutionID) {
			switch w {
			case "StepSucceeded(work)":
				succeeded++
			case "StepFailed(work)":
				failed++
			}
		}
		switch {
		case succeeded+failed != 1:
			e.Errorf("%s: %d successes and %d failures", task.ExecutionID, succeeded, failed)
		case accepted[i] && s.Status != client.Completed:
			e.Errorf("%s: a result was accepted, and the execution is %s", task.ExecutionID, s.Status)
		case !accepted[i] && s.Status != client.Failed:
			e.Errorf("%s: a result was not accepted, and the execution is %s", task.ExecutionID, s.Status)
		}
	}
}

func TestStart_TheSameIDFiftyTimesAtOnceIsOneExecution(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(oneStep)
		e.deploy(replace(oneStep, "name: one", "name: two"))
		const n = 50
		answers := make([]reply, n)
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range n {
			all.Go(func() {
				<-begin
				// The same input, written in many ways.
				answers[i] = e.post("/v1/executions", fmt.Sprintf(`{"input":{"b":1.0,%*s"a":[]},"workflow":"one","execution_id":"same"}`, i, ""))
			})
		}
		close(begin)
		all.Wait()
		created := 0
		for _, r := range answers {
			var out client.Started
			if err := json.Unmarshal([]byte(r.body), &out); err != nil || out.ExecutionID != "same" || r.status/100 != 2 {
				e.Errorf("got %s", r)
			}
			if out.Created != (r.status == 201) {
				e.Errorf("created is %t with status %d", out.Created, r.status)
			}
			if out.Created {
				created++
			}
		}
		if created != 1 {
			e.Errorf("%d calls created the execution, want 1", created)
		}
		if got := e.count("same", "WorkflowCreated"); got != 1 {
			e.Errorf("it was created %d times", got)
		}
		e.refused(e.post("/v1/executions", `{"workflow":"one","execution_id":"same","input":{"b":2,"a":[]}}`), 409, "EXECUTION_EXISTS", "input")
		e.refused(e.post("/v1/executions", `{"workflow":"two","execution_id":"same","input":{"b":1,"a":[]}}`), 409, "EXECUTION_EXISTS", "workflow")
		if r := e.post("/v1/executions", `{"workflow":"one","version":"1.0.0","execution_id":"same","input":{"a":[],"b":1e0}}`); r.status != 200 {
			e.Errorf("the same start later: %s", r)
		}
	})
}

func TestZombie_LateFailureChangesNothingLateSuccessCounts(t *testing.T) {
	everyDatabaseWithClock(t, func(e *env, c *clock) {
		e.deploy(replace(once, "timeout: TIMEOUT, retry: none, max_redeliveries: 0", "timeout: 10s"))
		id := e.start("once", "", "")
		session := e.register("w", "a.step")
		first := e.poll(session)
		c.advance(10_000)
		e.tick()
		c.set(e.state(id).Units["work"].WakeAtMS)
		second := e.poll(session)
		if second.Attempt != 2 || second.Token == first.Token || second.IdempotencyKey != first.IdempotencyKey {
			e.Fatalf("after %+v comes %+v", first, second)
		}
		before := e.state(id)
		if r := e.fail(first, "LATE", false); r.Accepted || r.Reason != "stale attempt" {
			e.Errorf("a late failure: %+v", r)
		}
		if after := e.state(id); after.Units["work"].Attempt != 2 || *after.Units["work"].Status != *before.Units["work"].Status {
			e.Errorf("a late failure made %+v of %+v", after.Units["work"], before.Units["work"])
		}
		if cancel := e.heartbeat(session, second.Token); len(cancel) != 0 {
			e.Errorf("the running attempt is told to stop: %v", cancel)
		}
		if r := e.complete(first, `{"by":1}`); !r.Accepted {
			e.Errorf("a late success: %+v", r)
		}
		if s := e.end(id, client.Completed); string(s.Output) != `{"by":1}` {
			e.Errorf("output %s", s.Output)
		}
		if cancel := e.heartbeat(session, second.Token); len(cancel) != 1 || cancel[0] != second.Token {
			e.Errorf("the second attempt is not told to stop: %v", cancel)
		}
		if accepted, cancel, err := e.api.Progress(e.ctx(), second.Token, json.RawMessage(`1`)); err != nil || accepted || !cancel {
			e.Errorf("progress of the second attempt: accepted %t, cancel %t, %v", accepted, cancel, err)
		}
		if r := e.complete(second, `{"by":2}`); r.Accepted {
			e.Errorf("a second success was accepted")
		}
		if r := e.complete(first, `{"by":1}`); !r.Accepted {
			e.Errorf("the same success again: %+v", r)
		}
	})
}

// heartbeat gives the tokens of the listed ones that are to stop.
func (e *env) heartbeat(session string, tokens ...string) []string {
	e.Helper()
	cancel, err := e.api.Heartbeat(e.ctx(), session, tokens)
	if err != nil {
		e.Fatalf("heartbeat: %v", err)
	}
	return cancel
}
