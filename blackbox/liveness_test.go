package blackbox_test

import (
	"fmt"
	"testing"
	"time"

	"perigee/sdk/go/client"
)

const oneStep = `
name: one
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps: [ { id: work, task: a.step } ]
output: "${steps.work.output}"
`

// shortSessions makes workers lost within a second.
var shortSessions = settings{flags: map[string]string{"session-timeout": "400ms", "heartbeat-interval": "100ms"}}

func TestLongTask_WithHeartbeatsRunsOnce(t *testing.T) {
	everyDatabase(t, shortSessions, func(e *env) {
		e.deploy(oneStep)
		id := e.start("one", "", "")
		session := e.register("w", "a.step")
		task := e.poll(session)
		beat := time.NewTicker(50 * time.Millisecond)
		defer beat.Stop()
		for end := time.Now().Add(10 * 400 * time.Millisecond); time.Now().Before(end); <-beat.C {
			if cancel := e.heartbeat(session, task.Token); len(cancel) != 0 {
				e.Fatalf("told to stop")
			}
		}
		e.done(task, `{}`)
		e.end(id, client.Completed)
		want := []string{"WorkflowCreated", "WorkflowStarted", "StepScheduled(work)", "StepDispatched(work)", "StepSucceeded(work)", "WorkflowCompleted"}
		if got := e.types(id); fmt.Sprint(got) != fmt.Sprint(want) {
			e.Errorf("history %v, want %v", got, want)
		}
	})
}

func TestLostWorker_IsReplacedWithTheSameAttempt(t *testing.T) {
	everyDatabase(t, shortSessions, func(e *env) {
		e.deploy(oneStep)
		id := e.start("one", "", `{"n":1}`)
		lost := e.poll(e.register("lost", "a.step"))
		task := e.poll(e.register("w", "a.step"))
		if task.Attempt != 1 || !task.Redelivery || task.IdempotencyKey != lost.IdempotencyKey || string(task.Input) != string(lost.Input) {
			e.Errorf("after %+v comes %+v", lost, task)
		}
		e.done(task, `{}`)
		e.end(id, client.Completed)
	})
}

func TestUnregister_RedeliversAtOnce(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(oneStep)
		id := e.start("one", "", "")
		leaving := e.register("leaving", "a.step")
		e.poll(leaving)
		if err := e.api.Unregister(e.ctx(), leaving); err != nil {
			e.Fatal(err)
		}
		if task := e.poll(e.register("w", "a.step")); !task.Redelivery {
			e.Errorf("got %+v, want a redelivery", task)
		} else {
			e.done(task, `{}`)
		}
		e.end(id, client.Completed)
	})
}

func TestLostReply_ThePollAgainGetsTheSameTaskAndAHeartbeatFindsItMissing(t *testing.T) {
	everyDatabaseWithClock(t, func(e *env, c *clock) {
		e.deploy(oneStep)
		id := e.start("one", "", "")
		session := e.register("w", "a.step")
		poll := client.PollRequest{SessionID: session, PollID: "p-1"}
		first, err := e.api.Poll(e.ctx(), poll)
		if err != nil || len(first.Tasks) != 1 {
			e.Fatalf("%+v, %v", first, err)
		}
		again, err := e.api.Poll(e.ctx(), poll)
		if err != nil || len(again.Tasks) != 1 || again.Tasks[0].Token != first.Tasks[0].Token {
			e.Fatalf("the same poll again got %+v, %v", again, err)
		}
		c.advance(9_999) // two heartbeat intervals are 10 s
		e.heartbeat(session, []string{}...)
		if _, err := e.api.Heartbeat(e.ctx(), session, []string{}); err != nil {
			e.Fatal(err)
		}
		e.pollNone(session)
		c.advance(2)
		if _, err := e.api.Heartbeat(e.ctx(), session, []string{}); err != nil {
			e.Fatal(err)
		}
		if task := e.poll(session); !task.Redelivery || task.Attempt != 1 {
			e.Errorf("got %+v, want the first attempt again", task)
		} else {
			e.done(task, `{}`)
		}
		e.end(id, client.Completed)
	})
}

func TestPoisonTask_EndsAsAFailedStepAndDelaysNoOther(t *testing.T) {
	s := settings{flags: map[string]string{"session-timeout": "200ms", "heartbeat-interval": "50ms", "max-redeliveries": "2"}}
	everyDatabase(t, s, func(e *env) {
		e.deploy(oneStep)
		e.deploy(`
name: poison
version: "1.0.0"
tasks: { a.poison: { version: "1.0.0" } }
steps: [ { id: work, task: a.poison, retry: { max_attempts: 2, initial_interval: 1ms } } ]
`)
		poisoned := e.start("poison", "", "")
		session := e.register("healthy", "a.step")
		victims, others := 0, 0
		for ctx := e.ctx(); ; {
			s := e.state(poisoned)
			if s.Status.Terminal() {
				break
			}
			// Every victim dies of the task: it never says a word again.
			p, err := e.api.Poll(ctx, client.PollRequest{SessionID: e.register(fmt.Sprintf("victim-%d", victims), "a.poison")})
			if err != nil {
				e.Fatal(err)
			}
			victims += len(p.Tasks)
			id := e.start("one", fmt.Sprintf("other-%d", others), "")
			others++
			before := time.Now()
			e.done(e.poll(session), `{}`)
			e.end(id, client.Completed)
			if d := time.Since(before); d > patience/3 {
				e.Errorf("another execution took %v", d)
			}
		}
		s := e.end(poisoned, client.Failed)
		if s.Error.Code != "WORKER_LOST" {
			e.Errorf("the error is %+v", s.Error)
		}
		// Two attempts, each handed out once and again twice.
		if victims != 6 {
			e.Errorf("it had %d victims, want 6", victims)
		}
	})
}
