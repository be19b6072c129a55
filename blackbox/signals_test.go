package blackbox_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"perigee/sdk/go/client"
)

const twoAwaits = `
name: two-awaits
version: "1.0.0"
signals: { go: {}, other: {} }
tasks: { a.step: { version: "1.0.0" } }
steps:
  - { id: work, task: a.step }
  - { id: first, await: go }
  - { id: second, await: go }
output: [ "${steps.first.output}", "${steps.second.output}" ]
`

func (e *env) signal(id, name, payload, signalID string) uint64 {
	e.Helper()
	seq, err := e.api.Signal(e.ctx(), id, name, json.RawMessage(payload), signalID)
	if err != nil {
		e.Fatalf("signal %s: %v", name, err)
	}
	return seq
}

func TestSignal_SentBeforeItsAwaitIsTakenOnceAndInOrder(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(twoAwaits)
		id := e.start("two-awaits", "", "")
		first := e.signal(id, "go", `1`, "a") // right after the start
		session := e.register("w", "a.step")
		task := e.poll(session)
		e.signal(id, "other", `0`, "")
		second := e.signal(id, "go", `2`, "b") // while an earlier step runs
		if again := e.signal(id, "go", `1`, "a"); again != first {
			e.Errorf("the same signal_id again got %d, not %d", again, first)
		}
		e.done(task, `{}`)
		if s := e.end(id, client.Completed); string(s.Output) != `[1,2]` {
			e.Errorf("output %s", s.Output)
		}
		var taken []uint64
		for _, ev := range e.history(id) {
			if ev.Type == "SignalDelivered" {
				taken = append(taken, ev.SignalSeq)
			}
		}
		if fmt.Sprint(taken) != fmt.Sprint([]uint64{first, second}) {
			e.Errorf("the signals %v were taken, want %d and %d", taken, first, second)
		}
		if again := e.signal(id, "go", `1`, "a"); again != first {
			e.Errorf("after the end the same signal_id got %d, not %d", again, first)
		}
	})
}

func TestSignal_ThatWakesAnAwaitIsTakenOnce(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(twoAwaits)
		id := e.start("two-awaits", "", "")
		e.done(e.poll(e.register("w", "a.step")), `{}`)
		e.until(id, "SignalAwaitStarted(first)")
		e.signal(id, "go", `1`, "")
		e.until(id, "SignalAwaitStarted(second)")
		if s := e.state(id); s.Status.Terminal() {
			e.Errorf("one signal served two awaits")
		}
		e.signal(id, "go", `2`, "")
		if s := e.end(id, client.Completed); string(s.Output) != `[1,2]` {
			e.Errorf("output %s", s.Output)
		}
	})
}

const lastStep = `
name: last-step
version: "1.0.0"
signals: { go: {} }
tasks: { a.step: { version: "1.0.0" } }
steps: [ { id: work, task: a.step } ]
`

const lastAwait = `
name: last-await
version: "1.0.0"
signals: { go: {} }
steps: [ { id: wait, await: go } ]
`

// many sends signals at once, together with another call, and asserts that
// each was either refused as too late or stands in the history, once, before
// its end.
func (e *env) many(id string, n int, also func()) (taken int) {
	e.Helper()
	answers := make([]error, n)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-begin
			_, answers[i] = e.api.Signal(e.ctx(), id, "go", json.RawMessage(fmt.Sprint(i)), fmt.Sprintf("s-%d", i))
		})
	}
	if also != nil {
		all.Go(func() { <-begin; also() })
	}
	close(begin)
	all.Wait()
	e.end(id, client.Completed)
	received := map[string]int{}
	events := e.history(id)
	for _, ev := range events {
		if ev.Type == "SignalReceived" {
			received[ev.SignalID]++
		}
	}
	if last := events[len(events)-1]; last.Type != "WorkflowCompleted" {
		e.Errorf("%s goes on after its end, with %s", id, last.Type)
	}
	for i, err := range answers {
		switch n := received[fmt.Sprintf("s-%d", i)]; {
		case err == nil && n == 1:
			taken++
		case client.CodeOf(err) == client.CodeExecutionFinished && n == 0:
		default:
			e.Errorf("signal %d was answered %v and stands in the history %d times", i, err, n)
		}
	}
	return taken
}

func TestSignal_AtTheVeryEndIsTakenOrRefused(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(lastStep)
		session := e.register("w", "a.step")
		for round := range 5 {
			id := e.start("last-step", fmt.Sprintf("step-%d", round), "")
			task := e.poll(session)
			e.many(id, 50, func() {
				if _, err := e.api.Complete(e.Context(), task.Token, nil, ""); err != nil {
					e.Errorf("complete: %v", err)
				}
			})
		}
		e.deploy(lastAwait)
		for round := range 5 {
			id := e.start("last-await", fmt.Sprintf("await-%d", round), "")
			if taken := e.many(id, 50, nil); taken == 0 {
				e.Errorf("%s ended without a signal", id)
			}
		}
	})
}

func TestSignal_TooLateForItsAwaitFailsTheStep(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(`
name: in-time
version: "1.0.0"
signals: { go: {} }
steps: [ { id: wait, await: go, timeout: 1ms } ]
`)
		s := e.end(e.start("in-time", "", ""), client.Failed)
		if s.Error.Code != "SIGNAL_TIMEOUT" || !strings.Contains(s.Error.Message, "go") {
			e.Errorf("the error is %+v", s.Error)
		}
		_, err := e.api.Signal(e.ctx(), "in-time", "go", nil, "")
		if client.CodeOf(err) != client.CodeExecutionFinished {
			e.Errorf("a signal after the end: %v", err)
		}
	})
}
