package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"perigee/engine/exactjson"
	"perigee/engine/history"
)

func TestCodec_EveryEventIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := history.Record{Seq: rapid.Uint64().Draw(t, "seq"), TimestampMS: anyTime.Draw(t, "at"), Event: anyEvent.Draw(t, "event")}
		full := history.AppendEvent(nil, want)
		got, err := history.DecodeRecord(full)
		if err != nil {
			t.Fatalf("%s: %v", full, err)
		}
		// An absent payload is written as null, so compare what is written.
		if diff := cmp.Diff(string(full), string(history.AppendEvent(nil, got))); diff != "" {
			t.Errorf("full form (-want +got):\n%s", diff)
		}
		fields := string(history.AppendFields(nil, want.Event))
		e, err := history.DecodeFields(want.Event.Type(), fields)
		if err != nil {
			t.Fatalf("%s: %v", fields, err)
		}
		if diff := cmp.Diff(got.Event, e); diff != "" {
			t.Errorf("DecodeRecord and DecodeFields differ (-record +fields):\n%s", diff)
		}
		stored := history.AppendStored(nil, want.Seq, want.TimestampMS, string(want.Event.Type()), fields)
		if diff := cmp.Diff(string(full), string(stored)); diff != "" {
			t.Errorf("AppendStored (-want +got):\n%s", diff)
		}
	})
}

func TestAppendEvent_WritesTheDocumentedForm(t *testing.T) {
	tests := []struct {
		event history.Event
		want  string
	}{
		{history.WorkflowCreated{Workflow: "w", Version: "1.0.0", DefinitionHash: "sha256:1", Parent: &history.ParentRef{ExecutionID: "p", Step: "s[0]"}},
			`"workflow":"w","version":"1.0.0","definition_hash":"sha256:1","input":null,"parent":{"execution_id":"p","step":"s[0]"}`},
		{scheduled, `"step":"a","attempt":1,"input":{"x":1},"idempotency_key":"e/a","redelivery":false`},
		{history.StepFanOut{Step: "a", Items: []exactjson.Value{"1", ""}}, `"step":"a","items":[1,null]`},
		{history.StepDispatched{Step: "a", Attempt: 1}, `"step":"a","attempt":1,"token":"","worker_id":"","worker_session":"","deadline_ms":null`},
		{dispatched, `"step":"a","attempt":1,"token":"t1","worker_id":"w1","worker_session":"s1","deadline_ms":500`},
		{history.StepSucceeded{Step: "a", Attempt: 1}, `"step":"a","attempt":1,"output":null`},
		{succeeded, `"step":"a","attempt":1,"output":{"y":2},"token":"t1"`},
		{history.StepAttemptFailed{Step: "a", Attempt: 1, Error: declined, RetryAfterMS: new(int64(0))},
			`"step":"a","attempt":1,"error":{"code":"DECLINED","message":"no money","retryable":true,"details":{"left":0}},"retry_after_ms":0`},
		{history.StepFailed{Step: "a"}, `"step":"a","error":{"code":"","message":"","retryable":false}`},
		{history.SignalReceived{Name: "go"}, `"name":"go","payload":null`},
		{history.SignalReceived{Name: "go", Payload: "1", SignalID: "x"}, `"name":"go","payload":1,"signal_id":"x"`},
		{history.SignalAwaitStarted{Step: "a", Signal: "go"}, `"step":"a","signal":"go"`},
		{history.CompensationStarted{Reason: history.ReasonFailed}, `"reason":"failed","steps":[]`},
		{history.AttemptProgress{Step: "a", Token: "t1", Details: "50"}, `"step":"a","token":"t1","details":50`},
		{history.StepRecovered{Step: "a", Error: history.TaskError{Code: "X"}, Output: "1"}, `"step":"a","error":{"code":"X","message":"","retryable":false},"output":1`},
		{history.Unknown{Name: `New"Type`, Data: `{"step":"a","n":1.0}`}, `"step":"a","n":1.0`},
	}
	for _, tt := range tests {
		name := string(exactjson.FromString(string(tt.event.Type())))
		t.Run(name, func(t *testing.T) {
			want := fmt.Sprintf(`{"seq":3,"timestamp_ms":30,"type":%s,%s}`, name, tt.want)
			if diff := cmp.Diff(want, string(history.AppendEvent(nil, history.Record{Seq: 3, TimestampMS: 30, Event: tt.event}))); diff != "" {
				t.Errorf("full form (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff("{"+tt.want+"}", string(history.AppendFields(nil, tt.event))); diff != "" {
				t.Errorf("own members (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAppendEvent_OfAnEventWithoutMembers(t *testing.T) {
	for _, e := range []history.Event{history.WorkflowStarted{}, history.WorkflowTimeoutReached{}, history.CompensationCompleted{}, history.Unknown{Name: "New", Data: "{}"}} {
		want := fmt.Sprintf(`{"seq":1,"timestamp_ms":2,"type":%q}`, e.Type())
		if diff := cmp.Diff(want, string(history.AppendEvent(nil, history.Record{Seq: 1, TimestampMS: 2, Event: e}))); diff != "" {
			t.Errorf("full form (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, string(history.AppendStored(nil, 1, 2, string(e.Type()), "{}"))); diff != "" {
			t.Errorf("stored form (-want +got):\n%s", diff)
		}
	}
}

func TestDecodeRecord_TakesWhatOlderAndNewerReleasesWrite(t *testing.T) {
	tests := []struct {
		rule, text string
		want       history.Record
	}{
		{"members in any order, with white space", ` { "step" : "a", "type":"StepCancelled", "timestamp_ms":5,"seq":7 } `,
			history.Record{Seq: 7, TimestampMS: 5, Event: history.StepCancelled{Step: "a"}}},
		{"members that are missing are zero", `{"seq":1,"timestamp_ms":2,"type":"StepScheduled"}`,
			history.Record{Seq: 1, TimestampMS: 2, Event: history.StepScheduled{}}},
		{"null is as good as missing", `{"seq":1,"timestamp_ms":2,"type":"StepSucceeded","step":null,"attempt":null,"token":null}`,
			history.Record{Seq: 1, TimestampMS: 2, Event: history.StepSucceeded{}}},
		{"an error is retryable unless it says otherwise", `{"seq":1,"timestamp_ms":2,"type":"StepFailed","error":{"code":"X","details":null}}`,
			history.Record{Seq: 1, TimestampMS: 2, Event: history.StepFailed{Error: history.TaskError{Code: "X", Retryable: true}}}},
		{"members of no event are ignored", `{"seq":1,"timestamp_ms":2,"type":"TimerFired","step":"a","fired_by":["x"]}`,
			history.Record{Seq: 1, TimestampMS: 2, Event: history.TimerFired{Step: "a"}}},
		{"members of other events are ignored, whatever they hold", `{"seq":1,"timestamp_ms":2,"type":"TimerFired","step":"a","attempt":"many","error":0}`,
			history.Record{Seq: 1, TimestampMS: 2, Event: history.TimerFired{Step: "a"}}},
		{"names and strings may be escaped", `{"seq":1,"timestamp_ms":2,"\u0074ype":"\u0054imerFired","step":"\u00e9"}`,
			history.Record{Seq: 1, TimestampMS: 2, Event: history.TimerFired{Step: "é"}}},
		{"payloads keep their digits and the order of their keys", `{"seq":1,"timestamp_ms":2,"type":"WorkflowCompleted","output":{"z": 1.50, "a": 9007199254740993}}`,
			history.Record{Seq: 1, TimestampMS: 2, Event: history.WorkflowCompleted{Output: `{"z":1.50,"a":9007199254740993}`}}},
		{"integers are exact", `{"seq":18446744073709551615,"timestamp_ms":9223372036854775807,"type":"SignalDelivered","step":"a","signal_seq":9007199254740993}`,
			history.Record{Seq: 18446744073709551615, TimestampMS: 9223372036854775807, Event: history.SignalDelivered{Step: "a", SignalSeq: 9007199254740993}}},
		{"a type that is not known keeps its members", `{"seq":1,"timestamp_ms":2,"type":"StepTeleported","step":"a","to":{"x": 1}}`,
			history.Record{Seq: 1, TimestampMS: 2, Event: history.Unknown{Name: "StepTeleported", Data: `{"step":"a","to":{"x":1}}`}}},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			got, err := history.DecodeRecord([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeRecord_SaysWhatIsWrong(t *testing.T) {
	tests := []struct{ text, want string }{
		{`[1]`, `expected an object, got array`},
		{`{"seq":1`, `expected a comma or }`},
		{`{"seq":1,"timestamp_ms":2}`, `expected a member "type"`},
		{`{"seq":-1,"timestamp_ms":2,"type":"TimerFired"}`, `decode event 0 TimerFired: member "seq": expected an integer from 0 to 18446744073709551615, got -1`},
		{`{"seq":1.0,"timestamp_ms":2,"type":"TimerFired"}`, `member "seq": expected an integer`},
		{`{"seq":1,"timestamp_ms":9223372036854775808,"type":"TimerFired"}`, `member "timestamp_ms": expected an integer of 64 bits`},
		{`{"seq":1,"timestamp_ms":2,"type":"TimerFired","step":7}`, `decode event 1 TimerFired: member "step": expected a string, got 7`},
		{`{"seq":1,"timestamp_ms":2,"type":"StepScheduled","attempt":4294967296}`, `member "attempt": expected an integer from 0 to 4294967295, got 4294967296`},
		{`{"seq":1,"timestamp_ms":2,"type":"StepScheduled","redelivery":"yes"}`, `member "redelivery": expected true or false, got string`},
		{`{"seq":1,"timestamp_ms":2,"type":"StepFanOut","items":{}}`, `member "items": expected an array, got object`},
		{`{"seq":1,"timestamp_ms":2,"type":"StepFailed","error":"no"}`, `member "error": expected an object, got string`},
		{`{"seq":1,"timestamp_ms":2,"type":"TimerFired","step":"a","step":"b"}`, `twice`},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			_, err := history.DecodeRecord([]byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("expected an error with %q, got %v", tt.want, err)
			}
		})
	}
}

func TestDecodeRecord_TakesTheDeepestPayload(t *testing.T) {
	deep := strings.Repeat("[", exactjson.MaxDepth) + strings.Repeat("]", exactjson.MaxDepth)
	e := history.StepAttemptFailed{Step: "a", Error: history.TaskError{Details: exactjson.Value(deep)}}
	text := history.AppendEvent(nil, history.Record{Seq: 1, Event: e})
	if _, err := history.DecodeRecord(text); err != nil {
		t.Error(err)
	}
	if _, _, err := history.ReadHistory(strings.NewReader(`{"id":"e","history":[` + string(text) + `]}`)); err != nil {
		t.Error(err)
	}
}

func TestDecodeFields_RefusesWhatIsNoObject(t *testing.T) {
	for _, fields := range []string{"", "{", `{"`, `"{}"`, "null", `{"step":"a"`} {
		if e, err := history.DecodeFields(history.TypeTimerFired, fields); err == nil {
			t.Errorf("%q: expected an error, got %#v", fields, e)
		}
	}
}

func TestReadHistory_TakesEachForm(t *testing.T) {
	events := []string{`{"seq":1,"timestamp_ms":10,"type":"WorkflowStarted"}`, `{"seq":2,"timestamp_ms":20,"type":"TimerFired","step":"a"}`}
	want := number([]history.Event{history.WorkflowStarted{}, history.TimerFired{Step: "a"}})
	tests := []struct{ form, text, id string }{
		{"an array", "[" + strings.Join(events, ",\n") + "]", ""},
		{"lines", strings.Join(events, "\n"), ""},
		{"lines with empty ones", "\n" + strings.Join(events, "\r\n\r\n") + "\n\n", ""},
		{"an id and a history", `{"id": "e-1", "history": [` + strings.Join(events, ",") + `]}`, "e-1"},
		{"the answer of the API", `{"events":[` + strings.Join(events, ",") + `],"next_after_seq":2}`, ""},
		{"the answer of the API with an id", `{"execution_id":"e-2","events":[` + strings.Join(events, ",") + `]}`, "e-2"},
	}
	for _, tt := range tests {
		t.Run(tt.form, func(t *testing.T) {
			id, got, err := history.ReadHistory(strings.NewReader(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if id != tt.id {
				t.Errorf("expected the id %q, got %q", tt.id, id)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a single line", func(t *testing.T) {
		_, got, err := history.ReadHistory(strings.NewReader(events[0]))
		if diff := cmp.Diff(want[:1], got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	})
	t.Run("no event", func(t *testing.T) {
		_, got, err := history.ReadHistory(strings.NewReader("[]"))
		if len(got) != 0 || err != nil {
			t.Errorf("expected nothing, got %v, %v", got, err)
		}
	})
}

func TestReadHistory_NamesThePlace(t *testing.T) {
	good := `{"seq":1,"timestamp_ms":10,"type":"WorkflowStarted"}`
	tests := []struct{ text, want string }{
		{``, "expected a JSON value"},
		{`7`, "expected an array of events, an object with a history or a line for each event, got number"},
		{`{"workflows":[]}`, `expected a member "type"`},
		{`[` + good + `,{"type":1}]`, `element 1: decode event 0 : member "type": expected a string, got 1`},
		{good + "\n" + good[:20], "line 2: decode event: JSON"},
		{`{"id":"e","history":[` + good, "expected a comma or ]"},
		{"[\n" + good + ",\n", "expected a JSON value, got the end"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			_, _, err := history.ReadHistory(strings.NewReader(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("expected an error with %q, got %v", tt.want, err)
			}
		})
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for _, e := range []history.Event{created, scheduled, dispatched, succeeded, history.Unknown{Name: "New", Data: `{"a":1}`}} {
		f.Add(history.AppendEvent(nil, history.Record{Seq: 1, TimestampMS: 2, Event: e}))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := history.DecodeRecord(text)
		if err != nil {
			return
		}
		first := history.AppendEvent(nil, r)
		again, err := history.DecodeRecord(first)
		if err != nil {
			t.Fatalf("%s was written as %s, which is not read: %v", text, first, err)
		}
		if diff := cmp.Diff(string(first), string(history.AppendEvent(nil, again))); diff != "" {
			t.Errorf("not stable (-first +second):\n%s", diff)
		}
		fields := string(history.AppendFields(nil, r.Event))
		if e, err := history.DecodeFields(r.Event.Type(), fields); err != nil || !cmp.Equal(again.Event, e) {
			t.Errorf("stored as %s: read as %#v, %v", fields, e, err)
		}
	})
}

func FuzzReadHistory(f *testing.F) {
	line := string(history.AppendEvent(nil, history.Record{Seq: 1, TimestampMS: 2, Event: created}))
	f.Add(line + "\n" + line)
	f.Add("[" + line + "]")
	f.Add(`{"id":"e","history":[` + line + `]}`)
	f.Fuzz(func(t *testing.T, text string) {
		id, records, err := history.ReadHistory(strings.NewReader(text))
		if err != nil {
			return
		}
		s := history.Fold(id, records)
		snapshot := string(s.AppendSnapshot(nil))
		if _, err := exactjson.ParseDepth([]byte(snapshot), exactjson.MaxDepth+8); err != nil {
			t.Fatalf("the snapshot is no JSON: %v\n%s", err, snapshot)
		}
		read, err := history.ReadSnapshot(snapshot)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(snapshot, string(read.AppendSnapshot(nil))); diff != "" {
			t.Errorf("snapshot (-want +got):\n%s", diff)
		}
	})
}
