package history

import (
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"perigee/engine/exactjson"
)

// The codes of failures made by the engine that leave open whether the task was
// done; see Unit.OutcomeUnknown.
const (
	codeTimeout         = "TIMEOUT"
	codeWorkerLost      = "WORKER_LOST"
	codeUncertain       = "UNCERTAIN"
	codeOutputContract  = "OUTPUT_CONTRACT_VIOLATION"
	codePayloadTooLarge = "PAYLOAD_TOO_LARGE"
	codeLimitExceeded   = "LIMIT_EXCEEDED"
)

// ReasonUnregistered is the reason of a StepAttemptUncertain that is no loss:
// the worker said that it leaves.
const ReasonUnregistered = "worker unregistered"

// New is the state of an execution of which nothing has happened yet.
func New(id string) *State {
	return &State{
		ID:        id,
		Input:     exactjson.Null,
		Status:    Running,
		units:     btree.NewMap[string, *unit](0),
		signals:   btree.NewMap[uint64, *Signal](0),
		untaken:   btree.NewMap[string, uint64](0),
		signalIDs: btree.NewMap[string, uint64](0),
	}
}

// Fold is the state after all of records, which start at seq 1.
func Fold(id string, records []Record) *State {
	s := New(id)
	s.ApplyAll(records)
	return s
}

// Clone is an independent copy in constant time.
func (s *State) Clone() *State {
	c := *s
	c.units = s.units.Copy()
	c.signals = s.signals.Copy()
	c.untaken = s.untaken.Copy()
	c.signalIDs = s.signalIDs.Copy()
	return &c
}

// Apply folds one event into s. It takes every event in every state: guards
// belong to the decision. Units and slices obtained before stay as they were.
func (s *State) Apply(r Record) {
	s.batch++
	s.apply(r)
}

// ApplyAll is Apply for each of records, with one copy of each unit concerned.
func (s *State) ApplyAll(records []Record) {
	s.batch++
	// A unit takes about three events. What is left over must not be shared by
	// a clone.
	s.chunk = min(unitChunk, len(records)/3)
	for _, r := range records {
		s.apply(r)
	}
	s.chunk, s.spare = 0, nil
}

// unitChunk bounds how many units are made at a time: one that is kept keeps
// its neighbours' memory.
const unitChunk = 32

// newUnit is an empty unit of the present batch.
func (s *State) newUnit() *unit {
	if s.chunk == 0 {
		return &unit{mark: s.batch}
	}
	if len(s.spare) == 0 {
		s.spare = make([]unit, s.chunk)
	}
	u := &s.spare[0]
	s.spare = s.spare[1:]
	u.mark = s.batch
	return u
}

// edit is the unit under key, made if need be, in a copy that only the present
// batch holds.
func (s *State) edit(key string) *unit {
	if s.last != nil && s.last.mark == s.batch && s.lastKey == key {
		return s.last
	}
	if u, ok := s.units.Get(key); ok && u.mark == s.batch {
		s.last, s.lastKey = u, key
		return u
	}
	return s.begin(key)
}

// begin is edit for a unit that the present batch most likely has not seen: it
// goes down the tree once and not twice. Where the batch has, a copy too many
// is made.
func (s *State) begin(key string) *unit {
	u := s.newUnit()
	if before, ok := s.units.Set(key, u); ok {
		u.Unit = before.Unit
		u.Tokens = slices.Clip(before.Tokens)
	}
	s.last, s.lastKey = u, key
	return u
}

// pending is every unit of which nothing has happened. Its mark is that of no
// batch, so that it is never changed.
var pending = &unit{}

func (s *State) expect(key string) {
	if _, ok := s.units.Get(key); !ok {
		s.units.Set(key, pending)
	}
}

func (s *State) apply(r Record) {
	s.LastSeq = r.Seq
	s.UpdatedAtMS = r.TimestampMS
	// Events of one commit have one time, so they can share its copy.
	if s.at == nil || *s.at != r.TimestampMS {
		s.at = new(r.TimestampMS)
	}
	at := s.at
	switch e := r.Event.(type) {
	case WorkflowStarted:
	case StepScheduled:
		if e.Attempt > 1 || e.Redelivery {
			s.edit(e.Step).scheduled(e, at)
		} else {
			s.begin(e.Step).scheduled(e, at)
		}
	case StepDispatched:
		s.edit(e.Step).dispatched(&e, r.Seq, at)
	case StepSucceeded:
		u := s.edit(e.Step)
		u.succeeded(e.Output, r.Seq, at)
		u.Attempt, u.Token, u.SucceededBy = e.Attempt, nil, e.Token
	case StepAttemptFailed:
		s.edit(e.Step).attemptFailed(e, at)
	case StepAttemptUncertain:
		s.edit(e.Step).uncertain(e)
	case RetryScheduled:
		u := s.edit(e.Step)
		u.Status, u.WakeAtMS = UnitRetryWait, &e.FireAtMS
		u.setAttempt(e.NextAttempt)
	case StepFanOut:
		s.fanOut(e, at)
	case StepSkipped:
		u := s.edit(e.Step)
		u.Status, u.Output, u.FinishedAtMS = UnitSkipped, exactjson.Null, at
	case StepFailed:
		s.stepFailed(e, at)
	case StepRecovered:
		s.edit(e.Step).recovered(e, at)
	case StepCancelled:
		u := s.edit(e.Step)
		u.Status, u.FinishedAtMS, u.Token = UnitCancelled, at, nil
	case TimerStarted:
		s.edit(e.Step).wait(&e.FireAtMS, at)
	case TimerFired:
		s.edit(e.Step).succeeded(exactjson.EmptyObject, r.Seq, at)
	case SignalReceived:
		s.receive(e, r.Seq, at)
	case SignalAwaitStarted:
		u := s.edit(e.Step)
		u.Signal = e.Signal
		u.wait(e.DeadlineMS, at)
	case SignalDelivered:
		s.edit(e.Step).succeeded(s.take(e), r.Seq, at)
	case StaleResultIgnored:
		if s.has(e.Step) {
			s.edit(e.Step).StaleRecorded++
		}
	case AttemptProgress:
		if s.has(e.Step) {
			u := s.edit(e.Step)
			u.Progress, u.ProgressAtMS = e.Details.OrNull(), *at
		}
	default:
		s.applyWide(r.Event, at)
	}
}

// applyWide folds what concerns the whole execution.
func (s *State) applyWide(event Event, at *int64) {
	switch e := event.(type) {
	case WorkflowCreated:
		s.created(e, at)
	case CancelRequested:
		s.abort(Abort{Kind: AbortCancelled, Reason: e.Reason, AtMS: *at})
	case WorkflowTimeoutReached:
		s.abort(Abort{Kind: AbortTimedOut, AtMS: *at})
	case LimitExceeded:
		s.abort(Abort{Kind: AbortFailed, Error: &TaskError{Code: codeLimitExceeded, Message: e.Message}, AtMS: *at})
	case CompensationStarted:
		s.Status, s.CompensationOrder = Compensating, e.Steps
		for _, step := range e.Steps {
			s.expect(CompensationKey(step))
		}
	case CompensationCompleted:
		s.Compensation = new(CompensationDone)
	case CompensationFailed:
		s.Compensation = new(CompensationHasFails)
	case HandlersStarted:
		s.Handlers = &HandlerPhase{Kind: e.Kind, Compensation: e.Compensation}
	case WorkflowCompleted:
		s.Status, s.Output, s.FinishedAtMS = Completed, e.Output.OrNull(), at
	case WorkflowFailed:
		s.Error = &e.Error
		s.finish(Failed, e.Compensation, at)
	case WorkflowCancelled:
		s.finish(Cancelled, e.Compensation, at)
	case WorkflowTimedOut:
		s.finish(TimedOut, e.Compensation, at)
	case Unknown:
		s.Unknown++
	}
}

func (s *State) created(e WorkflowCreated, at *int64) {
	s.Parent = e.Parent
	s.Workflow, s.Version, s.DefinitionHash = e.Workflow, e.Version, e.DefinitionHash
	s.Input = e.Input.OrNull()
	s.CreatedAtMS = *at
	s.Status = Running
}

func (s *State) finish(status Status, outcome CompensationOutcome, at *int64) {
	s.Status, s.Compensation, s.FinishedAtMS = status, &outcome, at
}

// abort begins the winding down; only the first reason counts.
func (s *State) abort(a Abort) {
	if s.Abort == nil {
		s.Abort = &a
	}
}

func (s *State) stepFailed(e StepFailed, at *int64) {
	u := s.edit(e.Step)
	u.Status, u.Error, u.FinishedAtMS, u.Token = UnitFailed, &e.Error, at, nil
	if s.Abort != nil || strings.HasPrefix(e.Step, compensationPrefix) {
		return
	}
	reason := e.Error
	reason.Message = "step `" + e.Step + "` failed: " + reason.Message
	s.abort(Abort{Kind: AbortFailed, Error: &reason, AtMS: *at})
}

// fanOut makes the elements of a `for` step.
func (s *State) fanOut(e StepFanOut, at *int64) {
	u := s.edit(e.Step)
	u.Status, u.Attempt, u.ScheduledAtMS = UnitRunning, 1, at
	u.Input, u.Items = exactjson.Array(e.Items), len(e.Items)
	for i := range e.Items {
		s.expect(ElementKey(e.Step, i))
	}
}

// setAttempt moves a unit to an attempt. Losses are counted for each anew.
func (u *Unit) setAttempt(n uint32) {
	if n != u.Attempt {
		u.Losses = 0
	}
	u.Attempt = n
}

func (u *unit) scheduled(e StepScheduled, at *int64) {
	u.Status = UnitScheduled
	u.setAttempt(e.Attempt)
	u.room.key = e.IdempotencyKey
	u.Input, u.IdempotencyKey, u.Redelivery = e.Input.OrNull(), &u.room.key, e.Redelivery
	u.ScheduledAtMS = at
	u.Token, u.DeadlineMS, u.WakeAtMS = nil, nil, nil
}

func (u *unit) dispatched(e *StepDispatched, seq uint64, at *int64) {
	issued := IssuedToken{Token: e.Token, Attempt: e.Attempt}
	if len(u.Tokens) > 0 {
		u.Tokens = append(u.Tokens, issued) // not in the room: its list is full
	}
	u.room.issued[0], u.room.worker, u.room.session = issued, e.WorkerID, e.WorkerSession
	if len(u.Tokens) == 0 {
		u.Tokens = u.room.issued[:]
	}
	u.Status, u.Attempt = UnitDispatched, e.Attempt
	u.Token, u.WorkerID, u.WorkerSession = &u.room.issued[0].Token, &u.room.worker, &u.room.session
	u.DispatchedAtMS, u.DeadlineMS = at, e.DeadlineMS
	u.DispatchCount++
	u.LastDispatchSeq = seq
}

func (u *unit) succeeded(output exactjson.Value, seq uint64, at *int64) {
	u.Status, u.Output, u.SucceededBy = UnitSucceeded, output.OrNull(), ""
	u.room.succeededSeq = seq
	u.FinishedAtMS, u.SucceededSeq = at, &u.room.succeededSeq
	u.WakeAtMS = nil
}

// recovered leaves SucceededSeq unset: what a catch clause took was no success
// and is not compensated as one.
func (u *Unit) recovered(e StepRecovered, at *int64) {
	u.Status, u.Output, u.Error, u.Recovered = UnitSucceeded, e.Output.OrNull(), &e.Error, true
	u.FinishedAtMS, u.SucceededSeq = at, nil
	u.Token, u.WakeAtMS, u.SucceededBy = nil, nil, ""
}

func (u *Unit) wait(wakeAtMS *int64, at *int64) {
	u.Status, u.Attempt = UnitWaiting, 1
	u.WakeAtMS, u.ScheduledAtMS = wakeAtMS, at
}

func (u *Unit) uncertain(e StepAttemptUncertain) {
	u.Status, u.Token = UnitUncertain, nil
	u.OutcomeUnknown = true
	if e.Reason != ReasonUnregistered {
		u.Losses++
	}
}

func (u *Unit) attemptFailed(e StepAttemptFailed, at *int64) {
	u.Status, u.LastError, u.Token = UnitAttemptFailed, &e.Error, nil
	u.FailedAtMS, u.RetryAfterMS = *at, e.RetryAfterMS
	if e.Token == "" {
		u.OutcomeUnknown = u.OutcomeUnknown || u.DispatchCount > 0 && leavesOpen(e.Error.Code)
		return
	}
	u.recordFailure(e)
}

// leavesOpen says of a failure that the engine made whether the worker may have
// done the task all the same. A worker may report these codes itself; that is
// then an outcome like any other.
func leavesOpen(code string) bool {
	switch code {
	case codeTimeout, codeWorkerLost, codeUncertain, codeOutputContract, codePayloadTooLarge:
		return true
	}
	return false
}
