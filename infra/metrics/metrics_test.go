package metrics_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/infra/metrics"
	"perigee/store"
)

func TestFlush_WritesOneLineOfWhatWasCounted(t *testing.T) {
	var log bytes.Buffer
	r := metrics.New(&log, "shop", func() time.Time { return time.UnixMilli(1_800_000_000_000) })
	r.Committed(store.Commit{
		Events:   []store.Event{{Type: "WorkflowCreated"}, {Type: "WorkflowStarted"}, {Type: "StepSucceeded"}, {Type: "StepSucceeded"}},
		Children: []store.NewExecution{{Events: []store.Event{{Type: "WorkflowCreated"}}}},
	})
	r.Committed(store.Commit{Head: store.Head{ErrorCount: 1}})
	r.Claimed(store.Claimed{Tasks: make([]store.Task, 3)})
	r.Looked(store.Due{NowMS: 10_000, OldestDueMS: 7_500, OldestReady: 9_000})
	r.Looked(store.Due{NowMS: 20_000})
	r.Flush()
	r.Flush() // nothing since
	var got any
	if err := json.Unmarshal(log.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	metric := func(name, unit string) any { return map[string]any{"Name": name, "Unit": unit} }
	want := any(map[string]any{
		"Stack":             "shop",
		"ExecutionsStarted": 2.0, "StepsSucceeded": 2.0, "ParkedExecutions": 1.0, "TasksDispatched": 3.0,
		"TickPasses": 2.0, "OldestDueSeconds": 2.5, "OldestReadySeconds": 1.0,
		"_aws": map[string]any{
			"Timestamp": 1_800_000_000_000.0,
			"CloudWatchMetrics": []any{map[string]any{
				"Namespace": "Perigee", "Dimensions": []any{[]any{"Stack"}},
				"Metrics": []any{
					metric("ExecutionsStarted", "Count"), metric("OldestDueSeconds", "Seconds"), metric("OldestReadySeconds", "Seconds"),
					metric("ParkedExecutions", "Count"), metric("StepsSucceeded", "Count"), metric("TasksDispatched", "Count"), metric("TickPasses", "Count"),
				},
			}},
		},
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines", n)
	}
}

// A tick that finds nothing says so: silence is what the alarm is for.
func TestFlush_ATickThatFoundNothingIsCounted(t *testing.T) {
	var log bytes.Buffer
	r := metrics.New(&log, "shop", nil)
	r.Looked(store.Due{NowMS: 10_000})
	r.Flush()
	for _, want := range []string{`"TickPasses":1`, `"OldestDueSeconds":0`, `"OldestReadySeconds":0`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s does not say %s", log.String(), want)
		}
	}
}

// The alarms look for metrics by name: each must be one that is written.
func TestTemplate_AlarmsAreOnMetricsThatAreWritten(t *testing.T) {
	template, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(template), "\n")
	found := 0
	for i, line := range lines {
		if strings.TrimSpace(line) != "Namespace: "+metrics.Namespace {
			continue
		}
		_, name, ok := strings.Cut(lines[i+1], "MetricName: ")
		if !ok || !slices.Contains(metrics.Names(), name) || !strings.Contains(lines[i+2], "Name: "+metrics.Dimension+",") {
			t.Errorf("template.yaml:%d: %q is no metric of ours by %s", i+2, lines[i+1], metrics.Dimension)
		}
		found++
	}
	if found == 0 {
		t.Error("template.yaml has no alarm on our metrics")
	}
}

func TestOperations_ListsEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range metrics.Names() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/operations.md does not name %s", name)
		}
	}
}
