package blackbox_test

import (
	"fmt"
	"strings"
	"testing"

	"perigee/sdk/go/client"
)

// sized is a string that is n bytes long as JSON.
func sized(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }

const growing = `
name: growing
version: "1.0.0"
signals: { go: {} }
tasks: { a.step: { version: "1.0.0" } }
steps:
  - { id: work, task: a.step, retry: { max_attempts: 3, initial_interval: 1ms } }
  - { id: wait, await: go }
  - { id: grown, compute: "steps.wait.output + 'y'" }
`

func TestTooLarge_JustOverTheLimitIsRefusedOnce(t *testing.T) {
	const limit = 5000
	everyDatabase(t, settings{flags: map[string]string{"max-payload-bytes": fmt.Sprint(limit)}}, func(e *env) {
		e.deploy(growing)
		session := e.register("w", "a.step")
		start := func(id string, n int) reply {
			return e.post("/v1/executions", `{"workflow":"growing","execution_id":"`+id+`","input":`+sized(n)+`}`)
		}
		e.refused(start("large", limit+1), 413, "PAYLOAD_TOO_LARGE", fmt.Sprint(limit))
		if r := start("g", limit); r.status != 201 {
			e.Errorf("an input of the limit's size: %s", r)
		}
		signal := func(n int) reply { return e.post("/v1/executions/g/signals/go", `{"payload":`+sized(n)+`}`) }
		e.refused(signal(limit+1), 413, "PAYLOAD_TOO_LARGE", fmt.Sprint(limit))

		task := e.poll(session)
		e.refused(e.post("/v1/tasks/progress", `{"token":`+quote(task.Token)+`,"details":`+sized(limit+1)+`}`), 413, "PAYLOAD_TOO_LARGE", fmt.Sprint(limit))
		e.done(task, sized(limit))
		if r := signal(limit); r.status != 202 {
			e.Errorf("a signal of the limit's size: %s", r)
		}
		// The computed value is one byte over it.
		s := e.end("g", client.Failed)
		if s.Error.Code != "PAYLOAD_TOO_LARGE" || !strings.Contains(s.Error.Message, fmt.Sprint(limit)) || !strings.Contains(s.Error.Message, "grown") {
			e.Errorf("the error is %+v", s.Error)
		}

		start("h", 10)
		task = e.poll(session)
		for range 3 { // a worker that repeats its report gets the same answer
			e.refused(e.post("/v1/tasks/complete", `{"token":`+quote(task.Token)+`,"output":`+sized(limit+1)+`}`), 413, "PAYLOAD_TOO_LARGE", fmt.Sprint(limit))
		}
		s = e.end("h", client.Failed)
		if s.Error.Code != "PAYLOAD_TOO_LARGE" || s.Units["work"].Attempt != 1 {
			e.Errorf("an output that is too large: %+v at attempt %d", s.Error, s.Units["work"].Attempt)
		}
		e.pollNone(session)

		// Far over the limit, so that nothing reads all of it.
		start("i", 10)
		task = e.poll(session)
		e.refused(e.post("/v1/tasks/complete", `{"token":`+quote(task.Token)+`,"output":`+sized(5<<20)+`}`), 413, "PAYLOAD_TOO_LARGE")
		if s = e.end("i", client.Failed); s.Error.Code != "PAYLOAD_TOO_LARGE" {
			e.Errorf("an output of 5 MiB: %+v", s.Error)
		}
	})
}

func TestTooLarge_InABatchFailsItsOwnAttemptOnly(t *testing.T) {
	everyDatabase(t, settings{flags: map[string]string{"max-payload-bytes": "1000"}}, func(e *env) {
		e.deploy(oneStep)
		session := e.register("w", "a.step")
		e.start("one", "small", "")
		small := e.poll(session)
		e.start("one", "large", "")
		large := e.poll(session)
		r := e.post("/v1/tasks/results", fmt.Sprintf(`{"results":[{"token":%q,"output":%s},{"token":%q,"output":{"ok":true}}]}`, large.Token, sized(1001), small.Token))
		if r.status != 200 {
			e.Errorf("got %s", r)
		}
		e.end("small", client.Completed)
		if s := e.end("large", client.Failed); s.Error.Code != "PAYLOAD_TOO_LARGE" {
			e.Errorf("the error is %+v", s.Error)
		}
	})
}

func TestLimit_OfFanOutFailsTheStep(t *testing.T) {
	everyDatabase(t, settings{flags: map[string]string{"max-fan-out": "3"}}, func(e *env) {
		e.deploy(forPlain)
		s := e.end(e.start("for-plain", "", `{"list":[1,2,3,4]}`), client.Failed)
		if s.Error.Code != "LIMIT_EXCEEDED" || !strings.Contains(s.Error.Message, "3") {
			e.Errorf("the error is %+v", s.Error)
		}
	})
}

func TestLimit_OfActiveExecutionsIsA429UntilOneEnds(t *testing.T) {
	everyDatabase(t, settings{flags: map[string]string{"max-active-executions": "2"}}, func(e *env) {
		e.deploy(oneStep)
		e.start("one", "a", "")
		e.start("one", "b", "")
		r := e.post("/v1/executions", `{"workflow":"one","execution_id":"c"}`)
		e.refused(r, 429, "RESOURCE_EXHAUSTED", "2")
		if r.header.Get("Retry-After") == "" {
			e.Errorf("no Retry-After")
		}
		if r := e.post("/v1/executions", `{"workflow":"one","execution_id":"b"}`); r.status != 200 {
			e.Errorf("the repetition of a start that was taken: %s", r)
		}
		e.done(e.poll(e.register("w", "a.step")), `{}`)
		e.end("a", client.Completed)
		e.start("one", "c", "")
	})
}
