package decide

import (
	"perigee/engine/definition"
	"perigee/engine/history"
)

// phase tells the three kinds of unit apart, in the order in which they run.
type phase uint8

const (
	phaseMain phase = iota
	phaseCompensation
	phaseHandler
)

// whole is the element index of a unit that is no element.
const whole = -1

// ref names a unit by its place in the definition. Its order is the
// definition's order, elements by index.
type ref struct {
	phase phase
	step  int32 // index in its list; len(Steps) for $output
	elem  int32 // index of the element, or whole
}

func (r ref) less(o ref) bool {
	switch {
	case r.phase != o.phase:
		return r.phase < o.phase
	case r.step != o.step:
		return r.step < o.step
	}
	return r.elem < o.elem
}

// cleanup reports whether the unit runs while an execution winds down.
func (r ref) cleanup() bool { return r.phase != phaseMain }

// outputUnit is the reserved unit that fails where `output` does.
const outputUnit = "$output"

// locate finds a unit's place, false for a key that the definition does not
// know (a history that another definition made).
func (m *Machine) locate(key string) (ref, bool) {
	k := history.ParseKey(key)
	r := ref{elem: int32(k.Index)}
	if k.Handler != "" {
		r.phase = phaseHandler
		for i, s := range m.def.Handlers[k.Handler] {
			if s.ID == k.Step {
				r.step = int32(i)
				return r, k.Handler == m.handlerKind()
			}
		}
		return r, false
	}
	if k.Compensation {
		r.phase = phaseCompensation
	}
	if s := m.def.StepByID(k.Step); s != nil {
		r.step = int32(s.Index)
		return r, true
	}
	r.step = int32(len(m.def.Steps))
	return r, key == outputUnit
}

// key is the unit key of a place.
func (m *Machine) key(r ref) string {
	if r.phase == phaseHandler {
		return history.HandlerKey(m.handlerKind(), m.step(r).ID)
	}
	if int(r.step) == len(m.def.Steps) {
		return outputUnit
	}
	unit := m.def.Steps[r.step].ID
	if r.elem != whole {
		unit = history.ElementKey(unit, int(r.elem))
	}
	if r.phase == phaseCompensation {
		return history.CompensationKey(unit)
	}
	return unit
}

// step is the step that a unit belongs to; nil for $output.
func (m *Machine) step(r ref) *definition.Step {
	list := m.def.Steps
	if r.phase == phaseHandler {
		list = m.def.Handlers[m.handlerKind()]
	}
	if int(r.step) >= len(list) {
		return nil
	}
	return list[r.step]
}

// call is what a unit runs, nil where it runs nothing outside.
func (m *Machine) call(r ref) *definition.Call {
	s := m.step(r)
	switch {
	case s == nil:
		return nil
	case r.phase == phaseCompensation:
		return s.Compensate
	}
	return s.Call
}

// handlerKind is the kind of handlers that this execution's abort calls for.
func (m *Machine) handlerKind() string {
	if m.state.Abort == nil {
		return ""
	}
	switch m.state.Abort.Kind {
	case history.AbortCancelled:
		return history.HandlerCancel
	case history.AbortTimedOut:
		return history.HandlerTimeout
	}
	return history.HandlerFailure
}
