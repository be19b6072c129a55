package view_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"perigee/engine/definition"
	"perigee/engine/history"
	"perigee/local/console"
	"perigee/local/view"
)

var update = flag.Bool("update", false, "write what is shown into testdata")

// nowMS is the moment at which every execution of these tests is looked at.
const nowMS = 1_795_000_100_000 // 2026-11-18 11:08:20 UTC

var workers = []view.Worker{
	{Online: true, Runtime: "go", Tasks: []string{"stock.reserve@1.0.0", "ship.send@1.0.0"}},
	{ID: "pay-1", Online: false, LastSeenMS: nowMS - 35_000, Runtime: "python", Tasks: []string{"pay.charge@2.0.0"}},
}

// Each file of testdata holds a definition, a history and what is shown of it:
// want, and want-all with Options.All.
func TestWrite_ShowsWhatAPersonAsks(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			e := view.Of(source(t, archive))
			for i, f := range archive.Files {
				if !strings.HasPrefix(f.Name, "want") {
					continue
				}
				var got bytes.Buffer
				if err := view.Write(&got, e, view.Options{Zone: time.UTC, All: f.Name == "want-all"}); err != nil {
					t.Fatal(err)
				}
				archive.Files[i].Data = got.Bytes()
				if diff := cmp.Diff(string(f.Data), got.String()); diff != "" && !*update {
					t.Errorf("%s (-want +got):\n%s", f.Name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func source(t *testing.T, archive *txtar.Archive) view.Source {
	t.Helper()
	s := view.Source{ID: "e-1", Workers: workers, NowMS: nowMS}
	for _, f := range archive.Files {
		switch f.Name {
		case "definition":
			d, faults := definition.Parse(f.Data, definition.YAML)
			if d == nil {
				t.Fatalf("definition: %v", faults)
			}
			s.Definition = d
		case "history":
			var err error
			if _, s.Records, err = history.ReadHistory(bytes.NewReader(f.Data)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

func TestWrite_NothingFromOthersSteersTheTerminal(t *testing.T) {
	const hostile = `[
		{"seq":1,"timestamp_ms":1,"type":"WorkflowCreated","workflow":"w","version":"1.0.0","definition_hash":"h","input":{}},
		{"seq":2,"timestamp_ms":2,"type":"StepScheduled","step":"a","attempt":1,"input":{},"idempotency_key":"k","redelivery":false},
		{"seq":3,"timestamp_ms":3,"type":"StepDispatched","step":"a","attempt":1,"token":"t","worker_id":"w\u001b[31m","worker_session":"s","deadline_ms":null},
		{"seq":4,"timestamp_ms":4,"type":"StepAttemptFailed","step":"a","attempt":1,"error":{"code":"X","message":"\u001b]0;owned\u0007 and\nmore"},"token":"t"},
		{"seq":5,"timestamp_ms":5,"type":"StepFailed","step":"a","error":{"code":"X","message":"\u001b]0;owned\u0007"}}]`
	_, records, err := history.ReadHistory(strings.NewReader(hostile))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := view.Write(&got, view.Of(view.Source{ID: "e-1", Records: records, NowMS: nowMS}), view.Options{}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(got.String(), "\x1b\x07") {
		t.Errorf("control characters came through: %q", got.String())
	}
	for _, r := range records {
		if text := view.Event(r.Event, time.UTC); console.Printable(text) != text && r.Event.Type() != history.TypeStepDispatched {
			t.Errorf("event %d: %q", r.Seq, text)
		}
	}
}

func TestEvent_HasWordsForEveryType(t *testing.T) {
	deadline := int64(1_000)
	failed := history.TaskError{Code: "BUSY", Message: "no room"}
	tests := []struct {
		event history.Event
		want  string
	}{
		{history.WorkflowCreated{Workflow: "w", Version: "1.0.0", Input: `{"a":1}`}, `w@1.0.0 input {"a":1}`},
		{history.WorkflowStarted{}, ""},
		{history.StepScheduled{Attempt: 2, Input: "{}", Redelivery: true}, "attempt 2 again input {}"},
		{history.StepFanOut{Items: nil}, "0 elements"},
		{history.StepSkipped{Reason: "condition is false"}, "condition is false"},
		{history.StepDispatched{Attempt: 1, WorkerID: "w-1"}, "attempt 1 to w-1"},
		{history.StepDispatched{WorkerSession: "child:e.sub"}, "child execution e.sub"},
		{history.StepSucceeded{Output: "1"}, "output 1"},
		{history.StepAttemptFailed{Attempt: 3, Error: failed}, "attempt 3 BUSY: no room"},
		{history.StepAttemptUncertain{Attempt: 1, Reason: "never received"}, "attempt 1 never received"},
		{history.RetryScheduled{NextAttempt: 2, DelayMS: 1500, FireAtMS: 60_000}, "attempt 2 at 1970-01-01 00:01:00 (after 1.5s)"},
		{history.StepFailed{Error: failed}, "BUSY: no room"},
		{history.StepRecovered{Error: failed}, "caught BUSY: no room"},
		{history.TimerStarted{FireAtMS: 60_000}, "until 1970-01-01 00:01:00"},
		{history.SignalReceived{Name: "go", Payload: "{}"}, "go {}"},
		{history.SignalAwaitStarted{Signal: "go", DeadlineMS: &deadline}, "go until 1970-01-01 00:00:01"},
		{history.SignalAwaitStarted{Signal: "go"}, "go"},
		{history.SignalDelivered{SignalSeq: 7}, "the signal of event 7"},
		{history.StaleResultIgnored{Outcome: history.OutcomeDuplicate}, "duplicate"},
		{history.AttemptProgress{Details: `{"done":3}`}, `{"done":3}`},
		{history.CancelRequested{Reason: "not needed"}, "not needed"},
		{history.LimitExceeded{Limit: "max_fan_out", Message: "too wide"}, "max_fan_out: too wide"},
		{history.CompensationStarted{Reason: "failed", Steps: []string{"b", "a"}}, "failed; undo b, a"},
		{history.CompensationFailed{Error: failed}, "BUSY: no room"},
		{history.HandlersStarted{Kind: "failure"}, "on_failure"},
		{history.WorkflowCompleted{Output: "null"}, "output null"},
		{history.WorkflowFailed{Error: failed, Compensation: "none"}, "BUSY: no room; compensation none"},
		{history.WorkflowCancelled{Compensation: "completed"}, "compensation completed"},
		{history.WorkflowTimedOut{Compensation: "failed"}, "compensation failed"},
		{history.Unknown{Name: "New", Data: "{}"}, "of a newer release: {}"},
	}
	for _, tt := range tests {
		if got := view.Event(tt.event, time.UTC); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.event.Type(), got, tt.want)
		}
	}
}
