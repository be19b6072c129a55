package decide

import (
	"maps"
	"slices"

	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// Bounds of one call: after so many events, or starts, it commits whole rounds
// and goes on in another call.
const (
	maxEventsPerCall = 1000
	maxStartsPerCall = 500
	// MaxChildrenPerCall bounds how many heads one commit spans.
	MaxChildrenPerCall = 100
)

// Program is all that decisions depend on beside state and time.
type Program struct {
	Definition *definition.Definition
	// Children are the pinned definitions of the workflows that steps start,
	// by "name@version".
	Children map[string]*definition.Definition
	Limits   Limits
}

// Machine is an execution that can be advanced: its state, and indexes over it.
// Use New, then commands and Run; Records is what they decided. A Machine is
// not safe for concurrent use.
type Machine struct {
	def      *definition.Definition
	children map[string]*definition.Definition
	limits   Limits
	state    *history.State

	// main has the status of each main step, done how many are through, and
	// startable those that nothing keeps from starting or whose elements run.
	main      []history.UnitStatus
	done      int
	startable stepSet
	// open holds the units between start and resolution, by status.
	open openSet
	// headMoments are the moments of units without a task row, taskMoments
	// those that a task row stands for.
	headMoments, taskMoments momentSet
	fans                     map[int32]fan
	childSteps               [phaseHandler][]int32 // by phase; never changed
	compensated              int                   // compensations resolved; they run in order, one at a time

	now     int64
	records []history.Record
	touched []string
	before  int // of records, when Run began
	started int // units started by Run
	// Of this call: children to create, and ids that turned out to be taken.
	starts []ChildStart
	taken  map[string]bool
}

// fan is how far a fan-out is.
type fan struct {
	items []exactjson.Value // shared, never changed; nil until asked for
	next  int               // elements below were started
	open  int               // started and not resolved
	ok    int               // succeeded
}

// New makes a machine for a state, in time linear in the state's size. The
// state belongs to the machine from then on.
func New(p Program, state *history.State) *Machine {
	m := &Machine{
		def:         p.Definition,
		children:    p.Children,
		limits:      p.Limits.stricter(p.Definition.Limits),
		state:       state,
		main:        make([]history.UnitStatus, len(p.Definition.Steps)),
		startable:   newStepSet(len(p.Definition.Steps)),
		open:        newOpenSet(),
		headMoments: newMomentSet(),
		taskMoments: newMomentSet(),
		fans:        map[int32]fan{},
		childSteps:  findChildSteps(p.Definition),
	}
	for key, u := range state.Units() {
		if r, ok := m.locate(key); ok {
			m.reindex(r, nil, u)
		}
	}
	for step := range m.main {
		m.lineUp(step)
	}
	return m
}

// Clone gives an independent machine that has decided nothing yet. It shares
// everything with the original copy-on-write.
func (m *Machine) Clone() *Machine {
	c := *m
	c.state = m.state.Clone()
	c.main = slices.Clone(m.main)
	c.startable = slices.Clone(m.startable)
	c.open = m.open.clone()
	c.headMoments = m.headMoments.clone()
	c.taskMoments = m.taskMoments.clone()
	c.fans = maps.Clone(m.fans)
	c.records, c.touched, c.starts, c.taken = nil, nil, nil, nil
	c.before, c.started = 0, 0
	return &c
}

// State is the state as it is after everything applied so far. It must not be
// changed by the caller.
func (m *Machine) State() *history.State { return m.state }

// Definition is the definition that the machine runs.
func (m *Machine) Definition() *definition.Definition { return m.def }

// Records are the events that this machine decided since New or Clone.
func (m *Machine) Records() []history.Record { return m.records }

// Touched lists the keys of the units that Records changed, in order, each once.
func (m *Machine) Touched() []string {
	seen := make(map[string]bool, len(m.touched))
	keys := m.touched[:0:0]
	for _, k := range m.touched {
		if !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

// At sets the time of the commands and rounds that follow, in epoch
// milliseconds. It never falls below the time of the last event.
func (m *Machine) At(nowMS int64) { m.now = max(nowMS, m.state.UpdatedAtMS) }

// Now is the time that events get.
func (m *Machine) Now() int64 { return m.now }

// Replay applies an event that is in the history already.
func (m *Machine) Replay(rec history.Record) { m.apply(rec) }

// emit appends an event and applies it.
func (m *Machine) emit(e history.Event) {
	rec := history.Record{Seq: m.state.LastSeq + 1, TimestampMS: m.now, Event: e}
	m.records = append(m.records, rec)
	if unit := e.Unit(); unit != "" {
		m.touched = append(m.touched, unit)
	}
	m.apply(rec)
}

func (m *Machine) apply(rec history.Record) {
	key := rec.Event.Unit()
	if _, ok := rec.Event.(history.CompensationFailed); ok || key == "" {
		m.state.Apply(rec)
		return
	}
	before := m.state.Unit(key)
	m.state.Apply(rec)
	if r, ok := m.locate(key); ok {
		m.reindex(r, before, m.state.Unit(key))
	}
}

// reindex moves a unit from one place in the indexes to another.
func (m *Machine) reindex(r ref, before, after *history.Unit) {
	var was, is history.UnitStatus
	if before != nil {
		was = before.Status
	}
	if after != nil {
		is = after.Status
	}
	m.removeMoment(r, before)
	m.addMoment(r, after)
	if was != is {
		m.open.move(r, was, is)
	}
	switch {
	case r.phase == phaseCompensation:
		m.compensated += resolvedNow(was, is)
	case r.phase == phaseHandler || int(r.step) == len(m.main):
	case r.elem != whole:
		m.reindexElement(r, was, is)
	default:
		m.reindexStep(int(r.step), was, is)
	}
}

func (m *Machine) reindexStep(step int, was, is history.UnitStatus) {
	m.main[step] = is
	m.lineUp(step)
	if now := throughNow(was, is); now != 0 {
		m.done += now
		for _, dependent := range m.def.Steps[step].Dependents {
			m.lineUp(dependent)
		}
	}
}

// lineUp puts a main step among the startable ones, or takes it out of them.
func (m *Machine) lineUp(step int) {
	status := m.main[step]
	m.startable.set(step, status == history.UnitRunning || status == history.UnitPending && m.predecessorsThrough(step))
}

func (m *Machine) reindexElement(r ref, was, is history.UnitStatus) {
	f := m.fans[r.step]
	if is != history.UnitPending {
		f.next = max(f.next, int(r.elem)+1)
	}
	f.open += opened(is) - opened(was)
	f.ok += through(is) - through(was)
	m.fans[r.step] = f
}

// items are the elements of a `for` step that has fanned out.
func (m *Machine) items(step int32) []exactjson.Value {
	f := m.fans[step]
	if u := m.state.Unit(m.def.Steps[step].ID); f.items == nil && u != nil && u.Items > 0 {
		f.items = slices.Collect(u.Input.Elements())
		m.fans[step] = f
	}
	return f.items
}

func opened(s history.UnitStatus) int {
	if s == history.UnitPending || s.Resolved() {
		return 0
	}
	return 1
}

func through(s history.UnitStatus) int {
	if s == history.UnitSucceeded || s == history.UnitSkipped {
		return 1
	}
	return 0
}

func throughNow(was, is history.UnitStatus) int { return through(is) - through(was) }

func resolvedNow(was, is history.UnitStatus) int {
	switch {
	case was.Resolved() == is.Resolved():
		return 0
	case is.Resolved():
		return 1
	}
	return -1
}

// status is the status of a unit, pending where it was never mentioned.
func (m *Machine) status(key string) history.UnitStatus {
	if u := m.state.Unit(key); u != nil {
		return u.Status
	}
	return history.UnitPending
}

func (m *Machine) aborting() bool { return m.state.Abort != nil }
