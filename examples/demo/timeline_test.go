package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/sdk/go/client"
)

// history reads events as the API gives them.
func history(t *testing.T, text string) []client.Event {
	t.Helper()
	var events []client.Event
	if err := json.Unmarshal([]byte(text), &events); err != nil {
		t.Fatal(err)
	}
	return events
}

const redeliveredHistory = `[
	{"seq":1,"timestamp_ms":1000,"type":"WorkflowCreated","workflow":"order-fulfilment","version":"1.0.0","definition_hash":"sha256:00","input":{}},
	{"seq":2,"timestamp_ms":1000,"type":"WorkflowStarted"},
	{"seq":3,"timestamp_ms":1000,"type":"StepScheduled","step":"charge","attempt":1,"input":{},"idempotency_key":"o/charge","redelivery":false},
	{"seq":4,"timestamp_ms":1010,"type":"StepDispatched","step":"charge","attempt":1,"token":"a","worker_id":"payments-1","worker_session":"s","deadline_ms":null},
	{"seq":5,"timestamp_ms":4000,"type":"StepAttemptUncertain","step":"charge","attempt":1,"reason":"worker ` + "`payments-1`" + ` stopped responding"},
	{"seq":6,"timestamp_ms":4000,"type":"StepScheduled","step":"charge","attempt":1,"input":{},"idempotency_key":"o/charge","redelivery":true},
	{"seq":7,"timestamp_ms":4010,"type":"StepDispatched","step":"charge","attempt":1,"token":"b","worker_id":"payments-2","worker_session":"s","deadline_ms":null},
	{"seq":8,"timestamp_ms":4030,"type":"StepSucceeded","step":"charge","attempt":1,"output":{"charge":"charge-1"},"token":"b"},
	{"seq":9,"timestamp_ms":4030,"type":"StepSucceeded","step":"summary","attempt":1,"output":{"n":1}},
	{"seq":10,"timestamp_ms":4040,"type":"WorkflowCompleted","output":{"n":1}}]`

func TestTimeline_TellsALostAttemptAndItsRedelivery(t *testing.T) {
	got := timeline(history(t, redeliveredHistory), []note{{time.UnixMilli(1500), "payments-1 is killed"}})
	want := []string{
		"  0.00 s                   order-fulfilment 1.0.0 starts",
		"  0.01 s  charge           taken by payments-1",
		"  0.50 s                   -- payments-1 is killed --",
		"  3.00 s  charge           attempt 1 is lost: worker `payments-1` stopped responding",
		"  3.00 s  charge           attempt 1 is handed out again",
		`  3.03 s  charge           done by payments-2 in 20 ms  {"charge":"charge-1"}`,
		`  3.03 s  summary          is {"n":1}`,
		`  3.04 s                   COMPLETED {"n":1}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTimeline_TellsUndo(t *testing.T) {
	got := timeline(history(t, `[
		{"seq":1,"timestamp_ms":0,"type":"WorkflowCreated","workflow":"w","version":"1.0.0"},
		{"seq":2,"timestamp_ms":0,"type":"StepFanOut","step":"reserve","items":[{}]},
		{"seq":3,"timestamp_ms":10,"type":"StepSucceeded","step":"reserve","attempt":1,"output":[{}]},
		{"seq":4,"timestamp_ms":10,"type":"StepAttemptFailed","step":"charge","attempt":1,"error":{"code":"CARD_DECLINED","message":"declined","retryable":false}},
		{"seq":5,"timestamp_ms":10,"type":"StepFailed","step":"charge","error":{"code":"CARD_DECLINED","message":"declined","retryable":false}},
		{"seq":6,"timestamp_ms":10,"type":"CompensationStarted","reason":"failed","steps":["reserve[0]"]},
		{"seq":7,"timestamp_ms":20,"type":"StepDispatched","step":"compensate:reserve[0]","attempt":1,"worker_id":"w-1"},
		{"seq":8,"timestamp_ms":30,"type":"StepSucceeded","step":"compensate:reserve[0]","attempt":1,"output":{}},
		{"seq":9,"timestamp_ms":30,"type":"CompensationCompleted"},
		{"seq":10,"timestamp_ms":30,"type":"WorkflowFailed","error":{"code":"CARD_DECLINED","message":"declined"},"compensation":"completed"}]`), nil)
	want := []string{
		"  0.00 s                   w 1.0.0 starts",
		"  0.01 s  reserve          1 of 1 done",
		"  0.01 s  charge           attempt 1 failed: CARD_DECLINED: declined",
		"  0.01 s  charge           FAILED",
		"  0.01 s                   undo, newest first: reserve[0]",
		"  0.03 s  undo reserve[0]  done by w-1 in 10 ms",
		"  0.03 s                   all is undone",
		"  0.03 s                   FAILED CARD_DECLINED: declined",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChecks_OfARedelivery(t *testing.T) {
	r := &result{events: history(t, redeliveredHistory)}
	if f := r.redelivered("charge", "payments-1", "payments-2"); !f.ok {
		t.Errorf("got %+v", f)
	}
	if f := r.redelivered("charge", "payments-1", "payments-3"); f.ok {
		t.Error("another worker than the one that was wanted: got ok")
	}
	if f := gapless(r.events); !f.ok {
		t.Errorf("gapless: got %+v", f)
	}
	if f := gapless(r.events[1:]); f.ok {
		t.Error("a history without its first event: got ok")
	}
	if f := gapless(r.events[:5]); f.ok {
		t.Error("a history without its end: got ok")
	}
}
