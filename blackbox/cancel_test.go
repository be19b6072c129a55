package blackbox_test

import (
	"slices"
	"strings"
	"testing"

	"perigee/sdk/go/client"
)

func TestCancel_TheNextHeartbeatSaysSo(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(oneStep)
		id := e.start("one", "", "")
		session := e.register("w", "a.step")
		task := e.poll(session)
		if cancel := e.heartbeat(session); len(cancel) != 0 {
			e.Errorf("before: told to stop %v", cancel)
		}
		if _, err := e.api.Cancel(e.ctx(), id, "enough"); err != nil {
			e.Fatal(err)
		}
		want := []string{task.Token}
		if cancel := e.heartbeat(session); !slices.Equal(cancel, want) {
			e.Errorf("a heartbeat without tokens says %v", cancel)
		}
		if cancel := e.heartbeat(session, task.Token); !slices.Equal(cancel, want) {
			e.Errorf("a heartbeat with the token says %v", cancel)
		}
		if _, cancel, err := e.api.Progress(e.ctx(), task.Token, nil); err != nil || !cancel {
			e.Errorf("progress says cancel %t, %v", cancel, err)
		}
		e.fail(task, "CANCELLED", false)
		s := e.end(id, client.Cancelled)
		if s.Compensation != "none" {
			e.Errorf("compensation %q", s.Compensation)
		}
		if _, err := e.api.Cancel(e.ctx(), id, "again"); err != nil {
			e.Errorf("a second cancel: %v", err)
		}
	})
}

const undoing = `
name: undoing
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" }, a.undo: { version: "1.0.0" }, a.alert: { version: "1.0.0" } }
steps:
  - { id: one, task: a.step, compensate: { task: a.undo, with: { what: "${output.n}" } } }
  - { id: two, task: a.step, compensate: { task: a.undo, with: { what: "${output.n}" } } }
  - { id: three, task: a.step, compensate: { task: a.undo, with: { what: "${output.n}" } } }
  - { id: four, task: a.step, retry: none }
on_failure: [ { id: alert, task: a.alert, with: { text: "${failure.message}" } } ]
on_cancel: [ { id: alert, task: a.alert, with: { text: "${failure.reason}" } } ]
`

// upToFour finishes three steps and takes the fourth.
func (e *env) upToFour(session string) *client.Task {
	e.Helper()
	for _, n := range []string{"1", "2", "3"} {
		e.done(e.poll(session), `{"n":`+n+`}`)
	}
	return e.poll(session)
}

// undone takes compensations and asserts their order and inputs.
func (e *env) undone(session string, steps ...string) {
	e.Helper()
	inputs := map[string]string{"one": `{"what":1}`, "two": `{"what":2}`, "three": `{"what":3}`}
	for _, step := range steps {
		task := e.poll(session)
		if task.StepID != "compensate:"+step || string(task.Input) != inputs[step] {
			e.Fatalf("got %s with %s, want compensate:%s with %s", task.StepID, task.Input, step, inputs[step])
		}
		e.done(task, `{}`)
	}
}

func (e *env) cancel(id string) {
	e.Helper()
	if _, err := e.api.Cancel(e.ctx(), id, "enough"); err != nil {
		e.Fatalf("cancel %s: %v", id, err)
	}
}

func TestCancel_WhileCompensatingEveryCompensationStillRunsOnceInReverse(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(undoing)
		session := e.register("w", "a.step", "a.undo", "a.alert")

		failed := e.start("undoing", "failed", "")
		e.fail(e.upToFour(session), "NO", false)
		e.cancel(failed)
		e.undone(session, "three")
		e.cancel(failed)
		e.undone(session, "two", "one")
		alert := e.poll(session)
		if alert.StepID != "on_failure:alert" || !strings.Contains(string(alert.Input), "it NO") {
			e.Errorf("the handler is %s with %s", alert.StepID, alert.Input)
		}
		e.cancel(failed)
		e.done(alert, `{}`)
		s := e.end(failed, client.Failed)
		if s.Compensation != "completed" || !strings.Contains(s.Error.Message, "four") {
			e.Errorf("ended with compensation %q and %+v", s.Compensation, s.Error)
		}
		if !slices.Equal(s.CompensationOrder, []string{"three", "two", "one"}) {
			e.Errorf("compensation order %v", s.CompensationOrder)
		}

		cancelled := e.start("undoing", "cancelled", "")
		last := e.upToFour(session)
		e.cancel(cancelled)
		e.done(last, `{}`) // it was awaited, and there is nothing to undo of it
		e.cancel(cancelled)
		e.undone(session, "three", "two")
		e.cancel(cancelled)
		e.undone(session, "one")
		alert = e.poll(session)
		if alert.StepID != "on_cancel:alert" || string(alert.Input) != `{"text":"cancelled"}` {
			e.Errorf("the handler is %s with %s", alert.StepID, alert.Input)
		}
		e.done(alert, `{}`)
		if s := e.end(cancelled, client.Cancelled); s.Compensation != "completed" {
			e.Errorf("compensation %q", s.Compensation)
		}
		e.pollNone(session)
		for _, id := range []string{failed, cancelled} {
			for _, step := range []string{"one", "two", "three"} {
				if n := e.count(id, "StepSucceeded(compensate:"+step+")"); n != 1 {
					e.Errorf("%s: %s was undone %d times", id, step, n)
				}
			}
		}
	})
}

func TestCancel_OneCompensationThatFailsKeepsNoneOfTheOthersBack(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(undoing)
		session := e.register("w", "a.step", "a.undo", "a.alert")
		id := e.start("undoing", "", "")
		e.fail(e.upToFour(session), "NO", false)
		e.undone(session, "three")
		e.fail(e.poll(session), "CANNOT", false)
		e.undone(session, "one")
		e.done(e.poll(session), `{}`)
		if s := e.end(id, client.Failed); s.Compensation != "failed" || s.Error == nil || strings.Contains(s.Error.Message, "CANNOT") {
			e.Errorf("ended with compensation %q and %+v", s.Compensation, s.Error)
		}
	})
}

func TestCancel_ReadyTaskIsHandedOutNoMore(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(oneStep)
		id := e.start("one", "", "")
		session := e.register("w", "a.step")
		e.cancel(id)
		e.pollNone(session)
		e.end(id, client.Cancelled)
	})
}
