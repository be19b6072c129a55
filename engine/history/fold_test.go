package history_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// at is the time of record seq in these tests: 10 ms apart.
func at(seq uint64) int64 { return int64(seq) * 10 }

// fold numbers events from 1 and folds them.
func fold(events ...history.Event) *history.State {
	return history.Fold("e", number(events))
}

func number(events []history.Event) []history.Record {
	records := make([]history.Record, len(events))
	for i, e := range events {
		seq := uint64(i + 1)
		records[i] = history.Record{Seq: seq, TimestampMS: at(seq), Event: e}
	}
	return records
}

var (
	created    = history.WorkflowCreated{Workflow: "w", Version: "1.0.0", DefinitionHash: "sha256:1", Input: `{"n":1}`}
	scheduled  = history.StepScheduled{Step: "a", Attempt: 1, Input: `{"x":1}`, IdempotencyKey: "e/a"}
	dispatched = history.StepDispatched{Step: "a", Attempt: 1, Token: "t1", WorkerID: "w1", WorkerSession: "s1", DeadlineMS: new(int64(500))}
	succeeded  = history.StepSucceeded{Step: "a", Attempt: 1, Output: `{"y":2}`, Token: "t1"}
	declined   = history.TaskError{Code: "DECLINED", Message: "no money", Retryable: true, Details: `{"left":0}`}
)

// waiting is the unit a after scheduled at seq 1.
func waiting() history.Unit {
	return history.Unit{Status: history.UnitScheduled, Attempt: 1, Input: `{"x":1}`, IdempotencyKey: new("e/a"), ScheduledAtMS: new(at(1))}
}

// running is the unit a after scheduled and dispatched at seq 1 and 2.
func running() history.Unit {
	u := waiting()
	u.Status = history.UnitDispatched
	u.DispatchedAtMS, u.DeadlineMS = new(at(2)), new(int64(500))
	u.WorkerID, u.WorkerSession, u.Token = new("w1"), new("s1"), new("t1")
	u.Tokens = []history.IssuedToken{{Token: "t1", Attempt: 1}}
	u.DispatchCount, u.LastDispatchSeq = 1, 2
	return u
}

// with is a changed copy of a unit.
func with(u history.Unit, change func(u *history.Unit)) history.Unit {
	change(&u)
	return u
}

func TestApply_EachUnitEventHasItsEffect(t *testing.T) {
	events := func(e ...history.Event) []history.Event { return e }
	tests := []struct {
		rule   string
		events []history.Event
		want   history.Unit // named a
	}{
		{"StepScheduled makes the unit ready", events(scheduled), waiting()},
		{"StepDispatched gives it to a worker and keeps the token", events(scheduled, dispatched), running()},
		{"StepSucceeded resolves it", events(scheduled, dispatched, succeeded), with(running(), func(u *history.Unit) {
			u.Status, u.Output, u.SucceededBy = history.UnitSucceeded, `{"y":2}`, "t1"
			u.FinishedAtMS, u.SucceededSeq, u.Token = new(at(3)), new(uint64(3)), nil
		})},
		{"StepAttemptUncertain leaves the outcome open", events(scheduled, dispatched, history.StepAttemptUncertain{Step: "a", Attempt: 1, Reason: "never received"}),
			with(running(), func(u *history.Unit) {
				u.Status, u.Token, u.OutcomeUnknown, u.Losses = history.UnitUncertain, nil, true, 1
			})},
		{"StepScheduled as a redelivery clears what the attempt in flight had",
			events(scheduled, dispatched, history.StepScheduled{Step: "a", Attempt: 1, Input: `{"x":1}`, IdempotencyKey: "e/a", Redelivery: true}),
			with(running(), func(u *history.Unit) {
				u.Status, u.Redelivery, u.ScheduledAtMS = history.UnitScheduled, true, new(at(3))
				u.Token, u.DeadlineMS = nil, nil
			})},
		{"RetryScheduled waits for the next attempt", events(scheduled, history.RetryScheduled{Step: "a", NextAttempt: 2, DelayMS: 5, FireAtMS: 99}),
			with(waiting(), func(u *history.Unit) {
				u.Status, u.Attempt, u.WakeAtMS = history.UnitRetryWait, 2, new(int64(99))
			})},
		{"StepSkipped has the output null", events(history.StepSkipped{Step: "a", Reason: "condition is false"}),
			history.Unit{Status: history.UnitSkipped, Output: exactjson.Null, FinishedAtMS: new(at(1))}},
		{"StepFailed keeps the error", events(history.StepFailed{Step: "a", Error: declined}),
			history.Unit{Status: history.UnitFailed, Error: &declined, FinishedAtMS: new(at(1))}},
		{"StepCancelled takes the token away", events(scheduled, dispatched, history.StepCancelled{Step: "a"}), with(running(), func(u *history.Unit) {
			u.Status, u.FinishedAtMS, u.Token = history.UnitCancelled, new(at(3)), nil
		})},
		{"StepRecovered succeeds without a succeeded_seq", events(scheduled, dispatched, history.StepRecovered{Step: "a", Error: declined, Output: `{"declined":true}`}),
			with(running(), func(u *history.Unit) {
				u.Status, u.Output, u.Error, u.Recovered = history.UnitSucceeded, `{"declined":true}`, &declined, true
				u.FinishedAtMS, u.Token = new(at(3)), nil
			})},
		{"TimerStarted waits", events(history.TimerStarted{Step: "a", FireAtMS: 70}),
			history.Unit{Status: history.UnitWaiting, Attempt: 1, WakeAtMS: new(int64(70)), ScheduledAtMS: new(at(1))}},
		{"TimerFired succeeds with an empty object", events(history.TimerStarted{Step: "a", FireAtMS: 70}, history.TimerFired{Step: "a"}),
			history.Unit{Status: history.UnitSucceeded, Attempt: 1, ScheduledAtMS: new(at(1)), Output: exactjson.EmptyObject, FinishedAtMS: new(at(2)), SucceededSeq: new(uint64(2))}},
		{"SignalAwaitStarted remembers the signal", events(history.SignalAwaitStarted{Step: "a", Signal: "go", DeadlineMS: new(int64(70))}),
			history.Unit{Status: history.UnitWaiting, Attempt: 1, WakeAtMS: new(int64(70)), ScheduledAtMS: new(at(1)), Signal: "go"}},
		{"SignalDelivered succeeds with the payload", events(history.SignalReceived{Name: "go", Payload: "7"}, history.SignalDelivered{Step: "a", SignalSeq: 1}),
			history.Unit{Status: history.UnitSucceeded, Output: "7", FinishedAtMS: new(at(2)), SucceededSeq: new(uint64(2))}},
		{"SignalDelivered of a signal that is not there gives null", events(history.SignalDelivered{Step: "a", SignalSeq: 9}),
			history.Unit{Status: history.UnitSucceeded, Output: exactjson.Null, FinishedAtMS: new(at(1)), SucceededSeq: new(uint64(1))}},
		{"StaleResultIgnored is counted", events(scheduled, history.StaleResultIgnored{Step: "a"}, history.StaleResultIgnored{Step: "a"}),
			with(waiting(), func(u *history.Unit) { u.StaleRecorded = 2 })},
		{"AttemptProgress is kept", events(scheduled, history.AttemptProgress{Step: "a", Details: "50"}),
			with(waiting(), func(u *history.Unit) { u.Progress, u.ProgressAtMS = "50", at(2) })},
		{"StepFanOut runs with the items as its input", events(history.StepFanOut{Step: "a", Items: []exactjson.Value{"1", `"b"`}}),
			history.Unit{Status: history.UnitRunning, Attempt: 1, Input: `[1,"b"]`, ScheduledAtMS: new(at(1)), Items: 2}},
		{"an absent input is null", events(history.StepScheduled{Step: "a"}),
			history.Unit{Status: history.UnitScheduled, Input: exactjson.Null, IdempotencyKey: new(""), ScheduledAtMS: new(at(1))}},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			got := fold(tt.events...).Unit("a")
			if got == nil {
				t.Fatal("there is no unit a")
			}
			if diff := cmp.Diff(tt.want, *got); diff != "" {
				t.Errorf("unit a (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApply_AttemptFailedKeepsTheErrorAndItsDelay(t *testing.T) {
	s := fold(scheduled, dispatched, history.StepAttemptFailed{Step: "a", Attempt: 1, Error: declined, Token: "t1", RetryAfterMS: new(int64(30))})
	got := *s.Unit("a")
	if got.Tokens[0].Failure == "" {
		t.Error("the token has no record of the failure that came with it")
	}
	want := with(running(), func(u *history.Unit) {
		u.Status, u.Token, u.LastError = history.UnitAttemptFailed, nil, &declined
		u.FailedAtMS, u.RetryAfterMS = at(3), new(int64(30))
		u.Tokens = got.Tokens
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unit a (-want +got):\n%s", diff)
	}
}

func TestApply_FanOutMakesPendingElements(t *testing.T) {
	s := fold(history.StepScheduled{Step: "a[1]"}, history.StepFanOut{Step: "a", Items: []exactjson.Value{"1", "2", "3"}})
	if got := maps.Collect(s.Units()); len(got) != 4 {
		t.Fatalf("expected the parent and 3 elements, got %d units", len(got))
	}
	if diff := cmp.Diff(history.Unit{}, *s.Unit("a[2]")); diff != "" {
		t.Errorf("element (-want +got):\n%s", diff)
	}
	if got := s.Unit("a[1]").Status; got != history.UnitScheduled {
		t.Errorf("expected the element that was there to stay as it was, got %s", got)
	}
}

func TestApply_StaleResultsAndProgressMakeNoUnit(t *testing.T) {
	s := fold(history.StaleResultIgnored{Step: "a"}, history.AttemptProgress{Step: "a", Details: "1"})
	if s.Unit("a") != nil {
		t.Error("expected no unit a")
	}
}

func TestApply_LossesAreCountedForEachAttemptAnew(t *testing.T) {
	lost := history.StepAttemptUncertain{Step: "a", Attempt: 1, Reason: "worker `w1` stopped responding"}
	left := history.StepAttemptUncertain{Step: "a", Attempt: 1, Reason: "worker unregistered"}
	again := history.StepScheduled{Step: "a", Attempt: 1, Redelivery: true}
	retry := history.RetryScheduled{Step: "a", NextAttempt: 2}
	tests := []struct {
		rule   string
		events []history.Event
		want   uint32
	}{
		{"each loss counts, over redeliveries", []history.Event{scheduled, lost, again, lost}, 2},
		{"a worker that unregisters is no loss", []history.Event{scheduled, lost, again, left}, 1},
		{"a retry starts at none", []history.Event{scheduled, lost, again, lost, retry}, 0},
		{"so does the attempt that it schedules", []history.Event{scheduled, lost, retry, history.StepScheduled{Step: "a", Attempt: 2}}, 0},
		{"which keeps its own", []history.Event{scheduled, retry, history.StepScheduled{Step: "a", Attempt: 2}, lost, history.StepScheduled{Step: "a", Attempt: 2, Redelivery: true}}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			if got := fold(tt.events...).Unit("a").Losses; got != tt.want {
				t.Errorf("expected %d losses, got %d", tt.want, got)
			}
		})
	}
}

func TestApply_OutcomeIsUnknownOnlyWhereTheEngineSaysSo(t *testing.T) {
	failed := func(code, token string) history.StepAttemptFailed {
		return history.StepAttemptFailed{Step: "a", Attempt: 1, Error: history.TaskError{Code: code}, Token: token}
	}
	tests := []struct {
		rule  string
		event history.Event
		want  bool
	}{
		{"the engine's time-out", failed("TIMEOUT", ""), true},
		{"a lost worker", failed("WORKER_LOST", ""), true},
		{"a lost attempt of an at-most-once step", failed("UNCERTAIN", ""), true},
		{"a refused output", failed("OUTPUT_CONTRACT_VIOLATION", ""), true},
		{"an output that was too large", failed("PAYLOAD_TOO_LARGE", ""), true},
		{"a worker that unregistered", history.StepAttemptUncertain{Step: "a", Reason: "worker unregistered"}, true},
		{"a worker that reports TIMEOUT itself", failed("TIMEOUT", "t1"), false},
		{"a failure that a worker reports", failed("DECLINED", "t1"), false},
		{"another failure of the engine", failed("CHILD_CANCELLED", ""), false},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			if got := fold(scheduled, dispatched, tt.event).Unit("a").OutcomeUnknown; got != tt.want {
				t.Errorf("expected outcome unknown to be %v, got %v", tt.want, got)
			}
		})
	}
	t.Run("nothing that never was with a worker", func(t *testing.T) {
		if fold(scheduled, failed("QUEUE_TIMEOUT", "")).Unit("a").OutcomeUnknown || fold(scheduled, failed("TIMEOUT", "")).Unit("a").OutcomeUnknown {
			t.Error("expected the outcome to be known")
		}
	})
	t.Run("it stays unknown after a later attempt", func(t *testing.T) {
		s := fold(scheduled, dispatched, failed("TIMEOUT", ""), history.StepScheduled{Step: "a", Attempt: 2}, failed("DECLINED", "t1"))
		if !s.Unit("a").OutcomeUnknown {
			t.Error("expected the outcome of the first attempt to stay unknown")
		}
	})
}

func TestApply_TheFirstAbortCounts(t *testing.T) {
	failed := history.StepFailed{Step: "a", Error: declined}
	byFailure := &history.Abort{Kind: history.AbortFailed, AtMS: at(1), Error: &history.TaskError{
		Code: "DECLINED", Message: "step `a` failed: no money", Retryable: true, Details: `{"left":0}`,
	}}
	tests := []struct {
		rule   string
		events []history.Event
		want   *history.Abort
	}{
		{"a failed step", []history.Event{failed, history.CancelRequested{Reason: "late"}}, byFailure},
		{"not a failed compensation", []history.Event{history.StepFailed{Step: "compensate:a", Error: declined}}, nil},
		{"a request", []history.Event{history.CancelRequested{Reason: "why"}, failed}, &history.Abort{Kind: history.AbortCancelled, Reason: "why", AtMS: at(1)}},
		{"the time-out", []history.Event{history.WorkflowTimeoutReached{}, failed}, &history.Abort{Kind: history.AbortTimedOut, AtMS: at(1)}},
		{"a limit", []history.Event{history.LimitExceeded{Limit: "max_fan_out", Message: "too wide"}, failed},
			&history.Abort{Kind: history.AbortFailed, AtMS: at(1), Error: &history.TaskError{Code: "LIMIT_EXCEEDED", Message: "too wide"}}},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, fold(tt.events...).Abort); diff != "" {
				t.Errorf("abort (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApply_ExecutionEventsSetTheState(t *testing.T) {
	outcome := func(o history.CompensationOutcome) *history.CompensationOutcome { return &o }
	tests := []struct {
		rule         string
		event        history.Event
		status       history.Status
		compensation *history.CompensationOutcome
	}{
		{"WorkflowStarted changes nothing", history.WorkflowStarted{}, history.Running, nil},
		{"CompensationStarted compensates", history.CompensationStarted{Reason: history.ReasonFailed, Steps: []string{"a"}}, history.Compensating, nil},
		{"CompensationCompleted", history.CompensationCompleted{}, history.Running, outcome(history.CompensationDone)},
		{"CompensationFailed", history.CompensationFailed{Step: "a", Error: declined}, history.Running, outcome(history.CompensationHasFails)},
		{"WorkflowCompleted", history.WorkflowCompleted{Output: "1"}, history.Completed, nil},
		{"WorkflowFailed", history.WorkflowFailed{Error: declined, Compensation: history.CompensationNone}, history.Failed, outcome(history.CompensationNone)},
		{"WorkflowCancelled", history.WorkflowCancelled{Compensation: history.CompensationDone}, history.Cancelled, outcome(history.CompensationDone)},
		{"WorkflowTimedOut", history.WorkflowTimedOut{Compensation: history.CompensationHasFails}, history.TimedOut, outcome(history.CompensationHasFails)},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			s := fold(created, tt.event)
			if s.Status != tt.status {
				t.Errorf("expected status %s, got %s", tt.status, s.Status)
			}
			if diff := cmp.Diff(tt.compensation, s.Compensation); diff != "" {
				t.Errorf("compensation (-want +got):\n%s", diff)
			}
			if finished := s.FinishedAtMS != nil; finished != tt.status.Terminal() {
				t.Errorf("expected finished to be %v", tt.status.Terminal())
			}
			if s.LastSeq != 2 || s.UpdatedAtMS != at(2) || s.CreatedAtMS != at(1) {
				t.Errorf("got last_seq %d, updated %d, created %d", s.LastSeq, s.UpdatedAtMS, s.CreatedAtMS)
			}
		})
	}
}

func TestApply_CompensationAndHandlersAreAnnounced(t *testing.T) {
	s := fold(created,
		history.CompensationStarted{Reason: history.ReasonFailed, Steps: []string{"b", "a"}},
		history.HandlersStarted{Kind: history.HandlerFailure, Compensation: history.CompensationDone})
	if diff := cmp.Diff([]string{"b", "a"}, s.CompensationOrder); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if s.Unit("compensate:a") == nil || s.Unit("compensate:b") == nil {
		t.Error("expected a unit for each compensation")
	}
	if diff := cmp.Diff(&history.HandlerPhase{Kind: history.HandlerFailure, Compensation: history.CompensationDone}, s.Handlers); diff != "" {
		t.Errorf("handlers (-want +got):\n%s", diff)
	}
}

func TestApply_UnknownEventsAreOnlyCounted(t *testing.T) {
	want := string(fold(created).AppendJSON(nil))
	s := fold(created, history.Unknown{Name: "StepTeleported", Data: `{"step":"a"}`})
	if s.Unknown != 1 {
		t.Errorf("expected 1 unknown event, got %d", s.Unknown)
	}
	s.LastSeq, s.UpdatedAtMS = 1, at(1)
	if diff := cmp.Diff(want, string(s.AppendJSON(nil))); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestUnit_RecordedRecognisesARepeatedReport(t *testing.T) {
	other := declined
	other.Message = "another"
	sameOtherwise := declined
	sameOtherwise.Details = `{"left":0.0}`
	success := fold(scheduled, dispatched, succeeded).Unit("a")
	failure := fold(scheduled, dispatched,
		history.StepAttemptFailed{Step: "a", Attempt: 1, Error: declined, Token: "t1", RetryAfterMS: new(int64(30))},
		history.StepScheduled{Step: "a", Attempt: 2},
		history.StepDispatched{Step: "a", Attempt: 2, Token: "t2"},
		history.StepAttemptFailed{Step: "a", Attempt: 2, Error: other, Token: "t2"}).Unit("a")
	tests := []struct {
		rule   string
		unit   *history.Unit
		token  string
		result history.Result
		want   bool
	}{
		{"the same output", success, "t1", history.Result{Output: `{"y":2.0}`}, true},
		{"another output", success, "t1", history.Result{Output: `{"y":3}`}, false},
		{"another token", success, "t2", history.Result{Output: `{"y":2}`}, false},
		{"no token", success, "", history.Result{Output: `{"y":2}`}, false},
		{"a failure after a success", success, "t1", history.Result{Error: &declined}, false},
		{"the same failure, though it is not the last", failure, "t1", history.Result{Error: &declined, RetryAfterMS: new(int64(30))}, true},
		{"details compare as JSON", failure, "t1", history.Result{Error: &sameOtherwise, RetryAfterMS: new(int64(30))}, true},
		{"another delay", failure, "t1", history.Result{Error: &declined}, false},
		{"another message", failure, "t1", history.Result{Error: &other, RetryAfterMS: new(int64(30))}, false},
		{"the failure of another token", failure, "t2", history.Result{Error: &declined, RetryAfterMS: new(int64(30))}, false},
		{"a success after a failure", failure, "t2", history.Result{Output: `{"y":2}`}, false},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			if got := tt.unit.Recorded(tt.token, tt.result); got != tt.want {
				t.Errorf("expected %v, got %v", tt.want, got)
			}
		})
	}
}

func TestSignals_AreFoundByNameAndID(t *testing.T) {
	s := fold(
		history.SignalReceived{Name: "go", Payload: "1", SignalID: "x"},
		history.SignalReceived{Name: "go\x00stop", Payload: "2"},
		history.SignalReceived{Name: "go", Payload: "3", SignalID: "x"},
		history.SignalDelivered{Step: "a", SignalSeq: 1},
	)
	first := history.Signal{Seq: 1, Name: "go", Payload: "1", ReceivedAtMS: at(1), DeliveredTo: new("a"), ID: "x"}
	second := history.Signal{Seq: 2, Name: "go\x00stop", Payload: "2", ReceivedAtMS: at(2)}
	third := history.Signal{Seq: 3, Name: "go", Payload: "3", ReceivedAtMS: at(3), ID: "x"}

	var all []history.Signal
	for signal := range s.Signals() {
		all = append(all, signal)
	}
	if diff := cmp.Diff([]history.Signal{first, second, third}, all); diff != "" {
		t.Errorf("signals (-want +got):\n%s", diff)
	}
	if got, ok := s.OldestUntaken("go"); !ok || got.Seq != 3 {
		t.Errorf("expected signal 3 to be the oldest untaken, got %d, %v", got.Seq, ok)
	}
	if _, ok := s.OldestUntaken("g"); ok {
		t.Error("expected no untaken signal g")
	}
	if got, ok := s.SignalByID("x"); !ok || got.Seq != 1 {
		t.Errorf("expected the first signal with the id, got %d, %v", got.Seq, ok)
	}
	if _, ok := s.SignalByID(""); ok || s.SignalCount() != 3 {
		t.Errorf("expected 3 signals and none without an id, got %d", s.SignalCount())
	}
}

func TestClone_IsIndependent(t *testing.T) {
	s := fold(created, scheduled, dispatched, history.SignalReceived{Name: "go", Payload: "1"})
	want := string(s.AppendSnapshot(nil))
	before := s.Unit("a")
	left, right := s.Clone(), s.Clone()

	left.ApplyAll([]history.Record{
		{Seq: 5, TimestampMS: 50, Event: history.StepAttemptFailed{Step: "a", Attempt: 1, Error: declined, Token: "t1"}},
		{Seq: 6, TimestampMS: 60, Event: history.StepDispatched{Step: "a", Attempt: 2, Token: "left"}},
		{Seq: 7, TimestampMS: 70, Event: history.SignalDelivered{Step: "b", SignalSeq: 4}},
		{Seq: 8, TimestampMS: 80, Event: history.StepFanOut{Step: "c", Items: make([]exactjson.Value, 200)}},
	})
	wantLeft := string(left.AppendSnapshot(nil))
	right.Apply(history.Record{Seq: 5, TimestampMS: 50, Event: history.StepDispatched{Step: "a", Attempt: 1, Token: "right"}})
	right.Apply(history.Record{Seq: 6, TimestampMS: 60, Event: succeeded})

	if diff := cmp.Diff(want, string(s.AppendSnapshot(nil))); diff != "" {
		t.Errorf("the original changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantLeft, string(left.AppendSnapshot(nil))); diff != "" {
		t.Errorf("one clone changed the other (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]history.IssuedToken{{Token: "t1", Attempt: 1}}, before.Tokens); diff != "" || before.Status != history.UnitDispatched {
		t.Errorf("a unit that was read before changed: %s %s", before.Status, diff)
	}
	if got := right.Unit("a").Tokens; len(got) != 2 || got[1].Token != "right" {
		t.Errorf("expected the tokens t1 and right, got %v", got)
	}
}

func TestApply_LeavesUnitsReadBeforeAsTheyWere(t *testing.T) {
	s := history.New("e")
	var seen []*history.Unit
	for _, r := range number([]history.Event{scheduled, dispatched, succeeded}) {
		s.Apply(r)
		seen = append(seen, s.Unit("a"))
	}
	want := []history.UnitStatus{history.UnitScheduled, history.UnitDispatched, history.UnitSucceeded}
	for i, u := range seen {
		if u.Status != want[i] {
			t.Errorf("after event %d: expected %s, got %s", i+1, want[i], u.Status)
		}
	}
}
