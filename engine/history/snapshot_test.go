package history_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"perigee/engine/history"
)

// sameFromSnapshot folds records in one go and by way of a snapshot after the
// first k, and compares all that either holds.
func sameFromSnapshot(tb interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
}, id string, records []history.Record, k int) {
	tb.Helper()
	whole := history.Fold(id, records)
	read, err := history.ReadSnapshot(string(history.Fold(id, records[:k]).AppendSnapshot(nil)))
	if err != nil {
		tb.Fatal(err)
	}
	read.ApplyAll(records[k:])
	if diff := cmp.Diff(string(whole.AppendJSON(nil)), string(read.AppendJSON(nil))); diff != "" {
		tb.Errorf("served state after a snapshot at %d (-whole +snapshot):\n%s", k, diff)
	}
	if diff := cmp.Diff(string(whole.AppendSnapshot(nil)), string(read.AppendSnapshot(nil))); diff != "" {
		tb.Errorf("snapshot after a snapshot at %d (-whole +snapshot):\n%s", k, diff)
	}
}

func TestSnapshot_TheRestFoldsOntoItLikeOntoTheHistory(t *testing.T) {
	for _, v := range vectors(t) {
		for k := 0; k <= len(v.records); k += 1 + len(v.records)/4 {
			sameFromSnapshot(t, v.id, v.records, k)
		}
	}
}

func TestSnapshot_AnyHistoryMayBeCutAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := anyHistory.Draw(t, "history")
		sameFromSnapshot(t, "e", records, rapid.IntRange(0, len(records)).Draw(t, "cut"))
	})
}

func TestFold_IsTotalAndTheSameEventByEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := anyHistory.Draw(t, "history")
		whole := history.Fold("e", records)
		single := history.New("e")
		for i, r := range records {
			if i%3 == 0 {
				single = single.Clone()
			}
			before := string(single.AppendSnapshot(nil))
			other := single.Clone()
			other.ApplyAll(records[i:])
			if diff := cmp.Diff(before, string(single.AppendSnapshot(nil))); diff != "" {
				t.Fatalf("a clone changed its original (-want +got):\n%s", diff)
			}
			single.Apply(r)
		}
		if diff := cmp.Diff(string(whole.AppendSnapshot(nil)), string(single.AppendSnapshot(nil))); diff != "" {
			t.Errorf("ApplyAll and Apply differ (-all +single):\n%s", diff)
		}
	})
}

func TestFold_IsTheSameBeforeAndAfterStorage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := anyHistory.Draw(t, "history")
		stored := make([]history.Record, len(records))
		for i, r := range records {
			e, err := history.DecodeFields(r.Event.Type(), string(history.AppendFields(nil, r.Event)))
			if err != nil {
				t.Fatal(err)
			}
			stored[i] = history.Record{Seq: r.Seq, TimestampMS: r.TimestampMS, Event: e}
		}
		want, got := history.Fold("e", records), history.Fold("e", stored)
		if diff := cmp.Diff(string(want.AppendSnapshot(nil)), string(got.AppendSnapshot(nil))); diff != "" {
			t.Errorf("state (-decided +stored):\n%s", diff)
		}
	})
}

func TestSnapshot_KeepsWhatIsNotServed(t *testing.T) {
	s := fold(created, scheduled, dispatched,
		history.StepAttemptFailed{Step: "a", Attempt: 1, Error: declined, Token: "t1", RetryAfterMS: new(int64(30))},
		history.StepAttemptUncertain{Step: "a", Attempt: 1, Reason: "never received"},
		history.StaleResultIgnored{Step: "a"}, history.AttemptProgress{Step: "a", Details: "50"},
		history.SignalAwaitStarted{Step: "b", Signal: "go"}, history.StepFanOut{Step: "c"},
		history.StepRecovered{Step: "d"}, history.StepSucceeded{Step: "f", Token: "t9"},
		history.SignalReceived{Name: "go", SignalID: "x"}, history.CancelRequested{}, history.Unknown{Name: "New", Data: "{}"})
	read, err := history.ReadSnapshot(string(s.AppendSnapshot(nil)))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range s.Units() {
		if diff := cmp.Diff(want, read.Unit(key)); diff != "" {
			t.Errorf("unit %s (-want +got):\n%s", key, diff)
		}
	}
	if diff := cmp.Diff(s.Abort, read.Abort); diff != "" {
		t.Errorf("abort (-want +got):\n%s", diff)
	}
	if _, ok := read.SignalByID("x"); !ok || read.Unknown != 1 {
		t.Error("expected the signal's id and the count of unknown events to be kept")
	}
	if !read.Unit("a").Recorded("t1", history.Result{Error: &declined, RetryAfterMS: new(int64(30))}) {
		t.Error("expected the failure that t1 recorded to be kept")
	}
}

func TestReadSnapshot_RefusesAnotherFormat(t *testing.T) {
	good := string(fold(created, scheduled).AppendSnapshot(nil))
	for _, text := range []string{"", "{}", "null", "[]", strings.Replace(good, `"format":1`, `"format":2`, 1), strings.Replace(good, `"format":1`, `"format":"1"`, 1)} {
		if _, err := history.ReadSnapshot(text); !errors.Is(err, history.ErrFormat) {
			t.Errorf("%.40q: expected ErrFormat, got %v", text, err)
		}
	}
}

func TestReadSnapshot_OfADamagedTextIsAnErrorOrAState(t *testing.T) {
	good := string(fold(created, scheduled, dispatched, succeeded, history.SignalReceived{Name: "go"}, history.CancelRequested{}).AppendSnapshot(nil))
	for i := range good {
		_, _ = history.ReadSnapshot(good[:i])
		_, _ = history.ReadSnapshot(good[:i] + "}")
		_, _ = history.ReadSnapshot(good[:i] + good[i+1:])
	}
	if _, err := history.ReadSnapshot(strings.Replace(good, `"SUCCEEDED"`, `"LOST"`, 1)); err == nil {
		t.Error("expected an error for a status that there is not")
	}
}

func FuzzReadSnapshot(f *testing.F) {
	f.Add(string(fold(created, scheduled, dispatched, succeeded, history.SignalReceived{Name: "go"}, history.CancelRequested{}).AppendSnapshot(nil)))
	f.Add(`{"format":1,"units":{"a":{"tokens":[["t",1]]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := history.ReadSnapshot(text)
		if err != nil {
			return
		}
		s.Clone().ApplyAll(number([]history.Event{scheduled, dispatched, succeeded}))
		s.AppendJSON(nil)
	})
}
