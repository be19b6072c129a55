package decide

import (
	"cmp"
	"slices"

	"perigee/engine/history"
)

// unwind is one round of winding down. Each part waits until the one before
// it has nothing left. What ends at once ends before moments are looked at, so
// that the only ones left are those of units that still count.
func (m *Machine) unwind(atRest bool) {
	if m.cancelOpen(); m.full() {
		return
	}
	if atRest {
		m.passMoment()
	}
	m.settle(phaseCompensation)
	m.settle(phaseHandler)
	m.startChildren()
	if m.cancelOpen(); m.full() || m.mainOpen() {
		return
	}
	switch {
	case m.state.Handlers != nil:
		m.handle()
	case m.state.Status == history.Compensating:
		m.compensate()
	default:
		if steps := m.toUndo(); len(steps) > 0 {
			m.emit(history.CompensationStarted{Reason: m.abortReason(), Steps: steps})
			return
		}
		m.afterCompensation()
	}
}

// cancellable are the statuses of units that end at once with the abort.
var cancellable = []history.UnitStatus{
	history.UnitScheduled, history.UnitAttemptFailed, history.UnitUncertain,
	history.UnitRetryWait, history.UnitWaiting,
}

// cancelOpen is part 1: what no worker holds is cancelled, in the
// definition's order; then parents of fan-outs that no worker is busy with.
func (m *Machine) cancelOpen() {
	var refs []ref
	for _, status := range cancellable {
		refs = append(refs, m.open.list(status, phaseMain, maxEventsPerCall)...)
	}
	refs = append(refs, m.abandoned()...)
	slices.SortFunc(refs, func(a, b ref) int {
		if a.less(b) {
			return -1
		}
		return 1
	})
	for _, r := range refs {
		m.emit(history.StepCancelled{Step: m.key(r)})
		if m.full() {
			return // there may be more, and parents come after their elements
		}
	}
	for _, r := range m.open.list(history.UnitRunning, phaseMain, len(m.main)) {
		if _, busy := m.open.firstOf(history.UnitDispatched, r); !busy {
			m.emit(history.StepCancelled{Step: m.key(r)})
		}
	}
}

// abandoned lists the units whose children run on without their parent.
func (m *Machine) abandoned() []ref {
	var refs []ref
	for _, step := range m.childSteps[phaseMain] {
		if !m.def.Steps[step].Call.AbandonChild {
			continue
		}
		from := ref{step: step, elem: whole}
		for r, ok := m.open.firstOf(history.UnitDispatched, from); ok && len(refs) < maxEventsPerCall; r, ok = m.open.firstOf(history.UnitDispatched, from) {
			refs = append(refs, r)
			from.elem = r.elem + 1
		}
	}
	return refs
}

// mainOpen reports whether a unit that is no cleanup unit is unresolved.
func (m *Machine) mainOpen() bool {
	for _, status := range []history.UnitStatus{history.UnitDispatched, history.UnitRunning} {
		if r, ok := m.open.first(status, ref{elem: whole}); ok && !r.cleanup() {
			return true
		}
	}
	return false
}

// toUndo is part 3: the units with something to undo, the latest first.
func (m *Machine) toUndo() []string {
	type undo struct {
		key string
		seq uint64
	}
	var undos []undo
	add := func(r ref, whenUncertain bool) {
		key := m.key(r)
		u := m.state.Unit(key)
		switch {
		case u == nil:
		case u.SucceededSeq != nil:
			undos = append(undos, undo{key, *u.SucceededSeq})
		case whenUncertain && u.OutcomeUnknown && u.Status.Resolved():
			undos = append(undos, undo{key, u.LastDispatchSeq})
		}
	}
	for i, s := range m.def.Steps {
		if s.Compensate == nil {
			continue
		}
		if s.For == nil {
			add(ref{step: int32(i), elem: whole}, s.WhenUncertain)
			continue
		}
		for e := range m.fans[int32(i)].next {
			add(ref{step: int32(i), elem: int32(e)}, s.WhenUncertain)
		}
	}
	slices.SortFunc(undos, func(a, b undo) int { return cmp.Compare(b.seq, a.seq) })
	keys := make([]string, len(undos))
	for i, u := range undos {
		keys[i] = u.key
	}
	return keys
}

// compensate runs the compensations one at a time, in their order.
func (m *Machine) compensate() {
	order := m.state.CompensationOrder
	if m.compensated < len(order) {
		key := history.CompensationKey(order[m.compensated])
		if r, ok := m.locate(key); ok && m.status(key) == history.UnitPending {
			m.started++
			m.schedule(r, m.call(r), m.vars(r))
		}
		return
	}
	if m.state.Compensation == nil {
		m.emit(history.CompensationCompleted{})
	}
	m.afterCompensation()
}

// afterCompensation is the way from compensation to handlers or to the end.
func (m *Machine) afterCompensation() {
	if kind := m.handlerKind(); len(m.def.Handlers[kind]) > 0 {
		m.emit(history.HandlersStarted{Kind: kind, Compensation: m.compensation()})
		return
	}
	m.finish()
}

// handle is part 4. A step behind one that did not get through is cancelled;
// the others run on.
func (m *Machine) handle() {
	kind := m.handlerKind()
	open := false
	for i, s := range m.def.Handlers[kind] {
		r := ref{phase: phaseHandler, step: int32(i), elem: whole}
		switch status := m.status(m.key(r)); {
		case status.Resolved():
			continue
		case status == history.UnitPending:
			m.startHandler(kind, r, s.Predecessors)
		}
		open = open || !m.status(m.key(r)).Resolved()
	}
	if !open {
		m.finish()
	}
}

func (m *Machine) startHandler(kind string, r ref, predecessors []int) {
	ready := true
	for _, p := range predecessors {
		status := m.status(history.HandlerKey(kind, m.def.Handlers[kind][p].ID))
		if status == history.UnitFailed || status == history.UnitCancelled {
			m.emit(history.StepCancelled{Step: m.key(r)})
			return
		}
		ready = ready && status.Resolved()
	}
	if ready {
		m.start(r)
	}
}

// finish is part 5: the terminal event.
func (m *Machine) finish() {
	outcome := m.compensation()
	switch a := m.state.Abort; a.Kind {
	case history.AbortCancelled:
		m.emit(history.WorkflowCancelled{Compensation: outcome})
	case history.AbortTimedOut:
		m.emit(history.WorkflowTimedOut{Compensation: outcome})
	default:
		m.emit(history.WorkflowFailed{Error: *a.Error, Compensation: outcome})
	}
}

func (m *Machine) compensation() history.CompensationOutcome {
	switch {
	case m.state.Compensation != nil:
		return *m.state.Compensation
	case m.state.Handlers != nil:
		return m.state.Handlers.Compensation
	}
	return history.CompensationNone
}

// abortReason is why the execution winds down, as compensations record it.
func (m *Machine) abortReason() string {
	switch a := m.state.Abort; {
	case a == nil:
		return ""
	case a.Kind == history.AbortCancelled:
		return history.ReasonCancelled
	case a.Kind == history.AbortTimedOut:
		return history.ReasonTimedOut
	}
	return history.ReasonFailed
}
