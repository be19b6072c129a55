package decide

import (
	"crypto/sha256"
	"encoding/hex"

	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// ChildWorker is the worker id of attempts that are child executions.
const ChildWorker = "perigee"

// ChildStart is a child execution that a decision creates. Its first two
// events are WorkflowCreated and WorkflowStarted, in the parent's commit.
type ChildStart struct {
	ID     string
	Unit   string // of the parent
	Name   string // "name@version"
	Hash   string
	Parent history.ParentRef
	Input  exactjson.Value
}

// Children are the child executions to create together with Records.
func (m *Machine) Children() []ChildStart { return m.starts }

// TakenChild says that an execution with a child's id exists. linked: it is
// that child (its parent link is equal), so that only the dispatch is missing.
func (m *Machine) TakenChild(id string, linked bool) {
	if m.taken == nil {
		m.taken = map[string]bool{}
	}
	m.taken[id] = linked
}

// findChildSteps lists the steps of each phase that run children, so that
// nobody has to look for them among thousands of scheduled tasks.
func findChildSteps(d *definition.Definition) (steps [phaseHandler][]int32) {
	for i, s := range d.Steps {
		if s.Call != nil && s.Call.Workflow != "" {
			steps[phaseMain] = append(steps[phaseMain], int32(i))
		}
		if s.Compensate != nil && s.Compensate.Workflow != "" {
			steps[phaseCompensation] = append(steps[phaseCompensation], int32(i))
		}
	}
	return steps
}

// startChildren dispatches scheduled `workflow` units to their children: the
// main steps' or, while winding down, those of the cleanup.
func (m *Machine) startChildren() {
	if len(m.def.Children) == 0 {
		return
	}
	if !m.aborting() {
		m.startChildrenOf(phaseMain, m.childSteps[phaseMain])
		return
	}
	m.startChildrenOf(phaseCompensation, m.childSteps[phaseCompensation])
	for i, s := range m.def.Handlers[m.handlerKind()] {
		if s.Call != nil && s.Call.Workflow != "" {
			m.startChildrenOf(phaseHandler, []int32{int32(i)})
		}
	}
}

func (m *Machine) startChildrenOf(p phase, steps []int32) {
	for _, step := range steps {
		from := ref{phase: p, step: step, elem: whole}
		for len(m.starts) < MaxChildrenPerCall {
			r, ok := m.open.firstOf(history.UnitScheduled, from)
			if !ok {
				break
			}
			m.startChild(r, m.call(r).Workflow)
			from.elem = r.elem + 1
		}
	}
}

func (m *Machine) startChild(r ref, name string) {
	key := m.key(r)
	u := m.state.Unit(key)
	input, fail := m.childInput(name, u.Input)
	id := history.ChildID(m.state.ID, key)
	linked, taken := m.taken[id]
	if fail == nil && taken && !linked {
		fail = failure(CodeChildStart, "an execution `%s` exists already and is not this step's child", id)
	}
	if fail != nil {
		m.emit(history.StepAttemptFailed{Step: key, Attempt: u.Attempt, Error: *fail})
		return
	}
	e := history.StepDispatched{
		Step:          key,
		Attempt:       u.Attempt,
		Token:         ChildToken(id),
		WorkerID:      ChildWorker,
		WorkerSession: history.ChildSession + id,
	}
	c := m.call(r)
	v := m.vars(r)
	v.NowMS = deref(u.ScheduledAtMS)
	if ms, _, fail := m.callTimes(c, v); fail == nil && ms > 0 {
		deadline := addMS(m.now, ms)
		e.DeadlineMS = &deadline
	}
	m.emit(e)
	if !taken {
		m.starts = append(m.starts, ChildStart{
			ID: id, Unit: key, Name: name, Hash: m.children[name].Hash,
			Parent: history.ParentRef{ExecutionID: m.state.ID, Step: key}, Input: input,
		})
	}
}

// childInput checks a child's input against the child's own schema.
func (m *Machine) childInput(name string, input exactjson.Value) (exactjson.Value, *history.TaskError) {
	child := m.children[name]
	if child == nil {
		return "", failure(CodeChildNotThere, "the child workflow %s is not registered", name)
	}
	filled, violations := child.Input.Apply(input)
	if len(violations) > 0 {
		return "", failure(CodeChildStart, "input of child workflow %s at %s", name, describe(violations))
	}
	if limit := m.limits.stricter(child.Limits).MaxPayloadBytes; limit > 0 && len(filled) > limit {
		return "", failure(CodeChildStart, "input of child workflow %s: %d bytes; the limit is %d (max_payload_bytes)", name, len(filled), limit)
	}
	return filled, nil
}

// ChildToken is the token under which a child's end resolves its unit. It is
// no secret: no worker can use it, since there is no task row.
func ChildToken(childID string) string {
	sum := sha256.Sum256([]byte(history.ChildSession + childID))
	return hex.EncodeToString(sum[:])
}

// ChildEnd is how a child ended.
type ChildEnd struct {
	Status   history.Status // "" where the child is missing
	Workflow string
	Output   exactjson.Value
	Error    *history.TaskError
}

// ChildEnded takes in a child's end. A unit that no longer waits for it is
// left alone; it reports whether anything was decided.
func (m *Machine) ChildEnded(unit, childID string, end ChildEnd) bool {
	u := m.state.Unit(unit)
	if end.Status != "" && !end.Status.Terminal() {
		return false
	}
	if u == nil || u.Status != history.UnitDispatched || u.Token == nil || *u.Token != ChildToken(childID) || m.state.Status.Terminal() {
		return false
	}
	token := *u.Token
	if end.Status == history.Completed {
		m.emit(history.StepSucceeded{Step: unit, Attempt: u.Attempt, Output: end.Output.OrNull(), Token: token})
		return true
	}
	m.emit(history.StepAttemptFailed{Step: unit, Attempt: u.Attempt, Error: *childFailure(childID, end), Token: token})
	return true
}

func childFailure(id string, end ChildEnd) *history.TaskError {
	details := exactjson.Value(`{"child_execution_id":` + string(exactjson.FromString(id)) + `}`)
	switch {
	case end.Status == history.Cancelled:
		return withDetails(failure(CodeChildCancelled, "child workflow `%s` was cancelled", end.Workflow), details)
	case end.Status == history.TimedOut:
		return withDetails(failure(CodeChildTimedOut, "child workflow `%s` timed out", end.Workflow), details)
	case end.Status == history.Failed:
		e := failure(end.Error.Code, "child workflow `%s` failed: %s", end.Workflow, end.Error.Message)
		e.Retryable = false
		return withDetails(e, details)
	}
	return withDetails(failure(CodeChildMissing, "child execution `%s` is missing", id), details)
}

// RunsChild reports whether a unit's work is a child execution that ends with
// it: one that is to be abandoned counts only where the unit ran out of time.
func (m *Machine) RunsChild(unit string) bool {
	u := m.state.Unit(unit)
	if u == nil || !u.WithChild() {
		return false
	}
	r, ok := m.locate(unit)
	c := m.call(r)
	return ok && c != nil && (!c.AbandonChild || u.Status != history.UnitDispatched)
}
