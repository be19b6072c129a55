package engine

import (
	"slices"

	"perigee/store"
)

// A poll that waits in this process gets what a commit makes ready in that very
// commit: it is dispatched there, as with `next`, and costs no claim of its own.

// handover is what one commit dispatches to one waiting poll.
type handover struct {
	to    *waiter
	tasks []store.Task
}

// handOver dispatches what was made ready, and nobody's result asked for, to
// the polls that wait for it, the longest waiting first.
func (p *attempt) handOver() {
	m := p.machine
	for unit, seq := range madeReady(m) {
		row, ok := m.Row(unit)
		if !ok || !m.Startable(unit) {
			continue // taken by a `next`, or not to be had
		}
		h := p.recipientFor(row.Queue)
		if h == nil {
			continue
		}
		t := p.dispatchTo(unit, seq, row, h.to.takes, h.to.takes.secrets[len(h.tasks)])
		h.tasks = append(h.tasks, t)
		p.next = append(p.next, t)
	}
}

// recipientFor is a poll of this commit's that takes one more, or another one.
func (p *attempt) recipientFor(queue string) *handover {
	for _, h := range p.handed {
		if len(h.tasks) < len(h.to.takes.secrets) && slices.Contains(h.to.queues, queue) {
			return h
		}
	}
	w := p.engine.hub.reserve(queue)
	if w == nil {
		return nil
	}
	h := &handover{to: w}
	p.handed = append(p.handed, h)
	return h
}

// handedOver gives the polls what was committed for them.
func (p *attempt) handedOver() {
	for _, h := range p.handed {
		given := make([]Assignment, len(h.tasks))
		for i, t := range h.tasks {
			given[i] = assignmentOf(t)
		}
		p.engine.hub.release(h.to, given)
	}
	p.handed = nil
}

// releaseAll lets the polls go that a try has reserved in vain.
func (p *attempt) releaseAll() {
	for _, h := range p.handed {
		p.engine.hub.release(h.to, nil)
	}
	p.handed = nil
}
