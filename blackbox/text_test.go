package blackbox_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/sdk/go/client"
)

// relay moves what it gets through every place that a value can be in: input,
// a task's input and output, a computed object, a signal, an error's details.
const relay = `
name: relay
version: "1.0.0"
signals: { go: {} }
queries: { seen: "steps.computed.output" }
tasks: { a.step: { version: "1.0.0" } }
steps:
  - { id: moved, task: a.step, with: { v: "${input.v}" }, retry: { max_attempts: 2, initial_interval: 1ms } }
  - { id: computed, compute: { v: "${steps.moved.output.v}" } }
  - { id: awaited, await: go }
  - { id: again, task: a.step, with: { v: "${steps.awaited.output.v}" } }
output: { input: "${input.v}", moved: "${steps.moved.output.v}", computed: "${steps.computed.output.v}", again: "${steps.again.output.v}" }
`

// relayed sends a value through all places and gives what came out of each.
func (e *env) relayed(id, value string) map[string]json.RawMessage {
	e.Helper()
	seen := map[string]json.RawMessage{}
	object := `{"v":` + value + `}`
	member := func(from json.RawMessage) json.RawMessage {
		e.Helper()
		var o struct{ V json.RawMessage }
		if err := json.Unmarshal(from, &o); err != nil {
			e.Fatalf("%s: %v", from, err)
		}
		return o.V
	}
	e.start("relay", id, object)
	session := e.register("w-"+id, "a.step")
	task := e.pollOf(session, id)
	seen["task input"] = member(task.Input)
	if r := e.post("/v1/tasks/fail", fmt.Sprintf(`{"token":%q,"error":{"code":"AGAIN","message":"again","details":%s}}`, task.Token, object)); r.member("reason") != "" {
		e.Fatalf("fail: %s", r)
	}
	task = e.pollOf(session, id)
	seen["task input of the second attempt"] = member(task.Input)
	e.done(task, object)
	if _, err := e.api.Signal(e.ctx(), id, "go", json.RawMessage(object), "s"); err != nil {
		e.Fatalf("signal: %v", err)
	}
	task = e.pollOf(session, id)
	seen["task input from a signal"] = member(task.Input)
	e.done(task, object)
	s := e.end(id, client.Completed)
	var output map[string]json.RawMessage
	if err := json.Unmarshal(s.Output, &output); err != nil {
		e.Fatal(err)
	}
	for name, v := range output {
		seen["output "+name] = v
	}
	seen["state input"] = member(s.Input)
	seen["state last_error"] = member(s.Units["moved"].LastError.Details)
	query, err := e.api.Query(e.ctx(), id, "seen")
	if err != nil {
		e.Fatal(err)
	}
	seen["query"] = member(query)
	for _, ev := range e.history(id) {
		switch {
		case ev.Type == "WorkflowCreated":
			seen["history input"] = member(ev.Input)
		case ev.Type == "SignalReceived":
			seen["history payload"] = member(ev.Payload)
		case word(ev) == "StepSucceeded(moved)":
			seen["history output"] = member(ev.Output)
		case word(ev) == "StepAttemptFailed(moved)":
			seen["history details"] = member(ev.Error.Details)
		}
	}
	return seen
}

// pollOf is poll for a session whose only work is one execution's.
func (e *env) pollOf(session, id string) *client.Task {
	e.Helper()
	t := e.poll(session)
	if t.ExecutionID != id {
		e.Fatalf("got a task of %s, want one of %s", t.ExecutionID, id)
	}
	return t
}

func TestText_ComesOutOfEveryPlaceAsItWentIn(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(relay)
		for i, text := range []string{
			`"\u0000"`, `"a\u0000b"`, `"\\u0000"`, `"\\\u0000"`, `"\\\\u0000"`, `"\\ud800"`, `"\ud83d\ude00"`, `"😀"`,
			`"\u2028\u2029\u007f\u0001\u001f"`, `"</script>&<!--"`, `"'; DROP TABLE events; --"`, `"\/\b\f\n\r\t\""`, `"${1+1} $${x} {{y}}"`,
			`{"\u0000":"\u0000","\\u0000":1,"":2}`, `["\u0000",[["\u0000"]]]`,
		} {
			var want any
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				e.Fatal(err)
			}
			for place, got := range e.relayed(fmt.Sprintf("text-%d", i), text) {
				var value any
				if err := json.Unmarshal(got, &value); err != nil {
					e.Fatalf("%s: %s: %v", place, got, err)
				}
				if diff := cmp.Diff(want, value); diff != "" {
					e.Errorf("%s: %s came out as %s", place, text, got)
				}
			}
		}
	})
}

func TestText_WithALoneSurrogateIsRefusedWithItsPlace(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(relay)
		e.start("relay", "r", `{"v":1}`)
		session := e.register("w", "a.step")
		task := e.poll(session)
		for _, text := range []string{`"\ud800"`, `"\udc00x"`, `"\ud800\ud800"`, `"x\ud83d"`, `"\ud83d\\ude00"`, "\"\xff\"", "\"\xed\xa0\x80\""} {
			in := `{"v":[0,` + text + `]}`
			e.refused(e.post("/v1/executions", `{"workflow":"relay","input":`+in+`}`), 400, "INVALID_REQUEST", "/input/v/1")
			e.refused(e.post("/v1/executions/r/signals/go", `{"payload":`+in+`}`), 400, "INVALID_REQUEST", "/payload/v/1")
			e.refused(e.post("/v1/tasks/progress", `{"token":`+quote(task.Token)+`,"details":`+in+`}`), 400, "INVALID_REQUEST", "/details/v/1")
			e.refused(e.post("/v1/executions", `{"workflow":"relay","input":{`+text+`:1}}`), 400, "INVALID_REQUEST", "/input")
			e.refused(e.post("/v1/workers/register", `{"worker_id":`+text+`,"runtime":"go","contracts":[]}`), 400, "INVALID_REQUEST", "/worker_id")
		}
		// The worker is told, and its step is not stuck: the attempt has failed.
		e.refused(e.post("/v1/tasks/complete", `{"token":`+quote(task.Token)+`,"output":{"v":"\ud800"}}`), 400, "INVALID_REQUEST", "/output", "/v")
		s := e.end("r", client.Failed)
		if s.Error.Code != "OUTPUT_CONTRACT_VIOLATION" {
			e.Errorf("the execution's error is %+v", s.Error)
		}
	})
}

func TestNumbers_KeepTheirDigitsThroughEveryPlace(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(relay)
		for i, number := range []string{
			"616581622363398142", "9223372036854775807", "18446744073709551615", "12345678901234567890.5", "-0", "-0.0", "1e400", "1E+2", "0.10",
			"9007199254740993", "1e-400", "5e-324", "-9223372036854775809", "1" + strings.Repeat("0", 300), "0.1" + strings.Repeat("2", 100),
		} {
			for place, got := range e.relayed(fmt.Sprintf("n-%d", i), number) {
				if string(got) != number {
					e.Errorf("%s: %s came out as %s", place, number, got)
				}
			}
		}
	})
}

func TestNumbers_ThatCannotBeKeptAreRefusedWithTheirPlace(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(relay)
		for _, number := range []string{"1e401", "1e-401", "1e99999999999999999999", strings.Repeat("9", 1001), "0x10", "01", "+1", ".5", "1.", "NaN", "Infinity"} {
			e.refused(e.post("/v1/executions", `{"workflow":"relay","input":{"v":`+number+`}}`), 400, "INVALID_REQUEST", "/input")
		}
	})
}

const counting = `
name: counting
version: "1.0.0"
steps:
  - id: sum
    compute: { same: "${input.v}", sum: "${input.v + 1}" }
output: "${steps.sum.output}"
`

func TestNumbers_AreCountedExactlyOrTheStepSaysWhyNot(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(counting)
		for i, c := range []struct{ in, sum string }{
			{"616581622363398142", "616581622363398143"},
			{"9223372036854775806", "9223372036854775807"},
			{"9223372036854775807", ""},  // over int64
			{"18446744073709551615", ""}, // no int64
			{"1e400", ""},
			{"-0", "1"},
			{"1.5", "2.5"},
		} {
			id := e.start("counting", fmt.Sprintf("c-%d", i), `{"v":`+c.in+`}`)
			if c.sum == "" {
				s := e.end(id, client.Failed)
				if s.Error.Code != "EXPRESSION_ERROR" || !strings.Contains(s.Error.Message, "sum") {
					e.Errorf("%s + 1: %+v", c.in, s.Error)
				}
				continue
			}
			s := e.end(id, client.Completed)
			want := `{"same":` + c.in + `,"sum":` + c.sum + `}`
			if string(s.Output) != want {
				e.Errorf("%s + 1: got %s, want %s", c.in, s.Output, want)
			}
		}
	})
}
