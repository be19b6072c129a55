package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// model is what an execution's history says, read on its own and held against
// the invariants event by event.
type model struct {
	id       string
	def      *definition.Definition
	state    *history.State
	recorded map[string]bool // "<unit> <token>" whose result is in the history
	signals  map[uint64]string
	ended    bool
}

// splitToken takes a task token apart, by its documented form.
func splitToken(text string) (execution, unit, hash string) {
	place, secret, _ := strings.Cut(text, ".")
	b, err := base64.RawURLEncoding.DecodeString(place)
	if err != nil {
		return "", "", ""
	}
	parts := strings.Split(string(b), "\x00")
	sum := sha256.Sum256([]byte(secret))
	return parts[0], parts[1], hex.EncodeToString(sum[:])
}

func (w *World) watch(id string) {
	if w.models[id] == nil {
		w.models[id] = &model{id: id, state: history.New(id), recorded: map[string]bool{}, signals: map[uint64]string{}}
		w.order = append(w.order, id)
	}
}

// check reads what is new in every history and holds it against the
// invariants. With final it also compares every projection and promise.
func (w *World) check(final bool) {
	for i := 0; i < len(w.order) && w.err == nil; i++ { // grows with children
		m := w.models[w.order[i]]
		if !m.ended || final {
			w.read(m)
		}
		if final {
			w.compareServed(m)
			w.compareRoots(m)
		}
	}
	if !final || w.err != nil {
		return
	}
	for _, p := range w.promised {
		if !p.holds(w.models[p.execution]) {
			w.fail("%s: a %s was answered with success, and the history does not have it", p.execution, p.what)
		}
	}
	w.compareProjections()
	w.compareTold()
}

func (w *World) read(m *model) {
	events, err := w.store.History(context.Background(), m.id, m.state.LastSeq, 5000, 0)
	if err != nil {
		w.fail("read the history of %s: %v", m.id, err)
		return
	}
	for _, stored := range events {
		text := history.AppendStored(nil, stored.Seq, stored.AtMS, stored.Type, stored.Data)
		w.trace.WriteString(m.id + " ")
		w.trace.Write(text)
		w.trace.WriteByte('\n')
		r, err := history.DecodeRecord(text)
		if err != nil {
			w.fail("%s: event %d does not decode: %v", m.id, stored.Seq, err)
			return
		}
		if err := m.take(w, r); err != nil {
			w.fail("%s: event %d, %s: %v", m.id, r.Seq, text, err)
			return
		}
	}
}

// take holds one event against the invariants and folds it.
func (m *model) take(w *World, r history.Record) error {
	if r.Seq != m.state.LastSeq+1 {
		return fmt.Errorf("it follows %d", m.state.LastSeq)
	}
	if r.TimestampMS < m.state.UpdatedAtMS {
		return fmt.Errorf("its time is before that of the event before it")
	}
	if m.ended {
		return fmt.Errorf("the execution had ended")
	}
	if err := m.checkUnit(r.Event); err != nil {
		return err
	}
	m.note(w, r)
	m.state.Apply(r)
	m.ended = m.state.Status.Terminal()
	if created, ok := r.Event.(history.WorkflowCreated); ok {
		if m.def = w.defs[created.DefinitionHash]; m.def == nil {
			return fmt.Errorf("its definition is not one of this run")
		}
	}
	return nil
}

// note counts what was reached and remembers what promises are about.
func (m *model) note(w *World, r history.Record) {
	w.count("event: " + string(r.Event.Type()))
	switch e := r.Event.(type) {
	case history.StepScheduled:
		if e.Redelivery {
			w.count("rule: redelivery")
		}
		if e.Attempt > 1 {
			w.count("rule: another attempt")
		}
	case history.StepDispatched:
		if child, ok := strings.CutPrefix(e.WorkerSession, "child:"); ok {
			w.watch(child)
			w.count("rule: child started")
		}
	case history.StepSucceeded:
		m.recorded[e.Step+" "+e.Token] = true
		if m.state.Abort != nil && !history.IsCleanup(e.Step) {
			w.count("rule: success while winding down")
		}
		if u := m.state.Unit(e.Step); u != nil && e.Token != "" && (u.Token == nil || *u.Token != e.Token) {
			w.count("rule: late success taken")
		}
	case history.StepAttemptFailed:
		m.recorded[e.Step+" "+e.Token] = e.Token != "" || m.recorded[e.Step+" "+e.Token]
		w.count("failure: " + e.Error.Code)
	case history.StepAttemptUncertain:
		w.count("uncertain: " + strings.Split(e.Reason, " `")[0])
	case history.StepFailed:
		w.count("failure: " + e.Error.Code)
		if e.Step == "$output" {
			w.count("rule: output failed")
		}
	case history.StepRecovered:
		w.count("rule: caught " + e.Error.Code)
	case history.StaleResultIgnored:
		w.count("rule: stale " + e.Outcome)
	case history.SignalReceived:
		m.signals[r.Seq] = e.Name
	case history.CompensationStarted:
		w.count("rule: compensation " + e.Reason)
	case history.HandlersStarted:
		w.count("rule: handlers " + e.Kind)
	case history.WorkflowFailed:
		w.count("end: failed, compensation " + string(e.Compensation))
	case history.WorkflowCancelled:
		w.count("end: cancelled, compensation " + string(e.Compensation))
	case history.WorkflowTimedOut:
		w.count("end: timed out, compensation " + string(e.Compensation))
	}
}

// checkUnit holds an event against the invariants of its unit.
func (m *model) checkUnit(event history.Event) error {
	key := event.Unit()
	if key == "" {
		return m.checkWide(event)
	}
	u := m.state.Unit(key)
	switch e := event.(type) {
	case history.StaleResultIgnored, history.CompensationFailed:
		return nil
	case history.StepScheduled:
		return m.checkStart(key, u, e)
	case history.StepDispatched:
		if u == nil || u.Status != history.UnitScheduled {
			return fmt.Errorf("the unit was not scheduled")
		}
	}
	if u != nil && u.Status.Resolved() {
		return fmt.Errorf("the unit is %s already", u.Status)
	}
	if u == nil || u.Status == history.UnitPending {
		return m.checkPredecessors(key)
	}
	return nil
}

func (m *model) checkStart(key string, u *history.Unit, e history.StepScheduled) error {
	if u != nil && u.Status.Resolved() {
		return fmt.Errorf("the unit is %s already", u.Status)
	}
	if e.IdempotencyKey != m.id+"/"+key {
		return fmt.Errorf("its idempotency key is not that of its unit")
	}
	if u == nil || u.Status == history.UnitPending {
		if e.Attempt != 1 {
			return fmt.Errorf("its first attempt has another number")
		}
		return m.checkPredecessors(key)
	}
	if !exactjson.Equal(u.Input, e.Input) {
		return fmt.Errorf("its input changed between attempts")
	}
	if call := m.call(key); call != nil && call.Retry.MaxAttempts > 0 && e.Attempt > call.Retry.MaxAttempts {
		return fmt.Errorf("more attempts than the policy's %d", call.Retry.MaxAttempts)
	}
	return nil
}

func (m *model) call(key string) *definition.Call {
	k := history.ParseKey(key)
	if k.Handler != "" {
		for _, s := range m.def.Handlers[k.Handler] {
			if s.ID == k.Step {
				return s.Call
			}
		}
		return nil
	}
	s := m.def.StepByID(k.Step)
	switch {
	case s == nil:
		return nil
	case k.Compensation:
		return s.Compensate
	}
	return s.Call
}

// checkPredecessors: no unit starts before its predecessors are resolved.
func (m *model) checkPredecessors(key string) error {
	k := history.ParseKey(key)
	if k.Compensation || k.Handler != "" || key == "$output" || m.state.Abort != nil {
		if k.Compensation && m.state.Status != history.Compensating {
			return fmt.Errorf("a compensation before CompensationStarted")
		}
		return nil
	}
	s := m.def.StepByID(k.Step)
	if s == nil {
		return fmt.Errorf("the definition has no such step")
	}
	for _, p := range s.Predecessors {
		before := m.state.Unit(m.def.Steps[p].ID)
		if before == nil || before.Status != history.UnitSucceeded && before.Status != history.UnitSkipped {
			return fmt.Errorf("it started before %s was through", m.def.Steps[p].ID)
		}
	}
	return nil
}

func (m *model) checkWide(event history.Event) error {
	e, ok := event.(history.CompensationStarted)
	if !ok {
		return nil
	}
	last := uint64(1 << 62)
	for _, key := range e.Steps {
		u := m.state.Unit(key)
		step := m.def.StepByID(history.ParseKey(key).Step)
		if u == nil || step == nil || step.Compensate == nil {
			return fmt.Errorf("%s has nothing to undo", key)
		}
		at := u.LastDispatchSeq
		if u.SucceededSeq != nil {
			at = *u.SucceededSeq
		} else if !step.WhenUncertain || !u.OutcomeUnknown {
			return fmt.Errorf("%s neither succeeded nor is it uncertain", key)
		}
		if at > last {
			return fmt.Errorf("%s is out of order", key)
		}
		last = at
	}
	return nil
}

// compareServed: what is served is the fold of the history.
func (w *World) compareServed(m *model) {
	s, err := w.processes[0].engine.Execution(context.Background(), m.id, 0)
	if err != nil {
		w.fail("%s is not served: %v", m.id, err)
		return
	}
	if want, got := string(m.state.AppendJSON(nil)), string(s.AppendJSON(nil)); want != got {
		w.fail("%s: served is not the fold of its history:\nwant %s\ngot  %s", m.id, want, got)
	}
}

// compareProjections: heads, queue and wake-ups are what the histories say.
func (w *World) compareProjections() {
	_, err := w.processes[0].engine.DoctorOf(context.Background(), w.order, func(f engine.Finding) {
		w.fail("%s: %s", f.ExecutionID, f.What)
	})
	if err != nil {
		w.fail("compare projections: %v", err)
	}
}
