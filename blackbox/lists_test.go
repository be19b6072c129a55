package blackbox_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perigee/sdk/go/client"
)

const forEach = `
name: for-each
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps:
  - { id: each, for: "input.?list.orValue(input.other)", task: a.step, with: { item: "${item}", index: "${index}" } }
  - { id: after, compute: { n: "${size(steps.each.output)}" } }
output: { each: "${steps.each.output}", after: "${steps.after.output.n}" }
`

const forPlain = `
name: for-plain
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps:
  - { id: each, for: input.list, task: a.step }
`

func TestFor_OverAnEmptyListGoesOn(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(forEach)
		s := e.end(e.start("for-each", "", `{"list":[]}`), client.Completed)
		if want := `{"after":0,"each":[]}`; string(s.Output) != want {
			e.Errorf("output %s, want %s", s.Output, want)
		}
		want := []string{"WorkflowCreated", "WorkflowStarted", "StepFanOut(each)", "StepSucceeded(each)", "StepSucceeded(after)", "WorkflowCompleted"}
		if got := e.types("for-each"); !slices.Equal(got, want) {
			e.Errorf("history %v, want %v", got, want)
		}
	})
}

func TestFor_OverWhatIsNoListFailsItsStepClearly(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(forPlain)
		for i, input := range []string{`{"list":null}`, `{"list":3}`, `{}`, `{"list":{"a":1}}`, `{"list":"abc"}`, `{"list":true}`} {
			s := e.end(e.start("for-plain", fmt.Sprintf("f-%d", i), input), client.Failed)
			if s.Error.Code != "EXPRESSION_ERROR" && s.Units["each"].Error.Code != "EXPRESSION_ERROR" {
				e.Errorf("%s: the error is %+v", input, s.Error)
			}
			if !strings.Contains(s.Error.Message, "each") || !strings.Contains(s.Error.Message, "list") {
				e.Errorf("%s: the message does not say what is wrong where: %s", input, s.Error.Message)
			}
		}
	})
}

// TestScale_JoinIsNeverEarly: elements are finished in any order, some late.
func TestScale_JoinIsNeverEarly(t *testing.T) {
	onDatabases(t, func(t *testing.T, db testDatabase) {
		n := size(600, 10_000)
		e := newEnv(t, targetFor(t, settings{}), db, settings{})
		e.deploy(forEach)
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprint(i)
		}
		id := e.start("for-each", "", `{"list":[`+strings.Join(items, ",")+`]}`)
		e.workAll(4, "a.step", func(task *client.Task) client.Result {
			var in struct{ Item, Index int }
			if err := json.Unmarshal(task.Input, &in); err != nil || in.Item != in.Index {
				e.Errorf("the input of %s is %s", task.StepID, task.Input)
			}
			if in.Index%97 == 0 {
				time.Sleep(20 * time.Millisecond) // a slow worker is what the test is about
			}
			return client.Result{Token: task.Token, Output: json.RawMessage(fmt.Sprint(in.Index))}
		}, func() bool { return e.state(id).Status.Terminal() })
		s := e.end(id, client.Completed)
		if want := fmt.Sprintf(`{"after":%d,"each":[%s]}`, n, strings.Join(items, ",")); string(s.Output) != want {
			e.Errorf("the output is not the elements in their order: %.200s", s.Output)
		}
		done := 0
		for _, ev := range e.history(id) {
			if ev.Type != "StepSucceeded" {
				continue
			}
			if ev.Step == "each" && done != n {
				e.Errorf("joined after %d of %d elements", done, n)
			}
			done++
		}
	})
}

// workAll runs workers that take tasks by batches until there is no more to do.
func (e *env) workAll(workers int, task string, handle func(*client.Task) client.Result, done func() bool) {
	e.Helper()
	var all sync.WaitGroup
	for w := range workers {
		session := e.register(fmt.Sprintf("w-%d", w), task)
		all.Go(func() {
			for idle := 0; ; {
				p, err := e.api.Poll(e.Context(), client.PollRequest{SessionID: session, Wait: 50 * time.Millisecond, MaxTasks: 32})
				if err != nil {
					e.Errorf("poll: %v", err)
					return
				}
				if len(p.Tasks) == 0 {
					if idle++; done() || idle > 200 {
						return
					}
					continue
				}
				idle = 0
				var results []client.Result
				for _, t := range p.Tasks {
					results = append(results, handle(t))
				}
				answer, err := e.api.Results(e.Context(), results, "", 0)
				if err != nil {
					e.Errorf("results: %v", err)
					return
				}
				for _, ack := range answer.Acks {
					if !ack.Accepted {
						e.Errorf("a result was not accepted: %s", ack.Reason)
					}
				}
			}
		})
	}
	all.Wait()
}

func TestFor_MaxParallelBoundsWhatIsHandedOut(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(`
name: narrow
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps: [ { id: each, for: input.list, max_parallel: "${1+1}", task: a.step } ]
output: "${steps.each.output}"
`)
		id := e.start("narrow", "", `{"list":[1,2,3]}`)
		session := e.register("w", "a.step")
		first, second := e.poll(session), e.poll(session)
		e.pollNone(session)
		e.done(second, `"b"`)
		third := e.poll(session)
		e.done(third, `"c"`)
		e.done(first, `"a"`)
		if s := e.end(id, client.Completed); string(s.Output) != `["a","b","c"]` {
			e.Errorf("output %s", s.Output)
		}
	})
}
