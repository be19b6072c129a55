package decide

import (
	"slices"

	"pgregory.net/rapid"

	"perigee/engine/definition"
	"perigee/engine/history"
)

// invariants watches a history, event by event, and knows nothing of the fold
// or of decide's indexes.
type invariants struct {
	def       *definition.Definition
	last      history.Record
	resolved  map[string]history.Type
	started   map[string]bool
	attempts  map[string]uint32
	deliver   map[string]int // dispatches of the present attempt
	uncertain map[string]bool
	open      map[string]int // unresolved elements of a `for`
	items     map[string]int
	limits    map[string]int // of unresolved elements
	handler   string
	signals   map[string][]uint64
	awaits    map[string]string
	undo      []string
	undone    int
	aborting  bool
	terminal  bool
}

func newInvariants(p Program) *invariants {
	return &invariants{
		def: p.Definition, resolved: map[string]history.Type{}, started: map[string]bool{}, attempts: map[string]uint32{}, deliver: map[string]int{},
		uncertain: map[string]bool{}, open: map[string]int{}, items: map[string]int{}, limits: map[string]int{}, signals: map[string][]uint64{}, awaits: map[string]string{},
	}
}

func (v *invariants) see(t *rapid.T, r history.Record) {
	if r.Seq != v.last.Seq+1 || r.TimestampMS < v.last.TimestampMS {
		t.Fatalf("after %d at %d comes %d at %d", v.last.Seq, v.last.TimestampMS, r.Seq, r.TimestampMS)
	}
	v.last = r
	if v.terminal {
		if _, stale := r.Event.(history.StaleResultIgnored); !stale {
			t.Fatalf("%s after the end", line(r))
		}
	}
	if _, ok := r.Event.(history.CompensationFailed); !ok && r.Event.Unit() != "" {
		v.unit(t, r, r.Event.Unit())
	}
	switch e := r.Event.(type) {
	case history.CancelRequested, history.WorkflowTimeoutReached, history.LimitExceeded:
		if v.aborting {
			t.Fatalf("%s while aborting", line(r))
		}
		v.aborting = true
	case history.SignalReceived:
		v.signals[e.Name] = append(v.signals[e.Name], r.Seq)
	case history.CompensationStarted:
		v.listed(t, e.Steps)
	case history.HandlersStarted:
		v.handler = e.Kind
		if v.undone < len(v.undo) {
			t.Fatal("handlers before the last compensation")
		}
	case history.WorkflowCompleted:
		v.terminal = true
		for _, s := range v.def.Steps {
			if !v.through(s.ID) {
				t.Fatalf("completed, and %s is not through", s.ID)
			}
		}
	case history.WorkflowFailed, history.WorkflowCancelled, history.WorkflowTimedOut:
		v.terminal = true
		for unit := range v.started {
			if v.resolved[unit] == "" {
				t.Fatalf("ended, and %s is not resolved", unit)
			}
		}
	}
}

func (v *invariants) through(unit string) bool {
	switch v.resolved[unit] {
	case "", history.TypeStepFailed, history.TypeStepCancelled:
		return false
	}
	return true
}

// unit checks an event of one unit.
func (v *invariants) unit(t *rapid.T, r history.Record, unit string) {
	if _, stale := r.Event.(history.StaleResultIgnored); stale {
		return
	}
	if v.resolved[unit] != "" {
		t.Fatalf("%s: the unit was resolved by %s", line(r), v.resolved[unit])
	}
	if !v.started[unit] {
		v.begins(t, r, unit)
	}
	switch e := r.Event.(type) {
	case history.StepScheduled:
		if e.Attempt != v.attempts[unit] {
			v.deliver[unit] = 0
		}
		v.attempts[unit] = e.Attempt
		v.policy(t, r, unit, e.Attempt)
	case history.StepDispatched:
		v.dispatched(t, r, unit)
	case history.StepAttemptUncertain:
		v.uncertain[unit] = true
	case history.StepAttemptFailed:
		if e.Token == "" && v.deliver[unit] > 0 {
			v.uncertain[unit] = true
		}
	case history.StepFanOut:
		v.items[unit] = len(e.Items)
	case history.SignalAwaitStarted:
		v.awaits[unit] = e.Signal
	case history.SignalDelivered:
		name := v.awaits[unit]
		if waiting := v.signals[name]; len(waiting) == 0 || waiting[0] != e.SignalSeq {
			t.Fatalf("%s: the oldest signals of %s are %v", line(r), name, waiting)
		}
		v.signals[name] = v.signals[name][1:]
	}
	switch r.Event.Type() {
	case history.TypeStepSucceeded, history.TypeStepSkipped, history.TypeStepFailed, history.TypeStepRecovered, history.TypeStepCancelled, history.TypeTimerFired, history.TypeSignalDelivered:
		v.resolves(t, r, unit)
	}
}

// begins checks the first event of a unit: whether it may start.
func (v *invariants) begins(t *rapid.T, r history.Record, unit string) {
	v.started[unit] = true
	key := history.ParseKey(unit)
	switch {
	case key.Compensation:
		if v.undone >= len(v.undo) || v.undo[v.undone] != key.Unit {
			t.Fatalf("%s: to undo were %v, done are %d", line(r), v.undo, v.undone)
		}
		return
	case key.Handler != "":
		v.handlerBegins(t, r, key)
		return
	case unit == outputUnit:
		return
	}
	if v.aborting {
		t.Fatalf("%s starts while aborting", line(r))
	}
	if key.Index >= 0 {
		v.open[key.Step]++
		if bound := v.limits[key.Step]; v.items[key.Step] <= key.Index || bound > 0 && v.open[key.Step] > bound {
			t.Fatalf("%s: %d open of %d items", line(r), v.open[key.Step], v.items[key.Step])
		}
		return
	}
	for _, p := range v.def.StepByID(key.Step).Predecessors {
		if before := v.def.Steps[p].ID; !v.through(before) {
			t.Fatalf("%s before %s is through", line(r), before)
		}
	}
	if s := v.def.StepByID(key.Step); s.MaxParallel != nil {
		if constant, ok := s.MaxParallel.Constant(); ok {
			n, _ := constant.Int64()
			v.limits[key.Step] = int(n)
		}
	}
}

func (v *invariants) handlerBegins(t *rapid.T, r history.Record, key history.Key) {
	if key.Handler != v.handler {
		t.Fatalf("%s: the handlers are %q", line(r), v.handler)
	}
	if r.Event.Type() == history.TypeStepCancelled {
		return
	}
	list := v.def.Handlers[key.Handler]
	step := list[slices.IndexFunc(list, func(s *definition.Step) bool { return s.ID == key.Step })]
	for _, p := range step.Predecessors {
		if before := history.HandlerKey(key.Handler, list[p].ID); !v.through(before) {
			t.Fatalf("%s before %s is through", line(r), before)
		}
	}
}

func (v *invariants) call(unit string) *definition.Call {
	key := history.ParseKey(unit)
	if key.Handler != "" {
		for _, s := range v.def.Handlers[key.Handler] {
			if s.ID == key.Step {
				return s.Call
			}
		}
		return nil
	}
	s := v.def.StepByID(key.Step)
	if key.Compensation {
		return s.Compensate
	}
	return s.Call
}

// policy checks an attempt against the retry policy.
func (v *invariants) policy(t *rapid.T, r history.Record, unit string, attempt uint32) {
	c := v.call(unit)
	most := c.Retry.MaxAttempts
	if c.Workflow != "" {
		most = 1
	}
	if most > 0 && attempt > most {
		t.Fatalf("%s: at most %d attempts", line(r), most)
	}
	if c.AtMostOnce && v.uncertain[unit] {
		t.Fatalf("%s: the outcome of an earlier attempt is unknown", line(r))
	}
}

func (v *invariants) dispatched(t *rapid.T, r history.Record, unit string) {
	v.deliver[unit]++
	if v.aborting && !history.IsCleanup(unit) {
		t.Fatalf("%s while aborting", line(r))
	}
	if c := v.call(unit); c.AtMostOnce && v.deliver[unit] > 1 {
		t.Fatalf("%s: a second delivery", line(r))
	}
}

func (v *invariants) resolves(t *rapid.T, r history.Record, unit string) {
	v.resolved[unit] = r.Event.Type()
	key := history.ParseKey(unit)
	switch {
	case key.Compensation:
		v.undone++
		return
	case key.Handler != "":
		return
	case key.Index >= 0:
		v.open[key.Step]--
	}
	if _, failed := r.Event.(history.StepFailed); failed {
		v.aborting = true
	}
	if _, joined := r.Event.(history.StepSucceeded); joined {
		for i := range v.items[unit] {
			if !v.through(history.ElementKey(unit, i)) {
				t.Fatalf("%s before element %d is through", line(r), i)
			}
		}
	}
}

// listed checks what is to be undone: each unit once, with a compensation, and
// a success or an attempt of unknown outcome.
func (v *invariants) listed(t *rapid.T, units []string) {
	v.undo = units
	seen := map[string]bool{}
	for _, unit := range units {
		key := history.ParseKey(unit)
		s := v.def.StepByID(key.Step)
		succeeded := v.resolved[unit] == history.TypeStepSucceeded
		if seen[unit] || s.Compensate == nil || s.For != nil != (key.Index >= 0) || !succeeded && !(s.WhenUncertain && v.uncertain[unit]) {
			t.Fatalf("%s is to be undone: %s", unit, v.resolved[unit])
		}
		seen[unit] = true
	}
	for unit, how := range v.resolved {
		key := history.ParseKey(unit)
		if s := v.def.StepByID(key.Step); s != nil && key.Handler == "" && !key.Compensation && s.Compensate != nil &&
			how == history.TypeStepSucceeded && s.For != nil == (key.Index >= 0) && !seen[unit] {
			t.Fatalf("%s succeeded and is not to be undone", unit)
		}
	}
}
