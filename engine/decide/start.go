package decide

import (
	"fmt"
	"slices"

	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/expr"
	"perigee/engine/history"
)

// start begins a step whose predecessors are through (rule 5), or a handler.
func (m *Machine) start(r ref) {
	s, key := m.step(r), m.key(r)
	v := m.vars(r)
	run, fail := m.condition(s, v)
	switch {
	case fail != nil:
		m.fail(r, fail)
		return
	case !run:
		m.emit(history.StepSkipped{Step: key, Reason: "condition is false"})
		return
	}
	if s.For != nil {
		m.fanOut(r, v)
		return
	}
	m.startAction(r, s, v)
}

// condition evaluates a step's own condition and those of the groups around
// it, outermost first; one that is false ends it.
func (m *Machine) condition(s *definition.Step, v *expr.Vars) (bool, *history.TaskError) {
	for _, when := range s.When {
		ok, err := when.Bool(v, m.bounds())
		if err != nil {
			return false, expressionFailure(err, "when")
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// startAction starts one unit: a step without `for`, or one element.
func (m *Machine) startAction(r ref, s *definition.Step, v *expr.Vars) {
	m.started++
	switch s.Kind {
	case definition.KindTask, definition.KindWorkflow:
		m.schedule(r, s.Call, v)
	case definition.KindSleep:
		m.startTimer(r, s, v)
	case definition.KindAwait:
		m.startAwait(r, s, v)
	case definition.KindCompute:
		value, fail := m.evaluate(s.Value, v, "compute")
		if fail != nil {
			m.fail(r, fail)
			return
		}
		m.emit(history.StepSucceeded{Step: m.key(r), Attempt: 1, Output: value.OrNull()})
	case definition.KindFail:
		m.startFail(r, s, v)
	}
}

// schedule puts a call into the queue: its input is evaluated once, here.
func (m *Machine) schedule(r ref, c *definition.Call, v *expr.Vars) {
	input, fail := m.callInput(c, v)
	if fail == nil {
		_, _, fail = m.callTimes(c, v)
	}
	if fail != nil {
		m.fail(r, fail)
		return
	}
	key := m.key(r)
	m.emit(history.StepScheduled{Step: key, Attempt: 1, Input: input, IdempotencyKey: m.idempotencyKey(key)})
}

// callInput evaluates `with`, applies the contract's defaults and checks it.
func (m *Machine) callInput(c *definition.Call, v *expr.Vars) (exactjson.Value, *history.TaskError) {
	input := exactjson.EmptyObject
	if c.With != nil {
		value, fail := m.evaluate(c.With, v, "with")
		if fail != nil {
			return "", fail
		}
		if !value.IsNull() {
			input = value
		}
	}
	if c.Builtin != "" && !m.limits.HTTPRequest {
		return "", failure(CodeAdapterDisabled, "%s is not enabled on this server (--enable-http-adapter)", c.Builtin)
	}
	if c.Task == nil {
		return input, foreignSecret(c, input)
	}
	filled, violations := c.Task.Input.Apply(input)
	if len(violations) > 0 {
		return "", failure(CodeInputContract, "input of %s@%s at %s", c.Task.Name, c.Task.Version, describe(violations))
	}
	if limit := m.limits.MaxPayloadBytes; limit > 0 && len(filled) > limit {
		return "", failure(CodePayloadTooLarge, "input of %s: %d bytes; the limit is %d (max_payload_bytes)", c.Name(), len(filled), limit)
	}
	return filled, nil
}

// foreignSecret refuses headers by which an expression names a secret: whoever
// starts an execution could have any secret sent anywhere.
func foreignSecret(c *definition.Call, input exactjson.Value) *history.TaskError {
	if c.Builtin == "" {
		return nil
	}
	for name, value := range input.Get("headers").Members() {
		if value.Kind() != exactjson.KindObject {
			continue
		}
		if secret, _ := value.Get("secret").Text(); !slices.Contains(c.Secrets, secret) {
			return failure(CodeInputContract, "input of %s at /headers/%s: an expression cannot name a secret; write { secret: NAME } there in the definition", c.Builtin, name)
		}
	}
	return nil
}

// callTimes are a call's attempt and queue time-outs in milliseconds, 0 for
// none. They name only steps that are resolved when the unit starts, and see
// the start as `now`, so that they give the same at any later time.
func (m *Machine) callTimes(c *definition.Call, v *expr.Vars) (attemptMS, queueMS int64, fail *history.TaskError) {
	if c.Timeout != nil {
		attemptMS, fail = m.duration(c.Timeout, v, "timeout", true)
	} else if c.Builtin != "" {
		attemptMS = BuiltinTimeoutMS
	} else if c.Workflow == "" {
		attemptMS = m.limits.DefaultAttemptTimeoutMS
	}
	if fail == nil && c.QueueTimeout != nil {
		queueMS, fail = m.duration(c.QueueTimeout, v, "queue_timeout", true)
	}
	return attemptMS, queueMS, fail
}

func (m *Machine) startTimer(r ref, s *definition.Step, v *expr.Vars) {
	var fire int64
	var fail *history.TaskError
	if s.Until != nil {
		fire, fail = m.moment(s.Until, v, "until")
	} else {
		fire, fail = m.duration(s.Sleep, v, "sleep", false)
		fire = addMS(m.now, fire)
	}
	if fail != nil {
		m.fail(r, fail)
		return
	}
	m.emit(history.TimerStarted{Step: m.key(r), FireAtMS: fire})
}

func (m *Machine) startAwait(r ref, s *definition.Step, v *expr.Vars) {
	e := history.SignalAwaitStarted{Step: m.key(r), Signal: s.Signal}
	if s.Timeout != nil {
		ms, fail := m.duration(s.Timeout, v, "timeout", true)
		if fail != nil {
			m.fail(r, fail)
			return
		}
		deadline := addMS(m.now, ms)
		e.DeadlineMS = &deadline
	}
	m.emit(e)
}

func (m *Machine) startFail(r ref, s *definition.Step, v *expr.Vars) {
	fail := &history.TaskError{Code: s.Fail.Code}
	if s.Fail.Message != nil {
		value, evalFail := m.evaluate(s.Fail.Message, v, "fail.message")
		if evalFail != nil {
			m.fail(r, evalFail)
			return
		}
		if text, ok := value.Text(); ok {
			fail.Message = text
		} else {
			fail.Message = string(value)
		}
	}
	m.fail(r, fail)
}

// fanOut starts a `for`: its list is evaluated once, here.
func (m *Machine) fanOut(r ref, v *expr.Vars) {
	s := m.step(r)
	list, fail := m.evaluateWithin(s.For, v, "for", expr.Bounds{ResultBytes: m.limits.MaxJoinBytes})
	if fail == nil && list.Kind() != exactjson.KindArray {
		fail = failure(CodeExpression, "for: `%s` must give a list; this is %s", s.For.Source(), kindName(list))
	}
	if fail == nil {
		_, fail = m.maxParallel(s, v)
	}
	if fail != nil {
		m.fail(r, fail)
		return
	}
	items := slices.Collect(list.Elements())
	if limit := m.limits.MaxFanOut; limit > 0 && len(items) > limit {
		m.fail(r, failure(CodeLimitExceeded, "for: %d elements; the limit is %d (max_fan_out)", len(items), limit))
		return
	}
	m.emit(history.StepFanOut{Step: m.key(r), Items: items})
	m.fanOn(r)
}

// maxParallel is how many elements may be unresolved at a time, 0 for no bound.
func (m *Machine) maxParallel(s *definition.Step, v *expr.Vars) (int, *history.TaskError) {
	if s.MaxParallel == nil {
		return 0, nil
	}
	value, fail := m.evaluate(s.MaxParallel, v, "max_parallel")
	if fail != nil {
		return 0, fail
	}
	n, ok := value.Int64()
	if !ok || n < 1 || n > 1<<31-1 {
		return 0, failure(CodeExpression, "max_parallel: a whole number from 1 is needed; this is %s", kindName(value))
	}
	return int(n), nil
}

// fanOn starts elements of a running `for` and ends it after the last.
func (m *Machine) fanOn(r ref) {
	s, parent := m.step(r), m.state.Unit(m.key(r))
	v := m.vars(r)
	v.NowMS = *parent.ScheduledAtMS
	bound, fail := m.maxParallel(s, v)
	if fail != nil {
		m.fail(r, fail)
		return
	}
	for {
		f := m.fans[r.step]
		if f.ok == parent.Items {
			m.join(r, parent.Items)
			return
		}
		if f.next >= parent.Items || bound > 0 && f.open >= bound || m.full() {
			return
		}
		element := ref{step: r.step, elem: int32(f.next)}
		m.startAction(element, s, m.vars(element))
		if m.aborting() {
			return
		}
	}
}

// join ends a `for`: the outputs of its elements, in their order.
func (m *Machine) join(r ref, n int) {
	outputs, size := make([]exactjson.Value, n), len("[]")+max(0, n-1)
	for i := range n {
		outputs[i] = m.state.Unit(m.key(ref{step: r.step, elem: int32(i)})).Output.OrNull()
		size += len(outputs[i])
	}
	if limit := m.limits.MaxJoinBytes; limit > 0 && size > limit {
		m.fail(r, failure(CodePayloadTooLarge, "the joined outputs of %d elements have %d bytes; the limit is %d", n, size, limit))
		return
	}
	m.emit(history.StepSucceeded{Step: m.key(r), Attempt: 1, Output: exactjson.Array(outputs)})
}

// fail ends a unit as failed, unless a catch clause of its step takes it.
func (m *Machine) fail(r ref, e *history.TaskError) {
	rescued, e := m.rescue(r, e)
	if rescued {
		return
	}
	key := m.key(r)
	m.emit(history.StepFailed{Step: key, Error: *e})
	if r.phase == phaseCompensation {
		unit := r
		unit.phase = phaseMain
		m.emit(history.CompensationFailed{Step: m.key(unit), Error: *e})
	}
}

// rescue asks the clauses of a main step; the first that matches takes the
// failure. Where its output cannot be had, that is what the unit fails with.
func (m *Machine) rescue(r ref, e *history.TaskError) (rescued bool, left *history.TaskError) {
	s := m.step(r)
	if s == nil || r.phase != phaseMain {
		return false, e
	}
	i := slices.IndexFunc(s.Catch, func(c definition.Catch) bool { return catches(c, e.Code) })
	if i < 0 {
		return false, e
	}
	output := exactjson.Null
	if p := s.Catch[i].Output; p != nil {
		v := m.vars(r)
		v.Error = errorValue(e)
		value, fail := m.evaluate(p, v, fmt.Sprintf("catch[%d].output", i))
		if fail != nil {
			return false, fail
		}
		output = value.OrNull()
	}
	m.emit(history.StepRecovered{Step: m.key(r), Error: *e, Output: output})
	return true, nil
}

// catches reports whether a clause takes a code. A clause without codes leaves
// out the author's own mistakes; limits and cancelling cannot be caught.
func catches(c definition.Catch, code string) bool {
	switch code {
	case CodeLimitExceeded, CodeCancelled:
		return false
	case CodeExpression, CodeInputContract:
		return slices.Contains(c.Codes, code)
	}
	return c.Codes == nil || slices.Contains(c.Codes, code)
}
