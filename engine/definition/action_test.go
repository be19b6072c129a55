package definition

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/expr"
)

func TestRetry_StepThenDefaultsThenBuiltIn(t *testing.T) {
	const text = `name: a
version: "1.0.0"
tasks: { t.a: { version: "1.0.0" } }
retry_policies: { patient: { max_attempts: unlimited, max_interval: 10m, no_retry: [X] } }
%s
steps:
  - { id: none, task: t.a, retry: none }
  - { id: named, task: t.a, retry: patient }
  - { id: own, task: t.a, retry: { max_attempts: 5, initial_interval: 0s, backoff: 1.5, jitter: 0 } }
  - { id: silent, task: t.a, compensate: { task: t.a } }
`
	builtIn := Retry{MaxAttempts: 3, InitialIntervalMS: 1000, Backoff: 2, MaxIntervalMS: 3_600_000, Jitter: 0.2}
	fallback := builtIn
	fallback.MaxAttempts, fallback.Backoff = 7, 3
	none := builtIn
	none.MaxAttempts = 1
	named := builtIn
	named.MaxAttempts, named.MaxIntervalMS, named.NoRetry = 0, 600_000, []string{"X"}
	own := builtIn
	own.MaxAttempts, own.InitialIntervalMS, own.Backoff, own.Jitter = 5, 0, 1.5, 0
	for defaults, silent := range map[string]Retry{
		"": builtIn,
		"defaults: { retry: { max_attempts: 7, backoff: 3 } }": fallback,
		"defaults: { retry: patient }":                         named,
	} {
		d, faults := Parse([]byte(fmt.Sprintf(text, defaults)), YAML)
		if d == nil {
			t.Fatal(faults)
		}
		want := map[string]Retry{"none": none, "named": named, "own": own, "silent": silent}
		got := map[string]Retry{}
		for _, s := range d.Steps {
			got[s.ID] = s.Call.Retry
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", defaults, diff)
		}
		if diff := cmp.Diff(silent, d.StepByID("silent").Compensate.Retry); diff != "" {
			t.Errorf("compensation\n%s", diff)
		}
	}
}

// constant is the text of a program without expressions, "" where there is none.
func constant(p *expr.Program) string {
	if p == nil {
		return ""
	}
	value, _ := p.Constant()
	text, _ := value.Text()
	return text
}

func TestDefaults_GoToTasksOnly(t *testing.T) {
	d, faults := Parse([]byte(`name: a
version: "1.0.0"
tasks: { t.a: { version: "1.0.0" } }
defaults: { timeout: 5m, queue_timeout: 1h }
signals: { go: {} }
steps:
  - { id: task, task: t.a, timeout: 1s, compensate: { task: t.a } }
  - { id: child, workflow: w@1.0.0, compensate: { workflow: u@1.0.0 } }
  - { id: wait, await: go }
on_failure:
  - { id: handler, task: t.a }
`), YAML)
	if d == nil {
		t.Fatal(faults)
	}
	got := []string{
		constant(d.Steps[0].Call.Timeout), constant(d.Steps[0].Call.QueueTimeout),
		constant(d.Steps[0].Compensate.Timeout), constant(d.Steps[0].Compensate.QueueTimeout),
		constant(d.Steps[1].Call.Timeout), constant(d.Steps[1].Compensate.Timeout), constant(d.Steps[2].Timeout),
		constant(d.Handlers["failure"][0].Call.Timeout),
	}
	if diff := cmp.Diff([]string{"1s", "1h", "5m", "1h", "", "", "", "5m"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"w@1.0.0", "u@1.0.0"}, d.Children); diff != "" {
		t.Error(diff)
	}
}

func TestParse_TheModelHoldsWhatWasWritten(t *testing.T) {
	d := mustParse(t, `limits: { max_fan_out: 10, max_history_events: 2000, max_payload_bytes: 4096 }
description: All of it
steps:
  - id: a
    task: do.it
    for: [1, 2]
    max_parallel: "${input.n}"
    at_most_once: true
    max_redeliveries: 0
    catch: [ { codes: [X] }, { output: 5 } ]
    compensate: { task: http.request, with: { url: x }, when_uncertain: true }
  - { id: b, workflow: w@1.2.3-rc.1, on_parent_close: abandon }
  - { id: c, until: "2027-01-01T00:00:00Z" }
  - { id: d, compute: "input.n + 1" }
  - { id: e, compute: null }
`)
	if d.Limits != (Limits{MaxFanOut: 10, MaxHistoryEvents: 2000, MaxPayloadBytes: 4096}) || d.TimeoutMS != 3_600_000 || d.Description != "All of it" {
		t.Errorf("%+v %d %q", d.Limits, d.TimeoutMS, d.Description)
	}
	a := d.Steps[0]
	if a.For == nil || a.MaxParallel == nil || !a.Call.AtMostOnce || *a.Call.MaxRedeliveries != 0 || !a.WhenUncertain || a.Compensate.Builtin != "http.request" {
		t.Errorf("%+v %+v", a, a.Call)
	}
	if len(a.Catch) != 2 || a.Catch[0].Output != nil || a.Catch[1].Codes != nil || a.Catch[1].Output == nil {
		t.Errorf("%+v", a.Catch)
	}
	if b := d.Steps[1]; b.Kind != KindWorkflow || !b.Call.AbandonChild || b.Call.Workflow != "w@1.2.3-rc.1" || b.Call.Name() != "w@1.2.3-rc.1" {
		t.Errorf("%+v", b.Call)
	}
	if c := d.Steps[2]; c.Kind != KindSleep || c.Until == nil || c.Sleep != nil {
		t.Errorf("%+v", c)
	}
	if _, known := d.Steps[3].Value.Constant(); known {
		t.Error("compute given as text is no expression")
	}
	if value, known := d.Steps[4].Value.Constant(); !known || value != "null" {
		t.Errorf("compute: null is %s", value)
	}
}

func TestGraph_NamesStepsAndWhatTheyWaitFor(t *testing.T) {
	d := mustParse(t, `steps:
  - { id: a, task: do.it, for: input.list, compensate: { task: do.typed } }
  - { id: b, when: input.n > 1, await: go, timeout: 1h }
on_cancel:
  - { id: a, workflow: w@1.0.0 }
  - { id: c, sleep: 1s }
`)
	got, err := json.Marshal(d.Graph())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"nodes":[` +
		`{"id":"a","kind":"task","task":"do.it","for":true,"compensate":"do.typed"},` +
		`{"id":"b","kind":"await","signal":"go","when":true},` +
		`{"id":"on_cancel:a","kind":"workflow","workflow":"w@1.0.0","handler":"cancel"},` +
		`{"id":"on_cancel:c","kind":"sleep","handler":"cancel"}],` +
		`"edges":[{"from":"a","to":"b"},{"from":"on_cancel:a","to":"on_cancel:c"}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}
