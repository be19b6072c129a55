package view

import (
	"slices"
	"strconv"
	"strings"

	"perigee/engine/definition"
	"perigee/engine/history"
)

// Source is what an execution is shown from.
type Source struct {
	ID      string
	Records []history.Record // the whole history
	// Definition is what the execution follows; nil: steps that have not begun
	// are not known.
	Definition *definition.Definition
	// Workers are those known to the server; nil: not asked for.
	Workers []Worker
	NowMS   int64
}

// Worker is a worker that may be waited for.
type Worker struct {
	ID         string
	Online     bool
	LastSeenMS int64
	Runtime    string   // lower case
	Tasks      []string // name@version
}

// Execution is an execution as a person sees it.
type Execution struct {
	State     *history.State
	Steps     []*Step // the main list, in the definition's order
	Undo      []*Step // compensations, in the order in which they run
	Handlers  []*Step // of on_failure, on_cancel or on_timeout
	Workers   []Worker
	Signals   []history.Signal // that nobody has taken yet
	EndsAtMS  int64            // when the execution times out, 0: never
	NowMS     int64
	StartedMS int64
}

// Step is one unit: a step, an element of a `for`, a compensation or a handler
// step.
type Step struct {
	Key      string
	Def      *definition.Step // nil: not known
	Unit     *history.Unit    // nil: not begun
	Attempts []Attempt
	Skipped  string   // why it was skipped
	WaitsFor []string // unresolved steps before it, while it has not begun
	Elements []*Step  // of a `for`
	BeganMS  int64    // first event about it, 0: none
	EndedMS  int64    // 0: not ended
	ChangeMS int64    // when its present status began
}

// Attempt is one hand-out of a task to a worker.
type Attempt struct {
	Number     uint32
	Redelivery bool
	Worker     string // "": a failure before any worker took it
	FromMS     int64
	ToMS       int64 // 0: under way
	Outcome    Outcome
	Late       bool               // succeeded after it was given up
	Error      *history.TaskError // of Failed
	Reason     string             // of Uncertain
}

// Outcome is how an attempt ended.
type Outcome string

// The outcomes of an attempt.
const (
	UnderWay  Outcome = ""
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	Uncertain Outcome = "lost"
	Cancelled Outcome = "cancelled"
)

// Of makes the view of a history.
func Of(s Source) *Execution {
	b := builder{steps: map[string]*Step{}, state: history.New(s.ID), def: s.Definition}
	for i := range s.Records {
		b.record(s.Records[i])
	}
	b.state.ApplyAll(s.Records)
	e := &Execution{
		State: b.state, Workers: s.Workers, NowMS: max(s.NowMS, b.state.UpdatedAtMS), StartedMS: b.state.CreatedAtMS,
	}
	for key, u := range b.state.Units() {
		b.step(key).Unit = u
	}
	e.Steps = b.mainSteps()
	e.Undo = b.undoSteps()
	e.Handlers = b.handlerSteps()
	for signal := range b.state.Signals() {
		if signal.DeliveredTo == nil {
			e.Signals = append(e.Signals, signal)
		}
	}
	if s.Definition != nil && s.Definition.TimeoutMS > 0 && !b.state.Status.Terminal() {
		e.EndsAtMS = b.state.CreatedAtMS + s.Definition.TimeoutMS
	}
	return e
}

// builder gathers what events say of each unit.
type builder struct {
	steps map[string]*Step
	order []string // keys as they first appeared
	state *history.State
	def   *definition.Definition
}

func (b *builder) step(key string) *Step {
	if s, ok := b.steps[key]; ok {
		return s
	}
	s := &Step{Key: key}
	b.steps[key] = s
	b.order = append(b.order, key)
	return s
}

// record takes note of one event.
func (b *builder) record(r history.Record) {
	key := r.Event.Unit()
	if key == "" {
		return
	}
	if _, ok := r.Event.(history.CompensationFailed); ok {
		return // it names the unit that was to be undone; that is over for long
	}
	s := b.step(key)
	switch e := r.Event.(type) {
	case history.StaleResultIgnored, history.AttemptProgress:
		return // they change no status
	case history.StepDispatched:
		s.Attempts = append(s.Attempts, Attempt{Number: e.Attempt, Worker: e.WorkerID, FromMS: r.TimestampMS, Redelivery: s.redelivered(e.Attempt)})
	case history.StepSkipped:
		s.Skipped = e.Reason
	case history.StepSucceeded:
		s.end(r, Attempt{Number: e.Attempt, Outcome: Succeeded})
	case history.StepAttemptFailed:
		s.end(r, Attempt{Number: e.Attempt, Outcome: Failed, Error: &e.Error})
	case history.StepAttemptUncertain:
		s.end(r, Attempt{Number: e.Attempt, Outcome: Uncertain, Reason: e.Reason})
	case history.StepCancelled:
		s.end(r, Attempt{Outcome: Cancelled})
	}
	if s.BeganMS == 0 {
		s.BeganMS = r.TimestampMS
	}
	s.ChangeMS = r.TimestampMS
	if resolves(r.Event) {
		s.EndedMS = r.TimestampMS
	}
}

// redelivered reports whether the attempt was handed out before.
func (s *Step) redelivered(attempt uint32) bool {
	return slices.ContainsFunc(s.Attempts, func(a Attempt) bool { return a.Number == attempt })
}

// end closes the attempt under way. The success of an older attempt counts,
// and then ends the one under way too. A failure without one (no worker took
// the task in time) is an attempt of its own.
func (s *Step) end(r history.Record, how Attempt) {
	if n := len(s.Attempts); n > 0 && s.Attempts[n-1].Outcome == UnderWay {
		a := &s.Attempts[n-1]
		if how.Outcome == Succeeded && how.Number != a.Number {
			a.ToMS, a.Outcome = r.TimestampMS, Cancelled
			s.succeedLate(r, how.Number)
			return
		}
		a.ToMS, a.Outcome, a.Error, a.Reason = r.TimestampMS, how.Outcome, how.Error, how.Reason
		return
	}
	if how.Outcome == Succeeded {
		s.succeedLate(r, how.Number)
	}
	if how.Outcome == Failed {
		how.FromMS, how.ToMS = s.ChangeMS, r.TimestampMS
		s.Attempts = append(s.Attempts, how)
	}
}

// succeedLate notes that an attempt that was given up succeeded after all.
func (s *Step) succeedLate(r history.Record, number uint32) {
	for i := range s.Attempts {
		if a := &s.Attempts[i]; a.Number == number && a.Outcome != Cancelled {
			a.ToMS, a.Outcome, a.Late = r.TimestampMS, Succeeded, true
			return
		}
	}
}

func resolves(e history.Event) bool {
	switch e.(type) {
	case history.StepSucceeded, history.StepFailed, history.StepSkipped, history.StepCancelled, history.StepRecovered,
		history.TimerFired, history.SignalDelivered:
		return true
	}
	return false
}

// Prefixes of the keys of cleanup units.
const (
	undoPrefix    = "compensate:"
	handlerPrefix = "on_"
)

func isUndo(key string) bool { return strings.HasPrefix(key, undoPrefix) }

func isHandler(key string) bool {
	kind, _, ok := strings.Cut(key, ":")
	return ok && strings.HasPrefix(kind, handlerPrefix)
}

// element splits the key of an element into its step's and its index.
func element(key string) (parent string, index int, ok bool) {
	parent, rest, ok := strings.Cut(key, "[")
	if !ok {
		return key, 0, false
	}
	index, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	return parent, index, err == nil
}

// mainSteps are the steps of the definition, or without one those that the
// history speaks of, with their elements below them.
func (b *builder) mainSteps() []*Step {
	var list []*Step
	if b.def != nil {
		for _, d := range b.def.Steps {
			s := b.step(d.ID)
			s.Def = d
			s.WaitsFor = b.unresolved(d)
			list = append(list, s)
		}
	}
	for _, key := range b.order {
		s := b.steps[key]
		parent, _, isElement := element(key)
		switch {
		case isUndo(key) || isHandler(key):
		case isElement:
			p := b.step(parent)
			s.Def = p.Def
			p.Elements = append(p.Elements, s)
		case s.Def == nil && s.Unit != nil:
			list = append(list, s)
		}
	}
	for _, s := range list {
		slices.SortFunc(s.Elements, byIndex)
	}
	return list
}

func byIndex(a, b *Step) int {
	_, i, _ := element(a.Key)
	_, j, _ := element(b.Key)
	return i - j
}

// unresolved names the steps that a step still waits for.
func (b *builder) unresolved(d *definition.Step) []string {
	var names []string
	for _, p := range d.Predecessors {
		id := b.def.Steps[p].ID
		if u := b.state.Unit(id); u == nil || !u.Status.Resolved() {
			names = append(names, id)
		}
	}
	return names
}

// undoSteps are the compensations in their order.
func (b *builder) undoSteps() []*Step {
	var list []*Step
	for _, key := range b.state.CompensationOrder {
		s := b.step(undoPrefix + key)
		s.Def = b.defOf(key)
		list = append(list, s)
	}
	return list
}

func (b *builder) defOf(key string) *definition.Step {
	if b.def == nil {
		return nil
	}
	id, _, _ := element(key)
	return b.def.StepByID(id)
}

// handlerSteps are the steps of the handler list that runs or ran.
func (b *builder) handlerSteps() []*Step {
	var list []*Step
	listed := map[string]bool{}
	if b.def != nil && b.state.Handlers != nil {
		prefix := handlerPrefix + b.state.Handlers.Kind + ":"
		for _, d := range b.def.Handlers[b.state.Handlers.Kind] {
			s := b.step(prefix + d.ID)
			s.Def = d
			list, listed[s.Key] = append(list, s), true
		}
	}
	for _, key := range b.order {
		if isHandler(key) && !listed[key] {
			list = append(list, b.steps[key])
		}
	}
	return list
}

// Status is the unit's status, UnitPending while it has not begun.
func (s *Step) Status() history.UnitStatus {
	if s.Unit == nil {
		return history.UnitPending
	}
	return s.Unit.Status
}
