package engine

import (
	"cmp"
	"strings"

	"perigee/engine/decide"
	"perigee/engine/history"
	"perigee/store"
)

// Snapshots are written in the same commit once at least this many events, and
// this many bytes of them (or as many as the last snapshot had, if that is
// more), came since the last.
const (
	snapshotEvents = 200
	snapshotBytes  = 64 << 10
)

// build makes the commit of what was decided: events and their projections.
// Nil: there is nothing to write.
func (p *attempt) build(more bool) *store.Commit {
	m, l := p.machine, &p.loaded
	head := p.head(more)
	records := m.Records()
	if len(records) == 0 && (l.Head == nil || head.DueAtMS == l.Head.DueAtMS && l.Head.ErrorCount == 0) {
		return nil
	}
	c := &store.Commit{Head: head, Events: eventsOf(records)}
	if l.Head != nil {
		c.Seen = store.Seen{Incarnation: l.Head.Incarnation, Seq: l.Head.LastSeq}
	}
	p.projectTasks(c)
	p.projectAbort(c)
	p.projectChildren(c)
	p.projectMessages(c)
	p.snapshot(c)
	return c
}

func eventsOf(records []history.Record) []store.Event {
	events := make([]store.Event, len(records))
	for i, r := range records {
		events[i] = store.Event{
			Seq:  r.Seq,
			Type: string(r.Event.Type()),
			AtMS: r.TimestampMS,
			Data: string(history.AppendFields(nil, r.Event)),
		}
	}
	return events
}

// head is the head row after the decision.
func (p *attempt) head(more bool) store.Head {
	state := p.machine.State()
	h := headOf(p.machine, more)
	if p.loaded.Head != nil {
		h.Incarnation, h.Tags, h.RootID = p.loaded.Head.Incarnation, p.loaded.Head.Tags, p.loaded.Head.RootID
		return h
	}
	h.Incarnation, h.Tags = newIncarnation(), p.tags
	h.CreatedAtMS = state.CreatedAtMS
	return h
}

// rootID is the head's: "" for an execution without a parent.
func (p *attempt) rootID() string {
	if p.loaded.Head == nil {
		return ""
	}
	return p.loaded.Head.RootID
}

// headOf projects a state to its head row, without what history does not know
// (incarnation, root and tags). more: there is work left to do at once.
func headOf(m *decide.Machine, more bool) store.Head {
	s := m.State()
	h := store.Head{
		ID:             s.ID,
		Workflow:       s.Workflow,
		Version:        s.Version,
		DefinitionHash: s.DefinitionHash,
		Status:         string(s.Status),
		LastSeq:        s.LastSeq,
		LastAtMS:       s.UpdatedAtMS,
		CreatedAtMS:    s.CreatedAtMS,
	}
	if s.Parent != nil {
		h.ParentID, h.ParentStep = s.Parent.ExecutionID, s.Parent.Step
	}
	if s.FinishedAtMS != nil {
		h.FinishedAtMS = *s.FinishedAtMS
	}
	if more {
		h.DueAtMS = max(1, s.UpdatedAtMS)
	} else if wake, ok := m.HeadWake(); ok {
		h.DueAtMS = max(1, wake)
	}
	return h
}

// unitRow is how a unit stands in the queue.
type unitRow struct {
	there bool
	guard store.Guard
}

// rowBefore is how a unit's row was loaded.
func (p *attempt) rowBefore(unit string) unitRow {
	u := p.base.State().Unit(unit)
	if u == nil {
		return unitRow{}
	}
	switch u.Status {
	case history.UnitScheduled:
		if _, ok := p.base.Row(unit); ok {
			return unitRow{true, store.Guard{State: store.TaskReady}}
		}
	case history.UnitDispatched:
		if u.WithChild() {
			return unitRow{}
		}
		g := store.Guard{State: store.TaskDispatched, TokenHash: *u.Token}
		for _, r := range p.loaded.Reported {
			if r.Key == taskKey(p.id, unit) && r.TokenHash == *u.Token {
				g.State = store.TaskReported
			}
		}
		return unitRow{true, g}
	}
	return unitRow{}
}

// projectTasks writes the difference that the decision made to the queue.
func (p *attempt) projectTasks(c *store.Commit) {
	scheduled := map[string]uint64{}
	for _, r := range p.machine.Records() {
		if e, ok := r.Event.(history.StepScheduled); ok {
			scheduled[e.Step] = r.Seq
		}
	}
	dispatched := map[string]store.Task{}
	for _, t := range p.next {
		dispatched[t.Unit] = t
	}
	for _, unit := range p.machine.Touched() {
		before := p.rowBefore(unit)
		u := p.machine.State().Unit(unit)
		now, byNext := dispatched[unit]
		seq, again := scheduled[unit]
		stays := before.there && !again && !byNext &&
			(u.Status == history.UnitScheduled && before.guard.State == store.TaskReady ||
				u.Status == history.UnitDispatched && before.guard.TokenHash == *u.Token)
		if stays {
			continue
		}
		if before.there {
			c.Removed = append(c.Removed, store.TaskRemoval{Key: taskKey(p.id, unit), Guard: before.guard})
		}
		if byNext {
			c.Inserted = append(c.Inserted, bare(now))
		} else if row, ok := p.machine.Row(unit); ok && u.Status == history.UnitScheduled {
			c.Inserted = append(c.Inserted, readyTask(p.machine, p.rootID(), unit, row, seq))
		}
	}
}

// bare is the row of a task that is dispatched as it is inserted: who holds it.
// What it is nobody reads but the call that is repeated after a lost reply, and
// that one finds it in the history (Engine.recall).
func bare(t store.Task) store.Task {
	t.Queue, t.TaskName, t.ContractVersion, t.Workflow, t.WorkflowVersion, t.Input = "", "", "", "", "", ""
	return t
}

// readyTask is the queue row of a scheduled unit. Its history does not know the
// root, which is the head's.
func readyTask(m *decide.Machine, root, unit string, row decide.QueueRow, seq uint64) store.Task {
	s := m.State()
	u := s.Unit(unit)
	return store.Task{
		Key:             taskKey(s.ID, unit),
		ExecutionID:     s.ID,
		Unit:            unit,
		State:           store.TaskReady,
		Queue:           row.Queue,
		ReadyAtMS:       *u.ScheduledAtMS,
		ReadySeq:        seq,
		DueAtMS:         row.QueueDueMS,
		TaskName:        row.TaskName,
		ContractVersion: row.ContractVersion,
		Workflow:        s.Workflow,
		WorkflowVersion: s.Version,
		RootID:          root,
		Input:           string(u.Input),
		Attempt:         u.Attempt,
		Redelivery:      u.Redelivery,
		TimeoutMS:       row.TimeoutMS,
	}
}

// projectAbort marks the rows of units that the abort asks to stop: ready ones
// that this call did not get to must not be claimed any more.
func (p *attempt) projectAbort(c *store.Commit) {
	if p.base.State().Abort != nil || p.machine.State().Abort == nil {
		return
	}
	for i := range c.Inserted {
		if t := &c.Inserted[i]; !history.IsCleanup(t.Unit) && t.State == store.TaskReady {
			t.State = store.TaskHeld
		}
	}
	replaced := map[string]bool{}
	for _, r := range c.Removed {
		replaced[r.Key] = true
	}
	for unit, u := range p.machine.State().Units() {
		if history.IsCleanup(unit) || u.Status != history.UnitScheduled && u.Status != history.UnitDispatched {
			continue
		}
		key := taskKey(p.id, unit)
		if row := p.rowBefore(unit); row.there && !replaced[key] {
			c.Marked = append(c.Marked, store.TaskMark{Key: key, Guard: row.guard})
		}
	}
}

// projectChildren creates the child executions that were dispatched. They are
// due at once: whoever sees them first advances them.
func (p *attempt) projectChildren(c *store.Commit) {
	for _, s := range p.machine.Children() {
		name, version, _ := strings.Cut(s.Name, "@")
		created := history.WorkflowCreated{Workflow: name, Version: version, DefinitionHash: s.Hash, Input: s.Input, Parent: &s.Parent}
		now := p.machine.Now()
		records := []history.Record{
			{Seq: 1, TimestampMS: now, Event: created},
			{Seq: 2, TimestampMS: now, Event: history.WorkflowStarted{}},
		}
		c.Children = append(c.Children, store.NewExecution{
			Head: store.Head{
				ID: s.ID, Incarnation: newIncarnation(),
				Workflow: name, Version: version, DefinitionHash: s.Hash,
				Status: string(history.Running), LastSeq: 2, LastAtMS: now, DueAtMS: max(1, now),
				ParentID: s.Parent.ExecutionID, ParentStep: s.Parent.Step, RootID: cmp.Or(p.rootID(), p.id), CreatedAtMS: now,
			},
			Events: eventsOf(records),
		})
	}
}

// snapshot adds a snapshot where enough came since the last one.
func (p *attempt) snapshot(c *store.Commit) {
	s := p.machine.State()
	since := p.size.plus(c.Events)
	if s.Status.Terminal() || len(c.Events) == 0 || since.events < snapshotEvents ||
		since.eventsBytes < max(snapshotBytes, since.snapshot) {
		return
	}
	c.Snapshot = &store.Snapshot{Seq: s.LastSeq, Format: history.Format, Data: string(s.AppendSnapshot(nil))}
}

func taskKey(execution, unit string) string { return execution + "/" + unit }

// unitOf is the unit of a task row's key.
func unitOf(execution, key string) (string, bool) {
	return strings.CutPrefix(key, execution+"/")
}
