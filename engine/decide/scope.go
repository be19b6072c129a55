package decide

import (
	"errors"
	"strings"

	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/expr"
	"perigee/engine/history"
)

// vars are the names in scope of a unit's expressions.
func (m *Machine) vars(r ref) *expr.Vars {
	v := m.baseVars()
	if r.phase == phaseHandler {
		v.Step = m.handlerStep
		v.Failure = m.failureValue()
		return v
	}
	unit := r
	unit.phase = phaseMain
	if r.elem != whole {
		if items := m.items(r.step); int(r.elem) < len(items) {
			v.Item = items[r.elem]
		}
		v.Index = int(r.elem)
	}
	if r.phase == phaseCompensation {
		v.Failure = m.failureValue()
		v.IdempotencyKey = m.idempotencyKey(m.key(unit))
		if u := m.state.Unit(m.key(unit)); u != nil && u.SucceededSeq != nil {
			v.Output = u.Output
		}
	}
	return v
}

func (m *Machine) baseVars() *expr.Vars {
	v := &expr.Vars{
		Input: m.state.Input,
		Step:  m.mainStep,
		NowMS: m.now,
		Execution: expr.Execution{
			ID:          m.state.ID,
			Workflow:    m.state.Workflow,
			Version:     m.state.Version,
			StartedAtMS: m.state.CreatedAtMS,
		},
	}
	if p := m.state.Parent; p != nil {
		v.Execution.ParentID, v.Execution.ParentStep = p.ExecutionID, p.Step
	}
	return v
}

func (m *Machine) mainStep(id string) expr.Step { return stepView(m.state.Unit(id)) }

// handlerStep sees the handler list's own steps before the main ones.
func (m *Machine) handlerStep(id string) expr.Step {
	kind := m.handlerKind()
	for _, s := range m.def.Handlers[kind] {
		if s.ID == id {
			return stepView(m.state.Unit(history.HandlerKey(kind, id)))
		}
	}
	return m.mainStep(id)
}

func stepView(u *history.Unit) expr.Step {
	if u == nil || u.Status == history.UnitPending {
		return expr.Step{}
	}
	s := expr.Step{
		Status:  u.Status.String(),
		Attempt: u.Attempt,
		Skipped: u.Status == history.UnitSkipped,
	}
	if u.Status.Resolved() {
		s.Output = u.Output
	}
	if u.Error != nil {
		s.Error = errorValue(u.Error)
	}
	return s
}

// failureValue is what compensations and handlers see as `failure`.
func (m *Machine) failureValue() exactjson.Value {
	reason, code, message := m.abortReason(), CodeWorkflowTimeout, "the workflow ran past its timeout"
	switch a := m.state.Abort; {
	case a == nil:
		return exactjson.Null
	case a.Kind == history.AbortCancelled:
		code, message = CodeCancelled, a.Reason
	case a.Error != nil:
		code, message = a.Error.Code, a.Error.Message
	}
	b := append([]byte(nil), `{"reason":`...)
	b = exactjson.AppendQuoted(b, reason)
	b = append(b, `,"code":`...)
	b = exactjson.AppendQuoted(b, code)
	b = append(b, `,"message":`...)
	b = exactjson.AppendQuoted(b, message)
	return exactjson.Value(append(b, '}'))
}

func errorValue(e *history.TaskError) exactjson.Value {
	return e.JSON()
}

func (m *Machine) idempotencyKey(unit string) string { return m.state.ID + "/" + unit }

// bounds are those of a computed value.
func (m *Machine) bounds() expr.Bounds { return expr.Bounds{ResultBytes: m.limits.MaxPayloadBytes} }

// evaluate gives a program's value. A failure is a task error that names the
// place, "" standing for a value that was left out.
func (m *Machine) evaluate(p *expr.Program, v *expr.Vars, place string) (exactjson.Value, *history.TaskError) {
	return m.evaluateWithin(p, v, place, m.bounds())
}

func (m *Machine) evaluateWithin(p *expr.Program, v *expr.Vars, place string, b expr.Bounds) (exactjson.Value, *history.TaskError) {
	value, err := p.Eval(v, b)
	switch {
	case err != nil:
		return "", expressionFailure(err, place)
	case b.ResultBytes > 0 && len(value) > b.ResultBytes: // a literal
		return "", tooLarge(place, b.ResultBytes)
	}
	return value, nil
}

func tooLarge(place string, limit int) *history.TaskError {
	return failure(CodePayloadTooLarge, "%s: the value is larger than the limit of %d bytes", place, limit)
}

func expressionFailure(err error, place string) *history.TaskError {
	var e *expr.Error
	if !errors.As(err, &e) {
		return failure(CodeExpression, "%s: %v", place, err)
	}
	if e.TooLarge {
		return tooLarge(place, e.Limit)
	}
	return failure(CodeExpression, "%s: %s", place, e.Message) // which names the expression
}

// duration evaluates a template that gives the text of a duration. Zero and
// less are refused where the place says so.
func (m *Machine) duration(p *expr.Program, v *expr.Vars, place string, positive bool) (int64, *history.TaskError) {
	value, fail := m.evaluate(p, v, place)
	if fail != nil {
		return 0, fail
	}
	text, ok := value.Text()
	if !ok {
		return 0, failure(CodeExpression, "%s: a duration is text such as \"30s\" or \"1h30m\"; this is %s", place, kindName(value))
	}
	ms, err := definition.ParseDuration(text)
	switch {
	case err != nil:
		return 0, failure(CodeExpression, "%s: %v", place, err)
	case ms < 0, positive && ms == 0:
		return 0, failure(CodeExpression, "%s: %s must be above 0", place, text)
	}
	return ms, nil
}

// moment evaluates a template that gives an RFC 3339 timestamp.
func (m *Machine) moment(p *expr.Program, v *expr.Vars, place string) (int64, *history.TaskError) {
	value, fail := m.evaluate(p, v, place)
	if fail != nil {
		return 0, fail
	}
	text, ok := value.Text()
	if !ok {
		return 0, failure(CodeExpression, "%s: a moment is RFC 3339 text such as \"2030-01-31T12:00:00Z\"; this is %s", place, kindName(value))
	}
	ms, err := definition.ParseMoment(text)
	if err != nil {
		return 0, failure(CodeExpression, "%s: %v", place, err)
	}
	return ms, nil
}

// kindName says what a value is, for a message; never its content.
func kindName(v exactjson.Value) string {
	if v.Absent() {
		return "absent"
	}
	return strings.ToLower(v.Kind().String())
}
