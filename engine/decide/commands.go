package decide

import (
	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// Reasons of an ack that is not accepted, as the worker protocol names them.
const (
	UnknownToken    = "unknown token (execution finished or token invalid)"
	DuplicateResult = "duplicate result; step already resolved"
	StaleAttempt    = "stale attempt"
	BrokenContract  = "output violates the task contract"
)

// maxStaleRecorded bounds the StaleResultIgnored events of one unit.
const maxStaleRecorded = 10

// Result is what was reported of an attempt.
type Result struct {
	Output       exactjson.Value    // of a success; "" means {}
	Error        *history.TaskError // of a failure
	RetryAfterMS *int64
	// Refused is set where the output could not be taken as it is (too large,
	// not JSON): the attempt fails with it.
	Refused *history.TaskError
}

// Ack is the answer to a result.
type Ack struct {
	Accepted bool
	Reason   string
}

// Create begins an execution's history.
func (m *Machine) Create(e history.WorkflowCreated) {
	m.emit(e)
	m.emit(history.WorkflowStarted{})
}

// Result takes in a worker's result, by the seven cases of docs/semantics.md.
func (m *Machine) Result(unit, token string, r Result) Ack {
	u := m.state.Unit(unit)
	attempt, issued := uint32(0), false
	if u != nil && !u.WithChild() { // what stands for a child's token is no secret
		attempt, issued = u.AttemptOf(token)
	}
	if !issued { // 1
		return Ack{Reason: UnknownToken}
	}
	outcome := m.check(unit, r)
	if !outcome.refused && u.Recorded(token, history.Result{Output: outcome.output, Error: outcome.fail, RetryAfterMS: r.RetryAfterMS}) { // 2
		return Ack{Accepted: true}
	}
	current := u.Token != nil && *u.Token == token
	switch {
	case m.state.Status.Terminal(): // 3
		return Ack{Reason: UnknownToken}
	case u.Status.Resolved(): // 4
		m.ignore(u, unit, token, history.OutcomeDuplicate)
		return Ack{Reason: DuplicateResult}
	case !outcome.success && !current: // 5
		m.ignore(u, unit, token, history.OutcomeFailure)
		return Ack{Reason: StaleAttempt}
	case outcome.success: // 6
		m.emit(history.StepSucceeded{Step: unit, Attempt: attempt, Output: outcome.output, Token: token})
		return Ack{Accepted: true}
	}
	if outcome.refused { // 6 with a broken contract: a failure of our own making
		m.emit(history.StepAttemptFailed{Step: unit, Attempt: attempt, Error: *outcome.fail})
		return Ack{Reason: BrokenContract}
	}
	m.emit(history.StepAttemptFailed{Step: unit, Attempt: attempt, Error: *outcome.fail, Token: token, RetryAfterMS: r.RetryAfterMS}) // 7
	return Ack{Accepted: true}
}

type checked struct {
	success bool
	output  exactjson.Value // with defaults
	fail    *history.TaskError
	refused bool // fail is ours: the output was no good
}

// check holds a result against the contract of its task.
func (m *Machine) check(unit string, r Result) checked {
	if r.Refused != nil {
		return checked{fail: r.Refused, refused: true}
	}
	if r.Error != nil {
		return checked{fail: r.Error}
	}
	output := r.Output
	if output.IsNull() {
		output = exactjson.EmptyObject
	}
	place, ok := m.locate(unit)
	if c := m.call(place); ok && c != nil && c.Task != nil {
		filled, violations := c.Task.Output.Apply(output)
		if len(violations) > 0 {
			return checked{fail: failure(CodeOutputContract, "output of %s@%s at %s", c.Task.Name, c.Task.Version, describe(violations)), refused: true}
		}
		output = filled
	}
	if limit := m.limits.MaxPayloadBytes; limit > 0 && len(output) > limit {
		return checked{fail: failure(CodePayloadTooLarge, "the output has %d bytes; the limit is %d (max_payload_bytes)", len(output), limit), refused: true}
	}
	return checked{success: true, output: output}
}

// CheckResult is the part of Result that needs only the definition: what a
// result that goes to the inbox will be recorded as.
func (m *Machine) CheckResult(unit string, r Result) (success bool, output exactjson.Value, fail *history.TaskError, refused bool) {
	c := m.check(unit, r)
	return c.success, c.output, c.fail, c.refused
}

func (m *Machine) ignore(u *history.Unit, unit, token, outcome string) {
	if u.StaleRecorded < maxStaleRecorded {
		m.emit(history.StaleResultIgnored{Step: unit, Token: token, Outcome: outcome})
	}
}

// Signal buffers a signal and gives its sequence number.
func (m *Machine) Signal(name string, payload exactjson.Value, id string) uint64 {
	m.emit(history.SignalReceived{Name: name, Payload: payload, SignalID: id})
	return m.state.LastSeq
}

// Cancel asks the execution to wind down; nothing where it already does.
func (m *Machine) Cancel(reason string) {
	if !m.aborting() && !m.state.Status.Terminal() {
		m.emit(history.CancelRequested{Reason: reason})
	}
}

// Dispatch hands a ready unit to a worker; false where it is not ready.
func (m *Machine) Dispatch(unit string, e history.StepDispatched) bool {
	u := m.state.Unit(unit)
	if u == nil || u.Status != history.UnitScheduled || m.state.Status.Terminal() {
		return false
	}
	e.Step, e.Attempt = unit, u.Attempt
	m.emit(e)
	return true
}

// Lost records that the outcome of the attempt under way is unknown; nothing
// where token is not the current one.
func (m *Machine) Lost(unit, token, reason string) bool {
	u := m.state.Unit(unit)
	if u == nil || u.Token == nil || *u.Token != token || m.state.Status.Terminal() {
		return false
	}
	m.emit(history.StepAttemptUncertain{Step: unit, Attempt: u.Attempt, Reason: reason})
	return true
}

// progressIntervalMS is how often progress of one unit is recorded at most.
const progressIntervalMS = 1000

// Progress records what a worker says of an attempt under way. It reports
// whether the token is the current one.
func (m *Machine) Progress(unit, token string, details exactjson.Value) bool {
	u := m.state.Unit(unit)
	if u == nil || u.WithChild() || u.Token == nil || *u.Token != token || m.state.Status.Terminal() {
		return false
	}
	if u.ProgressAtMS == 0 || m.now >= addMS(u.ProgressAtMS, progressIntervalMS) {
		m.emit(history.AttemptProgress{Step: unit, Token: token, Details: details.OrNull()})
	}
	return true
}

// Query evaluates a declared query on the state as it is.
func (m *Machine) Query(name string) (value exactjson.Value, declared bool, fail *history.TaskError) {
	p := m.def.Queries[name]
	if p == nil {
		return "", false, nil
	}
	value, fail = m.evaluate(p, m.baseVars(), "query "+name)
	return value.OrNull(), true, fail
}
