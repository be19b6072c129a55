package decide

import "perigee/engine/history"

// momentOf is the moment at which an open unit has to be looked at, and
// whether a task row stands for it. An await is looked at past its deadline.
func (m *Machine) momentOf(r ref, u *history.Unit) (atMS int64, task, ok bool) {
	if u == nil {
		return 0, false, false
	}
	switch u.Status {
	case history.UnitScheduled:
		c := m.call(r)
		if c == nil || c.QueueTimeout == nil {
			return 0, false, false
		}
		v := m.vars(r)
		v.NowMS = deref(u.ScheduledAtMS)
		_, ms, fail := m.callTimes(c, v)
		return addMS(deref(u.ScheduledAtMS), ms), true, fail == nil && ms > 0
	case history.UnitDispatched:
		return deref(u.DeadlineMS), !u.WithChild(), u.DeadlineMS != nil
	case history.UnitWaiting:
		if u.WakeAtMS == nil {
			return 0, false, false
		}
		if u.Signal != "" {
			return addMS(*u.WakeAtMS, 1), false, true
		}
		return *u.WakeAtMS, false, true
	case history.UnitRetryWait:
		return deref(u.WakeAtMS), false, u.WakeAtMS != nil
	}
	return 0, false, false
}

func (m *Machine) addMoment(r ref, u *history.Unit) {
	if at, task, ok := m.momentOf(r, u); ok {
		m.moments(task).tree.Set(moment{at, r})
	}
}

func (m *Machine) removeMoment(r ref, u *history.Unit) {
	if at, task, ok := m.momentOf(r, u); ok {
		m.moments(task).tree.Delete(moment{at, r})
	}
}

func (m *Machine) moments(task bool) momentSet {
	if task {
		return m.taskMoments
	}
	return m.headMoments
}

// passMoment is rule 2: it decides the oldest moment that has passed.
func (m *Machine) passMoment() {
	next, ok := m.nextMoment(true)
	if !ok || next.atMS > m.now {
		return
	}
	r := next.ref
	key := m.key(r)
	u := m.state.Unit(key)
	switch u.Status {
	case history.UnitScheduled:
		m.emit(history.StepAttemptFailed{Step: key, Attempt: u.Attempt, Error: *failure(CodeQueueTimeout,
			"no worker took the task within its queue_timeout of %d ms", next.atMS-deref(u.ScheduledAtMS))})
	case history.UnitDispatched:
		m.passDeadline(key, u, next.atMS)
	case history.UnitRetryWait:
		m.reschedule(r, u, false)
	case history.UnitWaiting:
		m.passWait(key, u)
	}
}

// passDeadline ends an attempt at its deadline or, where the execution winds
// down and that came first, at the end of the grace period.
func (m *Machine) passDeadline(key string, u *history.Unit, atMS int64) {
	if u.DeadlineMS == nil || *u.DeadlineMS > atMS {
		m.emit(history.StepAttemptUncertain{Step: key, Attempt: u.Attempt, Reason: ReasonDidNotStop})
		return
	}
	e := failure(CodeTimeout, "attempt %d ran past its timeout of %d ms", u.Attempt, *u.DeadlineMS-deref(u.DispatchedAtMS))
	if u.WithChild() {
		e.Message = "the child workflow ran past the step's timeout"
		e.Retryable = false
	}
	m.emit(history.StepAttemptFailed{Step: key, Attempt: u.Attempt, Error: *e})
}

func (m *Machine) passWait(key string, u *history.Unit) {
	if u.Signal == "" {
		m.emit(history.TimerFired{Step: key})
		return
	}
	if signal, ok := m.signalFor(u); ok {
		m.emit(history.SignalDelivered{Step: key, SignalSeq: signal.Seq})
		return
	}
	m.emit(history.StepAttemptFailed{Step: key, Attempt: u.Attempt, Error: *failure(CodeSignalTimeout,
		"no signal `%s` came within %d ms", u.Signal, deref(u.WakeAtMS)-deref(u.ScheduledAtMS))})
}

// signalFor is the signal that a waiting await takes: the oldest untaken one
// of its name, unless it came past the deadline.
func (m *Machine) signalFor(u *history.Unit) (history.Signal, bool) {
	signal, ok := m.state.OldestUntaken(u.Signal)
	if !ok || u.WakeAtMS != nil && signal.ReceivedAtMS > *u.WakeAtMS {
		return history.Signal{}, false
	}
	return signal, true
}

// nextMoment is the earliest moment, passed ones included; with tasks also of
// those that task rows stand for. While winding down, only units that still
// count have one: the others are cancelled before it is asked for.
func (m *Machine) nextMoment(tasks bool) (next moment, ok bool) {
	consider := func(c moment, there bool) {
		if there && (!ok || c.atMS < next.atMS || c.atMS == next.atMS && c.ref.less(next.ref)) {
			next, ok = c, true
		}
	}
	consider(m.headMoments.tree.Min())
	if tasks {
		consider(m.taskMoments.tree.Min())
	}
	consider(m.nextSignal())
	consider(m.graceMoment())
	return next, ok
}

// nextSignal is the earliest moment at which an await had its signal.
func (m *Machine) nextSignal() (next moment, ok bool) {
	if m.aborting() || m.state.SignalCount() == 0 {
		return next, false
	}
	for _, r := range m.open.list(history.UnitWaiting, phaseMain, len(m.main)) {
		u := m.state.Unit(m.key(r))
		if u.Signal == "" {
			continue
		}
		signal, there := m.signalFor(u)
		if at := max(signal.ReceivedAtMS, deref(u.ScheduledAtMS)); there && (!ok || at < next.atMS) {
			next, ok = moment{at, r}, true
		}
	}
	return next, ok
}

// graceMoment is when a worker that was asked to stop counts as lost. Children
// have no such moment: they wind down themselves.
func (m *Machine) graceMoment() (moment, bool) {
	if !m.aborting() || m.limits.CancelGraceMS == 0 {
		return moment{}, false
	}
	from := ref{elem: whole}
	for {
		r, ok := m.open.first(history.UnitDispatched, from)
		if !ok || r.cleanup() {
			return moment{}, false
		}
		if c := m.call(r); c == nil || c.Workflow == "" {
			return moment{addMS(m.state.Abort.AtMS, m.limits.CancelGraceMS), r}, true
		}
		from.step = r.step + 1
	}
}

// Wake is the earliest moment, past ones included, at which deciding would
// say something; false where only a command can bring it on.
func (m *Machine) Wake() (atMS int64, ok bool) {
	if m.state.Status.Terminal() || m.state.LastSeq == 0 {
		return 0, false
	}
	c := m.Clone()
	if c.At(0); c.wouldDecide() {
		return c.now, true
	}
	return m.wake(true)
}

// HeadWake is Wake without the moments that task rows stand for, for a machine
// that has nothing left to decide now.
func (m *Machine) HeadWake() (atMS int64, ok bool) {
	if m.state.Status.Terminal() {
		return 0, false
	}
	return m.wake(false)
}

func (m *Machine) wake(tasks bool) (int64, bool) {
	next, ok := m.nextMoment(tasks)
	if end, there := m.timeout(); there && !m.aborting() && (!ok || end < next.atMS) {
		return end, true
	}
	return next.atMS, ok
}

// Wake is Machine.Wake as a function.
func Wake(p Program, state *history.State) (int64, bool) { return New(p, state.Clone()).Wake() }

func deref(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}
