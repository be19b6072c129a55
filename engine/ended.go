package engine

import (
	"cmp"
	"strings"

	"perigee/engine/decide"
	"perigee/engine/history"
	"perigee/store"
)

// Ended is an execution, or one attempt of its units, that a commit has brought
// to its end: what a trace shows as a span. It holds no payload and no message.
type Ended struct {
	ExecutionID     string
	RootID          string // of the family; the execution's own id where it has no parent
	Workflow        string
	WorkflowVersion string
	StartMS, EndMS  int64  // created or dispatched, and ended
	ErrorCode       string // "" where nothing failed
	// Status and Parent are the execution's; Parent is nil without one.
	Status history.Status
	Parent *history.ParentRef
	// Attempt is the attempt that ended; nil: it is the execution itself.
	Attempt *EndedAttempt
}

// EndedAttempt is an attempt of a unit. One that was handed out again after its
// outcome was unknown ends once, and began when it was last handed out.
type EndedAttempt struct {
	Unit       string
	Calls      string // name of the task, or name@version of the child workflow
	Child      bool   // a child execution was the attempt
	Number     uint32
	Redelivery bool
	WorkerID   string
	Outcome    Outcome
}

// Outcome is how an attempt ended.
type Outcome string

// The outcomes of attempts.
const (
	AttemptSucceeded  Outcome = "succeeded"
	AttemptFailed     Outcome = "failed"
	AttemptCancelled  Outcome = "cancelled"  // its unit was
	AttemptSuperseded Outcome = "superseded" // an earlier attempt succeeded after all
)

// tellEnded tells what a commit has ended, after it.
func (p *attempt) tellEnded() {
	if tell := p.engine.opts.Ended; tell != nil {
		if ended := endedBy(p.base, p.machine, p.commit.Head); len(ended) > 0 {
			tell(ended)
		}
	}
}

// endedBy lists what ended between two states of an execution, in the order of
// the events.
func endedBy(base, now *decide.Machine, head store.Head) []Ended {
	var list []Ended
	under := map[string]*Ended{} // units seen so far -> the attempt under way, if there is one
	for _, r := range now.Records() {
		unit := r.Event.Unit()
		if unit == "" {
			continue
		}
		a, seen := under[unit]
		if !seen {
			a = underWay(base, head, unit)
		}
		outcome, code := AttemptFailed, ""
		switch e := r.Event.(type) {
		case history.StepDispatched:
			a, outcome = begun(now, head, e, r.TimestampMS), ""
		case history.StepSucceeded:
			if outcome = AttemptSucceeded; a != nil && a.Attempt.Number != e.Attempt {
				outcome = AttemptSuperseded
			}
		case history.StepAttemptFailed:
			code = e.Error.Code
		case history.StepFailed:
			code = e.Error.Code
		case history.StepCancelled:
			outcome = AttemptCancelled
		default: // an attempt of unknown outcome goes on where it is handed out again
			outcome = ""
		}
		if a != nil && outcome != "" {
			a.EndMS, a.ErrorCode, a.Attempt.Outcome = r.TimestampMS, code, outcome
			list, a = append(list, *a), nil
		}
		under[unit] = a
	}
	if s := now.State(); s.Status.Terminal() && !base.State().Status.Terminal() {
		e := endedOf(head, head.CreatedAtMS)
		e.EndMS, e.Status, e.Parent = head.FinishedAtMS, s.Status, s.Parent
		if s.Error != nil {
			e.ErrorCode = s.Error.Code
		}
		list = append(list, e)
	}
	return list
}

// underWay is the attempt of a unit that is out, or has to be handed out again
// because nobody knows what became of it; nil where there is none.
func underWay(m *decide.Machine, head store.Head, unit string) *Ended {
	u := m.State().Unit(unit)
	if u == nil || u.DispatchedAtMS == nil {
		return nil
	}
	switch {
	case u.Status == history.UnitDispatched, u.Status == history.UnitUncertain, u.Status == history.UnitScheduled && u.Redelivery:
	default:
		return nil
	}
	e := endedOf(head, *u.DispatchedAtMS)
	e.Attempt = &EndedAttempt{Unit: unit, Number: u.Attempt, Redelivery: u.Redelivery, Child: u.WithChild(), Calls: m.Calls(unit)}
	if u.WorkerID != nil && !e.Attempt.Child {
		e.Attempt.WorkerID = *u.WorkerID
	}
	return &e
}

// begun is an attempt that was handed out just now.
func begun(m *decide.Machine, head store.Head, d history.StepDispatched, atMS int64) *Ended {
	e := endedOf(head, atMS)
	e.Attempt = &EndedAttempt{Unit: d.Step, Number: d.Attempt, Calls: m.Calls(d.Step), WorkerID: d.WorkerID}
	if u := m.State().Unit(d.Step); u != nil {
		e.Attempt.Redelivery = u.Redelivery
	}
	if strings.HasPrefix(d.WorkerSession, history.ChildSession) {
		e.Attempt.Child, e.Attempt.WorkerID = true, ""
	}
	return &e
}

func endedOf(head store.Head, startMS int64) Ended {
	return Ended{
		ExecutionID: head.ID, RootID: cmp.Or(head.RootID, head.ID),
		Workflow: head.Workflow, WorkflowVersion: head.Version, StartMS: startMS,
	}
}
