package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"perigee/engine/decide"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/store"
)

// Kinds of messages between executions. They are written in the commit that
// makes them true and delivered right after it or, if the process died, by the
// next tick. Delivering one twice changes nothing.
const (
	messageChildEnded  = "child_ended"  // to the parent: its unit's child is done, if it is
	messageCancelChild = "cancel_child" // to the child: nobody waits for it any more
)

// reasonParent is the reason of a cancellation that comes from the parent.
const reasonParent = "parent workflow aborted"

// projectMessages writes what other executions have to hear.
func (p *attempt) projectMessages(c *store.Commit) {
	state := p.machine.State()
	for _, unit := range p.childrenToCancel() {
		child := history.ChildID(p.id, unit)
		c.Outbox = append(c.Outbox, store.Message{
			ID:          child + "/" + messageCancelChild,
			Kind:        messageCancelChild,
			Source:      p.id,
			Target:      child,
			Unit:        unit,
			Payload:     string(exactjson.EmptyObject),
			CreatedAtMS: p.machine.Now(),
		})
	}
	p.askChildren(c)
	if state.Parent == nil || !state.Status.Terminal() || p.base.State().Status.Terminal() {
		return
	}
	c.Outbox = append(c.Outbox, store.Message{
		ID:          p.id + "/" + messageChildEnded,
		Kind:        messageChildEnded,
		Source:      p.id,
		Target:      state.Parent.ExecutionID,
		Unit:        state.Parent.Step,
		Payload:     string(exactjson.EmptyObject),
		CreatedAtMS: p.machine.Now(),
	})
}

// askChildren sends for the ends of children that existed before their units
// were dispatched: what such a child had to say may have come too early, and
// been passed over. One that still runs says it in its own time.
func (p *attempt) askChildren(c *store.Commit) {
	if len(p.taken) == 0 {
		return
	}
	for _, r := range p.machine.Records() {
		e, ok := r.Event.(history.StepDispatched)
		if child, found := strings.CutPrefix(e.WorkerSession, history.ChildSession); ok && found && p.taken[child] {
			c.Outbox = append(c.Outbox, store.Message{
				ID:          child + "/found",
				Kind:        messageChildEnded,
				Source:      child,
				Target:      p.id,
				Unit:        e.Step,
				Payload:     string(exactjson.EmptyObject),
				CreatedAtMS: p.machine.Now(),
			})
		}
	}
}

// childrenToCancel are the units whose children nobody waits for any more: all
// that are under way when the abort begins (compensations and handlers run
// on, an abandoned child is left alone), and those that ran out of time.
func (p *attempt) childrenToCancel() []string {
	var units []string
	for _, r := range p.machine.Records() {
		e, ok := r.Event.(history.StepAttemptFailed)
		if ok && e.Token == "" && e.Error.Code == decide.CodeTimeout && p.machine.RunsChild(e.Step) {
			units = append(units, e.Step)
		}
	}
	if p.base.State().Abort != nil || p.machine.State().Abort == nil {
		return units
	}
	for unit, u := range p.machine.State().Units() {
		if u.Status == history.UnitDispatched && !history.IsCleanup(unit) && p.machine.RunsChild(unit) {
			units = append(units, unit)
		}
	}
	return units
}

// followBrief is how long a caller sees to other executions before it is
// answered: one child may bring on the next, and so on.
const followBrief = time.Second

// followKey is the key of the moment in a context at which that time is over.
type followKey struct{}

// follow does what a commit makes due at once in other executions: children
// that it created are advanced, messages are delivered. What fails here, or is
// not done when the time is over, is found by the next tick.
func (e *Engine) follow(ctx context.Context, p *attempt) {
	if p.commit == nil || len(p.commit.Children)+len(p.commit.Outbox) == 0 {
		return
	}
	deadline, bounded := ctx.Deadline()
	ctx = context.WithoutCancel(ctx) // a caller that hung up changes nothing
	if bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	until, begun := ctx.Value(followKey{}).(time.Time)
	if !begun {
		until = time.Now().Add(followBrief)
		ctx = context.WithValue(ctx, followKey{}, until)
	}
	over := func() bool { return ctx.Err() != nil || !time.Now().Before(until) }
	for _, child := range p.commit.Children {
		if over() {
			return
		}
		if err := e.advance(ctx, child.Head.ID); err != nil {
			e.log.WarnContext(ctx, "a new child waits for the next tick", "execution_id", child.Head.ID, "error", err)
		}
	}
	for _, m := range p.commit.Outbox {
		if over() {
			return
		}
		if err := e.deliver(ctx, m); err != nil {
			e.log.WarnContext(ctx, "a message waits for the next tick", "message", m.ID, "error", err)
		}
	}
}

// deliver tells one execution what another has to say, and then removes the
// message.
func (e *Engine) deliver(ctx context.Context, m store.Message) error {
	var err error
	switch m.Kind {
	case messageCancelChild:
		err = e.deliverCancel(ctx, m)
	case messageChildEnded:
		err = e.deliverEnd(ctx, m)
	}
	if err != nil {
		return err
	}
	return e.store.DeleteMessages(ctx, []string{m.ID})
}

// deliverCancel cancels a child. One that is missing can never end: its parent
// is told so.
func (e *Engine) deliverCancel(ctx context.Context, m store.Message) error {
	err := e.do(ctx, m.Target, &job{apply: func(machine *decide.Machine, _ *store.Loaded) error {
		if parent := machine.State().Parent; parent != nil && parent.ExecutionID == m.Source {
			machine.Cancel(reasonParent)
		}
		return nil
	}})
	if errors.Is(err, errorf(NotFound, "")) {
		return e.childEnded(ctx, m.Source, m.Unit, m.Target, decide.ChildEnd{})
	}
	return err
}

// deliverEnd gives a child's end to its parent. A parent that is gone needs no
// telling.
func (e *Engine) deliverEnd(ctx context.Context, m store.Message) error {
	child, err := e.load(ctx, m.Source)
	if err != nil {
		return err
	}
	s := child.State()
	end := decide.ChildEnd{Status: s.Status, Workflow: s.Workflow, Output: s.Output.OrNull(), Error: s.Error}
	err = e.childEnded(ctx, m.Target, m.Unit, m.Source, end)
	if errors.Is(err, errorf(NotFound, "")) {
		return nil
	}
	return err
}

func (e *Engine) childEnded(ctx context.Context, parent, unit, child string, end decide.ChildEnd) error {
	return e.do(ctx, parent, &job{apply: func(m *decide.Machine, _ *store.Loaded) error {
		m.ChildEnded(unit, child, end)
		return nil
	}})
}
