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
	wrapped [len(variables)]ref.Val
}

// variables are all names that there may be in a scope.
var variables = [...]string{"input", "steps", "execution", "now", "item", "index", "output", "failure", "error", "idempotency_key"}

func newActivation(vars *Vars) *activation {
	if vars == nil {
		vars = &Vars{}
	}
	return &activation{vars: vars}
}

// Parent implements interpreter.Activation.
func (a *activation) Parent() interpreter.Activation { return nil }

// ResolveName implements interpreter.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	for i := range variables {
		if variables[i] == name {
			if a.wrapped[i] == nil {
				a.wrapped[i] = a.wrap(name)
			}
			return a.wrapped[i], true
		}
	}
	return nil, false
}

func (a *activation) wrap(name string) ref.Val {
	switch name {
	case "input":
		return wrap(a.vars.Input)
	case "steps":
		return &record{field: a.step}
	case "execution":
		return execution(&a.vars.Execution)
	case "now":
		return moment(a.vars.NowMS)
	case "item":
		return wrap(a.vars.Item)
	case "index":
		return types.Int(a.vars.Index)
	case "output":
		return wrap(a.vars.Output)
	case "failure":
		return wrap(a.vars.Failure)
	case "error":
		return wrap(a.vars.Error)
	}
	return types.String(a.vars.IdempotencyKey)
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
