package expr

import (
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// The fields of what is not JSON: an expression that names another is refused
// when it is compiled.
var (
	stepFields      = []string{"output", "status", "error", "attempt"}
	executionFields = []string{"id", "workflow", "version", "started_at", "parent"}
	parentFields    = []string{"execution_id", "step"}
	failureFields   = []string{"reason", "code", "message"}
)

// activation gives the variables to one evaluation of a program, or to all
// evaluations of a template. A value is wrapped when it is first asked for.
type activation struct {
	vars    *Vars
	wrapped map[string]ref.Val
}

func newActivation(vars *Vars) *activation {
	if vars == nil {
		vars = &Vars{}
	}
	return &activation{vars: vars, wrapped: map[string]ref.Val{}}
}

// Parent implements interpreter.Activation.
func (a *activation) Parent() interpreter.Activation { return nil }

// ResolveName implements interpreter.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	if v, found := a.wrapped[name]; found {
		return v, true
	}
	v, known := a.wrap(name)
	if known {
		a.wrapped[name] = v
	}
	return v, known
}

func (a *activation) wrap(name string) (ref.Val, bool) {
	switch name {
	case "input":
		return wrap(a.vars.Input), true
	case "steps":
		return &record{field: a.step}, true
	case "execution":
		return execution(&a.vars.Execution), true
	case "now":
		return moment(a.vars.NowMS), true
	case "item":
		return wrap(a.vars.Item), true
	case "index":
		return types.Int(a.vars.Index), true
	case "output":
		return wrap(a.vars.Output), true
	case "failure":
		return wrap(a.vars.Failure), true
	case "error":
		return wrap(a.vars.Error), true
	case "idempotency_key":
		return types.String(a.vars.IdempotencyKey), true
	}
	return nil, false
}

func moment(ms int64) ref.Val {
	return types.Timestamp{Time: time.UnixMilli(ms).UTC()}
}

func (a *activation) step(id string) (ref.Val, bool) {
	var step Step
	if a.vars.Step != nil {
		step = a.vars.Step(id)
	}
	return &record{names: stepFields, field: func(name string) (ref.Val, bool) {
		switch name {
		case "output":
			return wrap(step.Output), true
		case "status":
			return textOrNull(step.Status), true
		case "error":
			return wrap(step.Error), true
		case "attempt":
			return types.Int(step.Attempt), true
		}
		return nil, false
	}}, true
}

func execution(e *Execution) ref.Val {
	return &record{names: executionFields, field: func(name string) (ref.Val, bool) {
		switch name {
		case "id":
			return types.String(e.ID), true
		case "workflow":
			return types.String(e.Workflow), true
		case "version":
			return types.String(e.Version), true
		case "started_at":
			return moment(e.StartedAtMS), true
		case "parent":
			return parent(e), true
		}
		return nil, false
	}}
}

func parent(e *Execution) ref.Val {
	if e.ParentID == "" {
		return types.NullValue
	}
	return &record{names: parentFields, field: func(name string) (ref.Val, bool) {
		switch name {
		case "execution_id":
			return types.String(e.ParentID), true
		case "step":
			return types.String(e.ParentStep), true
		}
		return nil, false
	}}
}

func textOrNull(s string) ref.Val {
	if s == "" {
		return types.NullValue
	}
	return types.String(s)
}
