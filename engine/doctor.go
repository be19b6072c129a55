package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"perigee/engine/decide"
	"perigee/engine/history"
	"perigee/store"
)

// Doctor compares every projection with what its history says, and with
// rebuild mends what differs. each is told of every difference. It returns how
// many executions were looked at.
func (e *Engine) Doctor(ctx context.Context, rebuild bool, each func(Finding)) (checked int, err error) {
	var f store.Filter
	f.Limit = maxHistoryPage
	for {
		heads, err := e.store.Executions(ctx, f)
		if err != nil {
			return checked, fromStore(err, "executions")
		}
		for _, h := range heads {
			if err := e.examine(ctx, h, rebuild, each); err != nil {
				return checked, err
			}
			checked++
		}
		if len(heads) < f.Limit {
			return checked, nil
		}
		last := heads[len(heads)-1]
		f.AfterCreatedMS, f.AfterID = last.CreatedAtMS, last.ID
	}
}

// DoctorOf is Doctor for some executions, without mending anything.
func (e *Engine) DoctorOf(ctx context.Context, ids []string, each func(Finding)) (checked int, err error) {
	for _, id := range ids {
		if err := e.examine(ctx, store.Head{ID: id}, false, each); err != nil {
			return checked, err
		}
		checked++
	}
	return checked, nil
}

// examine compares one execution. Where it changed while it was read, it is
// read again.
func (e *Engine) examine(ctx context.Context, h store.Head, rebuild bool, each func(Finding)) error {
	for range maxTries {
		before, err := e.store.Load(ctx, store.LoadRequest{ID: h.ID, NowMS: e.nowMS()})
		if err != nil {
			return fromStore(err, "execution")
		}
		if before.Head == nil {
			return nil
		}
		truth, err := e.replayAll(ctx, *before.Head)
		var damaged *decisionError
		if errors.As(err, &damaged) {
			each(Finding{ExecutionID: h.ID, What: err.Error()})
			return nil
		}
		if err != nil {
			return fromStore(err, "history")
		}
		rows, err := e.store.Tasks(ctx, h.ID)
		if err != nil {
			return fromStore(err, "tasks")
		}
		after, err := e.store.Load(ctx, store.LoadRequest{ID: h.ID, NowMS: e.nowMS()})
		if err != nil {
			return fromStore(err, "execution")
		}
		if after.Head == nil || after.Head.LastSeq != before.Head.LastSeq {
			continue
		}
		err = e.compare(ctx, *before.Head, truth, rows, rebuild, each)
		var lost *store.LostError
		if errors.As(err, &lost) {
			continue // somebody was faster: what was read is old
		}
		return err
	}
	each(Finding{ExecutionID: h.ID, What: "it changes faster than it can be examined; try again"})
	return nil
}

// replayAll folds a whole history, without snapshots. A decisionError says what is
// wrong with it.
func (e *Engine) replayAll(ctx context.Context, h store.Head) (m *decide.Machine, err error) {
	defer caught(h.ID, &err)
	program, err := e.program(ctx, h.DefinitionHash)
	if err != nil {
		return nil, err
	}
	state := history.New(h.ID)
	for {
		events, err := e.store.History(ctx, h.ID, state.LastSeq, maxHistoryPage, maxPageBytes)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			break
		}
		records, err := recordsOf(events)
		if err != nil {
			return nil, err
		}
		for i, r := range records {
			if r.Seq != state.LastSeq+1 {
				return nil, &decisionError{fmt.Errorf("a gap in its history: %d follows %d", r.Seq, state.LastSeq)}
			}
			state.ApplyAll(records[i : i+1])
		}
	}
	m = decide.New(program, state)
	m.At(0)
	return m, nil
}

func (e *Engine) compare(ctx context.Context, h store.Head, truth *decide.Machine, rows []store.Task, rebuild bool, each func(Finding)) error {
	want := headOf(truth, workLeft(truth))
	want.Incarnation, want.Tags, want.RootID, want.ErrorCount = h.Incarnation, h.Tags, h.RootID, h.ErrorCount
	differences := append(headDifferences(want, h), e.rowDifferences(truth, h.RootID, rows)...)
	if len(differences) == 0 {
		return nil
	}
	repaired := false
	if rebuild {
		c := store.Commit{
			Seen: store.Seen{Incarnation: h.Incarnation, Seq: h.LastSeq}, Head: want,
			Removed: asRead(rows), Inserted: e.rebuiltRows(truth, h.RootID, rows), ReplaceTasks: true,
		}
		c.Head.ErrorCount = 0
		err := e.store.Commit(ctx, c)
		var lost *store.LostError
		if errors.As(err, &lost) {
			return err
		}
		if err != nil {
			return fromStore(err, "execution")
		}
		e.states.drop(h.ID)
		repaired = true
	}
	for _, d := range differences {
		each(Finding{ExecutionID: h.ID, What: d, Repaired: repaired})
	}
	return nil
}

// workLeft reports whether a history ends with work to do at once. A dispatch
// decides nothing: what it brings on comes with the next call.
func workLeft(truth *decide.Machine) bool {
	for _, u := range truth.State().Units() {
		if u.LastDispatchSeq == truth.State().LastSeq {
			return false
		}
	}
	at, ok := truth.Wake()
	return ok && at <= truth.State().UpdatedAtMS
}

func headDifferences(want, have store.Head) []string {
	var d []string
	differ := func(name string, want, have any) {
		if want != have {
			d = append(d, fmt.Sprintf("head: %s is %v, its history says %v", name, have, want))
		}
	}
	differ("workflow", want.Workflow, have.Workflow)
	differ("version", want.Version, have.Version)
	differ("definition_hash", want.DefinitionHash, have.DefinitionHash)
	differ("status", want.Status, have.Status)
	differ("last_seq", want.LastSeq, have.LastSeq)
	differ("last_at", want.LastAtMS, have.LastAtMS)
	differ("created_at", want.CreatedAtMS, have.CreatedAtMS)
	differ("finished_at", want.FinishedAtMS, have.FinishedAtMS)
	differ("parent", want.ParentID+" "+want.ParentStep, have.ParentID+" "+have.ParentStep)
	// An early wake-up is harmless and corrects itself; a late one is lost time.
	if want.DueAtMS > 0 && (have.DueAtMS == 0 || have.DueAtMS > want.DueAtMS) && have.ErrorCount == 0 {
		differ("due_at", want.DueAtMS, have.DueAtMS)
	}
	if have.ErrorCount > 0 {
		d = append(d, fmt.Sprintf("parked: %d decisions in a row failed; the server's log says why", have.ErrorCount))
	}
	return d
}

// rowDifferences compares the queue with what a history says is in it.
func (e *Engine) rowDifferences(truth *decide.Machine, root string, rows []store.Task) []string {
	var d []string
	have := map[string]store.Task{}
	for _, t := range rows {
		have[t.Unit] = t
	}
	for unit := range truth.State().Units() {
		want, ok := e.rowWanted(truth, root, unit)
		t, there := have[unit]
		delete(have, unit)
		switch {
		case !ok && !there:
		case !ok:
			d = append(d, fmt.Sprintf("task %s: a row is there, its history says none", unit))
		case !there:
			d = append(d, fmt.Sprintf("task %s: no row is there, its history says %s", unit, stateName(want.State)))
		default:
			d = append(d, rowDifference(unit, want, t)...)
		}
	}
	for _, t := range rows {
		if _, left := have[t.Unit]; left {
			d = append(d, fmt.Sprintf("task %s: a row is there, its history does not know it", t.Unit))
		}
	}
	return d
}

func rowDifference(unit string, want, have store.Task) []string {
	var d []string
	differ := func(name string, want, have any) {
		if want != have {
			d = append(d, fmt.Sprintf("task %s: %s is %v, its history says %v", unit, name, have, want))
		}
	}
	if want.State != have.State && (want.State != store.TaskDispatched || have.State != store.TaskReported) {
		differ("state", stateName(want.State), stateName(have.State))
		return d
	}
	isBare := have.TaskName == "" && want.State == store.TaskDispatched
	if !isBare {
		differ("queue", want.Queue, have.Queue)
	}
	differ("attempt", want.Attempt, have.Attempt)
	differ("redelivery", want.Redelivery, have.Redelivery)
	differ("timeout_ms", want.TimeoutMS, have.TimeoutMS)
	differ("root", want.RootID, have.RootID)
	if want.Input != have.Input && !isBare {
		d = append(d, fmt.Sprintf("task %s: its input is not that of its history", unit))
	}
	if want.State != store.TaskDispatched {
		differ("due_at", want.DueAtMS, have.DueAtMS)
		return d
	}
	differ("token", want.TokenHash, have.TokenHash)
	differ("worker", want.WorkerID, have.WorkerID)
	differ("deadline", want.DeadlineMS, have.DeadlineMS)
	if have.State == store.TaskDispatched && have.DueAtMS == 0 {
		d = append(d, fmt.Sprintf("task %s: a dispatched row without a due moment", unit))
	}
	return d
}

func stateName(s store.TaskState) string {
	return [...]string{"ready", "dispatched", "reported", "held"}[s]
}

// rowWanted is the row that a unit must have; false where it has none.
func (e *Engine) rowWanted(m *decide.Machine, root, unit string) (store.Task, bool) {
	row, ok := m.Row(unit)
	u := m.State().Unit(unit)
	if !ok || u.Status == history.UnitDispatched && u.WithChild() {
		return store.Task{}, false
	}
	t := readyTask(m, root, unit, row, m.State().LastSeq)
	stops := m.State().Abort != nil && !history.IsCleanup(unit) // see projectAbort
	if u.Status != history.UnitDispatched {
		if stops {
			t.State = store.TaskHeld
		}
		return t, true
	}
	t.State, t.Stop = store.TaskDispatched, stops
	t.Session, t.WorkerID, t.TokenHash = *u.WorkerSession, *u.WorkerID, *u.Token
	t.DispatchedMS = *u.DispatchedAtMS
	if u.DeadlineMS != nil {
		t.DeadlineMS = *u.DeadlineMS
	}
	// A history does not tell whether the worker of a push has taken the call.
	t.DueAtMS = t.DeadlineMS
	if timeout := t.DispatchedMS + e.opts.SessionTimeout.Milliseconds(); !strings.HasPrefix(t.Session, builtinPrefix) && (t.DueAtMS == 0 || timeout < t.DueAtMS) {
		t.DueAtMS = timeout
	}
	return t, true
}

// asRead removes rows only as they were read: a result that was accepted into
// the inbox since must not be lost with its row.
func asRead(rows []store.Task) []store.TaskRemoval {
	removals := make([]store.TaskRemoval, len(rows))
	for i, t := range rows {
		removals[i] = store.TaskRemoval{Key: t.Key, Guard: store.Guard{State: t.State, TokenHash: t.TokenHash}}
		if t.State == store.TaskHeld {
			removals[i].Guard.State = store.TaskReady // which means both
		}
	}
	return removals
}

// rebuiltRows are all rows of an execution. What history does not keep (the
// secret of an attempt under way, a result in the inbox) is taken over from
// the row that is there.
func (e *Engine) rebuiltRows(m *decide.Machine, root string, rows []store.Task) []store.Task {
	have := map[string]store.Task{}
	for _, t := range rows {
		have[t.Unit] = t
	}
	var rebuilt []store.Task
	for unit := range m.State().Units() {
		want, ok := e.rowWanted(m, root, unit)
		if !ok {
			continue
		}
		if t, there := have[unit]; there {
			want.ReadySeq = t.ReadySeq
			if want.State == store.TaskDispatched && t.TokenHash == want.TokenHash {
				want.Secret, want.ClaimKey, want.Stop = t.Secret, t.ClaimKey, t.Stop
				want.State, want.Report = t.State, t.Report
			}
		}
		rebuilt = append(rebuilt, want)
	}
	return rebuilt
}
