package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/exactjson"
	"perigee/engine/history"
)

func TestAppendJSON_LeavesOutWhatIsNotServed(t *testing.T) {
	s := fold(created, scheduled, dispatched, succeeded, history.SignalReceived{Name: "go", SignalID: "x"}, history.CancelRequested{Reason: "why"})
	want := `{"id":"e","workflow":"w","version":"1.0.0","definition_hash":"sha256:1","input":{"n":1},"status":"RUNNING",` +
		`"created_at_ms":10,"updated_at_ms":60,"units":{"a":{"status":"SUCCEEDED","attempt":1,"input":{"x":1},"idempotency_key":"e/a",` +
		`"output":{"y":2},"redelivery":false,"scheduled_at_ms":20,"dispatched_at_ms":30,"deadline_ms":500,"finished_at_ms":40,` +
		`"worker_id":"w1","worker_session":"s1","tokens":[["t1",1]],"succeeded_seq":4,"dispatch_count":1}},` +
		`"abort":{"kind":"cancelled","reason":"why"},"signals":[{"seq":5,"name":"go","payload":null,"received_at_ms":50}],"last_seq":6}`
	if diff := cmp.Diff(want, string(s.AppendJSON(nil))); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestAppendJSON_AppendsToWhatIsThere(t *testing.T) {
	s := fold(created, scheduled)
	want := "x" + string(s.AppendJSON(nil))
	if diff := cmp.Diff(want, string(s.AppendJSON([]byte("x")))); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestAppendJSONPage_PagesGiveEachUnitOnceInOrder(t *testing.T) {
	s := fold(history.StepFanOut{Step: "a", Items: make([]exactjson.Value, 12)}, history.TimerFired{Step: "b"})
	var want []string
	for key := range s.Units() {
		want = append(want, key)
	}
	tests := []struct {
		limit, maxBytes int
		pages           int
	}{{5, 0, 3}, {14, 0, 1}, {13, 0, 2}, {0, 1, 14}, {100, 1 << 20, 1}}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("limit %d, bytes %d", tt.limit, tt.maxBytes), func(t *testing.T) {
			var got []string
			options := history.PageOptions{Limit: tt.limit, MaxBytes: tt.maxBytes}
			pages := 0
			for {
				text, page := s.AppendJSONPage(nil, options)
				pages++
				v := exactjson.Value(text)
				for key := range v.Get("units").Members() {
					got = append(got, key)
				}
				if next, _ := v.Get("next_units_after").Text(); next != page.NextUnitsAfter {
					t.Errorf("the text says %q, the page %q", next, page.NextUnitsAfter)
				}
				if page.NextUnitsAfter == "" {
					break
				}
				options.After = page.NextUnitsAfter
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if pages != tt.pages {
				t.Errorf("expected %d pages, got %d", tt.pages, pages)
			}
		})
	}
}

func TestAppendJSONPage_NamesTheValuesThatItLeavesOut(t *testing.T) {
	long := exactjson.FromString(strings.Repeat("x", 100))
	s := fold(
		history.StepScheduled{Step: "a[0]", Input: long},
		history.StepSucceeded{Step: "a[0]", Output: "1"},
		history.StepFailed{Step: "b", Error: history.TaskError{Code: "X", Details: long}},
	)
	text, page := s.AppendJSONPage(nil, history.PageOptions{MaxValueBytes: 101})
	if diff := cmp.Diff([]string{"a[0].input", "b.error"}, page.Omitted); diff != "" {
		t.Errorf("omitted (-want +got):\n%s", diff)
	}
	v := exactjson.Value(text)
	if got := v.Get("omitted"); got != `["a[0].input","b.error"]` {
		t.Errorf("the text says %s", got)
	}
	if unit := v.Get("units").Get("a[0]"); unit.Get("input") != "" || unit.Get("output") != "1" {
		t.Errorf("expected only the input to be left out, got %s", unit)
	}
	if _, page := s.AppendJSONPage(nil, history.PageOptions{MaxValueBytes: 102}); page.Omitted != nil {
		t.Errorf("expected nothing to be left out at the limit, got %v", page.Omitted)
	}
}

func TestAppendJSONPage_SignalsAreBounded(t *testing.T) {
	long := exactjson.FromString(strings.Repeat("x", 100))
	events := []history.Event{created, scheduled, history.TimerFired{Step: "b"}, history.SignalReceived{Name: "go", Payload: long}}
	for range 9 {
		events = append(events, history.SignalReceived{Name: "go", Payload: "1"})
	}
	s := fold(events...)
	served := func(o history.PageOptions) (signals []exactjson.Value, omitted []string) {
		text, page := s.AppendJSONPage(nil, o)
		for element := range exactjson.Value(text).Get("signals").Elements() {
			signals = append(signals, element)
		}
		return signals, page.Omitted
	}
	if signals, omitted := served(history.PageOptions{}); len(signals) != 10 || omitted != nil {
		t.Errorf("without limits there are %d signals, %v is left out", len(signals), omitted)
	}
	signals, omitted := served(history.PageOptions{MaxValueBytes: 50})
	if diff := cmp.Diff([]string{"signals[4].payload"}, omitted); diff != "" || len(signals) != 10 || signals[0].Get("payload") != "" || signals[1].Get("payload") != "1" {
		t.Errorf("%d signals, the first %s; left out (-want +got):\n%s", len(signals), signals[0], diff)
	}
	signals, omitted = served(history.PageOptions{MaxBytes: 8 * 200, MaxValueBytes: 50})
	if diff := cmp.Diff([]string{"signals[4].payload", "signals[8:]"}, omitted); diff != "" || len(signals) != 4 {
		t.Errorf("%d signals; left out (-want +got):\n%s", len(signals), diff)
	}
	text, page := s.AppendJSONPage(nil, history.PageOptions{Limit: 1})
	if page.NextUnitsAfter == "" {
		t.Fatalf("one page has all: %s", text)
	}
	if signals, _ := served(history.PageOptions{After: page.NextUnitsAfter}); signals != nil {
		t.Errorf("the second page has signals, too: %s", signals)
	}
}
