package decide

import (
	"fmt"

	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// Run decides to the fixpoint at the time set by At, in rounds. more says that
// the call's bound was reached with work left: commit, with a wake-up now.
//
// A moment is passed in the first round, and then only when all that the one
// before it brought about is decided.
func (m *Machine) Run() (more bool) {
	// What commands brought in does not count, however much it is.
	m.before, m.started = len(m.records), 0
	atRest := true
	for !m.state.Status.Terminal() {
		before := len(m.records)
		m.round(atRest)
		decided := len(m.records) > before
		switch {
		case !decided && atRest:
			return false
		case decided && m.spent():
			return m.wouldDecide()
		}
		atRest = !decided
	}
	return false
}

// spent reports whether a call has decided so much that it should commit.
func (m *Machine) spent() bool {
	return m.full() || len(m.starts) >= MaxChildrenPerCall
}

// Decide is one call's decision on a state, as a function.
func Decide(p Program, state *history.State, nowMS int64) []history.Record {
	m := New(p, state.Clone())
	m.At(nowMS)
	m.Run()
	return m.Records()
}

// wouldDecide reports whether another round would say something now.
func (m *Machine) wouldDecide() bool {
	c := m.Clone()
	c.round(true)
	return len(c.records) > 0
}

// round goes once through the rules, rule 2 only where atRest says so. It ends
// early with the event that sets the abort, and once it has decided as much as
// a call may.
func (m *Machine) round(atRest bool) {
	if m.state.Status.Terminal() || m.state.LastSeq == 0 {
		return
	}
	if m.aborting() {
		m.unwind(atRest)
		return
	}
	if m.overLimit() || m.overTime() {
		return
	}
	if atRest {
		if m.passMoment(); m.aborting() {
			return
		}
	}
	if m.settle(phaseMain); m.aborting() {
		return
	}
	if m.startSteps(); m.aborting() {
		return
	}
	m.startChildren()
	m.complete()
}

// overLimit is rule 0.
func (m *Machine) overLimit() bool {
	limit := m.limits.MaxHistoryEvents
	if limit == 0 || m.state.LastSeq < limit || m.done == len(m.main) {
		return false
	}
	m.emit(history.LimitExceeded{
		Limit:   "max_history_events",
		Message: fmt.Sprintf("the execution reached %d history events", limit),
	})
	return true
}

// overTime is rule 1.
func (m *Machine) overTime() bool {
	if end, ok := m.timeout(); !ok || m.now < end {
		return false
	}
	m.emit(history.WorkflowTimeoutReached{})
	return true
}

// timeout is the moment at which the execution runs out of time.
func (m *Machine) timeout() (int64, bool) {
	if m.def.TimeoutMS == 0 {
		return 0, false
	}
	return addMS(m.state.CreatedAtMS, m.def.TimeoutMS), true
}

// startSteps is rule 5, in the definition's order.
func (m *Machine) startSteps() {
	for step, ok := m.startable.next(0); ok && !m.full() && !m.aborting(); step, ok = m.startable.next(step + 1) {
		r := ref{step: int32(step), elem: whole}
		if m.main[step] == history.UnitRunning {
			m.fanOn(r)
		} else {
			m.start(r)
		}
	}
}

// full reports whether this call has started or decided as much as it may.
func (m *Machine) full() bool {
	return m.started >= maxStartsPerCall || len(m.records)-m.before >= maxEventsPerCall
}

func (m *Machine) predecessorsThrough(step int) bool {
	for _, p := range m.def.Steps[step].Predecessors {
		if through(m.main[p]) == 0 {
			return false
		}
	}
	return true
}

// complete is rule 6.
func (m *Machine) complete() {
	if m.done != len(m.main) || m.aborting() {
		return
	}
	output := exactjson.Null
	if m.def.Output != nil {
		value, fail := m.evaluate(m.def.Output, m.baseVars(), "output")
		if fail != nil {
			m.emit(history.StepFailed{Step: outputUnit, Error: *fail})
			return
		}
		output = value.OrNull()
	}
	m.emit(history.WorkflowCompleted{Output: output})
}

// addMS adds milliseconds to a moment without overflow.
func addMS(moment, ms int64) int64 {
	if sum := moment + ms; sum >= moment {
		return sum
	}
	return 1<<63 - 1
}
