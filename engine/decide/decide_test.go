package decide

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// parse compiles a definition and gives it the server's usual limits.
func parse(t testing.TB, source string) Program {
	t.Helper()
	d, faults := definition.Parse([]byte(source), definition.YAML)
	if d == nil {
		t.Fatal(faults)
	}
	kid, _ := definition.Parse([]byte(generatedChild), definition.YAML)
	return Program{
		Definition: d,
		Children:   map[string]*definition.Definition{"kid@1.0.0": kid},
		Limits: Limits{
			MaxFanOut: 10_000, MaxHistoryEvents: 50_000, MaxPayloadBytes: 1 << 20, MaxJoinBytes: 16 << 20,
			MaxRedeliveries: 3, CancelGraceMS: 600_000, DefaultAttemptTimeoutMS: 86_400_000,
		},
	}
}

// begin starts an execution and decides until nothing is left to do.
func begin(t testing.TB, p Program, input string) *Machine {
	t.Helper()
	m := New(p, history.New("e"))
	m.At(beginning)
	m.Create(history.WorkflowCreated{Workflow: "w", Version: "1.0.0", DefinitionHash: "sha256:0", Input: exactjson.Value(input)})
	for m.Run() {
		m = m.Clone()
	}
	return m.Clone()
}

func handOut(m *Machine, unit, token string) {
	m.Dispatch(unit, history.StepDispatched{Token: token, WorkerID: "w", WorkerSession: "s"})
}

const wide = `
name: wide
version: "1.0.0"
tasks: { a.one: { version: "1.0.0" } }
steps:
  - { id: each, for: "lists.range(%d)", task: a.one }
output: "size(steps.each.output)"
`

func TestRun_AnyNumberOfResultsInOneCallLeavesRoomForWhatFollows(t *testing.T) {
	source := strings.Replace(fmt.Sprintf(wide, 1500), `"size(steps.each.output)"`, `"${size(steps.each.output)}"`, 1)
	m := begin(t, parse(t, source), "{}")
	for i := range 1500 {
		unit := history.ElementKey("each", i)
		handOut(m, unit, unit)
		if ack := m.Result(unit, unit, Result{}); !ack.Accepted {
			t.Fatal(ack.Reason)
		}
	}
	if more := m.Run(); more {
		t.Error("more is left, though only the join was to be decided")
	}
	if diff := cmp.Diff(exactjson.Value("1500"), m.State().Output); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestRetryInterval_NeverShrinksAndNeverPassesItsMaximum(t *testing.T) {
	policies := []definition.Retry{
		{InitialIntervalMS: 1000, Backoff: 10, MaxIntervalMS: 3_600_000},
		{InitialIntervalMS: 1, Backoff: 1000, MaxIntervalMS: 100 * 365 * 86_400_000},
		{InitialIntervalMS: 1000, Backoff: 1, MaxIntervalMS: 3_600_000},
		{InitialIntervalMS: 7000, Backoff: 2, MaxIntervalMS: 5000},
		{InitialIntervalMS: 0, Backoff: 1000, MaxIntervalMS: 3_600_000},
		{InitialIntervalMS: 333, Backoff: 1.5, MaxIntervalMS: 0},
	}
	for _, p := range policies {
		last := int64(0)
		for attempt := uint32(0); attempt < 1000; attempt++ {
			delay := RetryInterval(p, attempt)
			if delay < last || delay > p.MaxIntervalMS {
				t.Fatalf("%+v: attempt %d waits %d ms, the one before it %d", p, attempt, delay, last)
			}
			last = delay
		}
		if p.InitialIntervalMS == 0 && last != 0 {
			t.Errorf("%+v: 0 grew to %d", p, last)
		}
	}
	if got := RetryInterval(policies[0], 1<<32-1); got != 3_600_000 {
		t.Errorf("the last attempt of all waits %d ms", got)
	}
}

func TestTouched_EachUnitOnceInOrder(t *testing.T) {
	p := parse(t, `
name: two
version: "1.0.0"
tasks: { a.one: { version: "1.0.0" } }
steps:
  - parallel:
      - { id: b, task: a.one }
      - { id: a, task: a.one }
`)
	m := begin(t, p, "{}")
	handOut(m, "b", "t1")
	handOut(m, "a", "t2")
	m.Result("b", "t1", Result{})
	m.Run()
	if diff := cmp.Diff([]string{"b", "a"}, m.Touched()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReplay_GivesTheMachineThatDecided(t *testing.T) {
	p := parse(t, fmt.Sprintf(strings.Replace(wide, "output:", "#", 1), 3))
	original := begin(t, p, "{}")
	replayed := original.Clone()
	handOut(original, "each[1]", "t1")
	original.Result("each[1]", "t1", Result{Output: `{"n":1}`})
	original.Run()
	for _, r := range original.Records() {
		replayed.Replay(r)
	}
	if len(replayed.Records()) != 0 {
		t.Errorf("a replayed event counts as decided: %v", lines(replayed.Records()))
	}
	if diff := cmp.Diff(dump(original), dump(replayed)); diff != "" {
		t.Errorf("(-decided +replayed):\n%s", diff)
	}
}

func TestRunsChild_TellsWhichChildrenEndWithTheirUnit(t *testing.T) {
	p := parse(t, `
name: parent
version: "1.0.0"
tasks: { a.one: { version: "1.0.0" } }
steps:
  - parallel:
      - { id: kept, workflow: kid@1.0.0, timeout: 10s }
      - { id: left, workflow: kid@1.0.0, timeout: 10s, on_parent_close: abandon }
      - { id: task, task: a.one }
`)
	m := begin(t, p, "{}")
	running := map[string]bool{"kept": m.RunsChild("kept"), "left": m.RunsChild("left"), "task": m.RunsChild("task"), "none": m.RunsChild("none")}
	if diff := cmp.Diff(map[string]bool{"kept": true, "left": false, "task": false, "none": false}, running); diff != "" {
		t.Errorf("while they run (-want +got):\n%s", diff)
	}
	m.At(beginning + 10_000)
	m.Run()
	if !m.RunsChild("kept") || !m.RunsChild("left") {
		t.Error("a child whose unit ran out of time is to be cancelled, an abandoned one too")
	}
}

func TestChildEnded_OnlyByAnEnd(t *testing.T) {
	m := begin(t, parse(t, "name: parent\nversion: \"1.0.0\"\nsteps: [ { id: kid, workflow: kid@1.0.0 } ]\n"), "{}")
	for _, status := range []history.Status{history.Running, history.Compensating} {
		if m.ChildEnded("kid", "e.kid", ChildEnd{Status: status}) {
			t.Errorf("a child that is %s counted as ended", status)
		}
	}
	if m.ChildEnded("kid", "other", ChildEnd{Status: history.Completed}) {
		t.Error("another execution's end counted")
	}
}

func TestCheckResult_SaysWhatWillBeRecorded(t *testing.T) {
	p := parse(t, `
name: one
version: "1.0.0"
tasks: { a.one: { version: "1.0.0", output: { type: object, properties: { n: { type: integer, default: 7 } } } } }
steps: [ { id: one, task: a.one } ]
`)
	m := begin(t, p, "{}")
	if success, output, _, _ := m.CheckResult("one", Result{}); !success || output != `{"n":7}` {
		t.Errorf("nothing: %t %s", success, output)
	}
	if success, _, fail, refused := m.CheckResult("one", Result{Output: `{"n":"x"}`}); success || !refused || fail.Code != CodeOutputContract {
		t.Errorf("a broken contract: %t %t %v", success, refused, fail)
	}
}

func TestReasonStoppedResponding_NamesTheWorker(t *testing.T) {
	if diff := cmp.Diff("worker `w-1` stopped responding", ReasonStoppedResponding("w-1")); diff != "" {
		t.Error(diff)
	}
}
