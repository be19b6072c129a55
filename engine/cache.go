package engine

import (
	"container/list"
	"sync"

	"perigee/engine/decide"
	"perigee/engine/history"
	"perigee/store"
)

// stateCache keeps machines of live executions warm. It is only ever a hint:
// a call names the point that its machine stands at, and the store answers
// with what came after, or with everything where the point is not its own.
type stateCache struct {
	mu      sync.Mutex
	bytes   int // bound; none are kept at or below 0
	used    int
	entries map[string]*list.Element // of *warmState
	order   *list.List               // most recently used first
}

// warmState is a machine at a point of its history. The machine is never
// changed; calls work on clones.
type warmState struct {
	id      string
	seen    store.Seen
	machine *decide.Machine
	size    size
	// head is the row that this process's own commit left, and nil once
	// something else is known to have changed it.
	head *store.Head
}

// size is how much data a machine was made from.
type size struct {
	snapshot    int // bytes of the last snapshot
	events      int // since the last snapshot
	eventsBytes int
}

func (s size) plus(events []store.Event) size {
	s.events += len(events)
	for _, ev := range events {
		s.eventsBytes += len(ev.Data)
	}
	return s
}

func (s size) bytes() int { return overheadBytes + s.snapshot + s.eventsBytes }

// overheadBytes is a guess at what an entry takes beside its payloads.
const overheadBytes = 4096

func newStateCache(bytes int) *stateCache {
	return &stateCache{bytes: bytes, entries: map[string]*list.Element{}, order: list.New()}
}

// get gives a clone of the machine kept for an execution. Cloning marks the
// original's shared parts, so it happens under the lock.
func (c *stateCache) get(id string) (warmState, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.entries[id]
	if !ok {
		return warmState{}, false
	}
	c.order.MoveToFront(el)
	w := *el.Value.(*warmState)
	w.machine = w.machine.Clone()
	return w, true
}

// put keeps a machine, unless a later point of the same history is kept. The
// machine belongs to the cache from then on.
func (c *stateCache) put(w warmState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.entries[w.id]; ok {
		old := el.Value.(*warmState)
		if old.seen.Incarnation == w.seen.Incarnation && old.seen.Seq > w.seen.Seq {
			return
		}
		c.remove(el)
	}
	if w.size.bytes() > c.bytes {
		return
	}
	c.entries[w.id] = c.order.PushFront(&w)
	c.used += w.size.bytes()
	for c.used > c.bytes {
		c.remove(c.order.Back())
	}
}

// dispatched takes the machine of a task's execution over the event that a claim
// has appended, where that event is its very next one.
func (c *stateCache) dispatched(seq uint64, t store.Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.entries[t.ExecutionID]
	if !ok {
		return
	}
	w := el.Value.(*warmState)
	if w.head == nil || w.seen.Seq+1 != seq {
		w.head = nil
		return
	}
	event := t.Dispatch()
	w.machine = w.machine.Clone()
	w.machine.Replay(history.Record{Seq: seq, TimestampMS: t.DispatchedMS, Event: event})
	head := *w.head
	head.LastSeq, head.LastAtMS = seq, t.DispatchedMS
	w.head, w.seen.Seq = &head, seq
	bytes := len(history.AppendFields(nil, event))
	w.size.events++
	w.size.eventsBytes += bytes
	c.used += bytes
}

// moved says that an execution's history went on without its warm machine.
func (c *stateCache) moved(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.entries[id]; ok {
		el.Value.(*warmState).head = nil
	}
}

// drop forgets an execution.
func (c *stateCache) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.entries[id]; ok {
		c.remove(el)
	}
}

func (c *stateCache) remove(el *list.Element) {
	w := el.Value.(*warmState)
	c.order.Remove(el)
	delete(c.entries, w.id)
	c.used -= w.size.bytes()
}
