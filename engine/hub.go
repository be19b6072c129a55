package engine

import (
	"slices"
	"sync"

	"perigee/engine/history"
)

// hub tells those who wait in this process that something happened. It is only
// about promptness: what happens in other processes is found by looking again.
type hub struct {
	mu      sync.Mutex
	closed  bool
	polls   []*waiter              // oldest first
	handing []*waiter              // reserved by commits that are under way
	follows map[string][]*follower // by execution id
	due     chan struct{}          // the tick loop's, capacity 1; nil: nobody loops
	// lookMS is when the tick loop looks again; 0 while it looks. newMS is the
	// earliest moment that was made meanwhile, which it may not see; 0: none.
	lookMS, newMS int64
}

// waiter waits for one signal.
type waiter struct {
	queues  []string
	session string        // hash of the poll's; "": none that could end
	ready   chan struct{} // closed at the signal
	// takes is set while a commit may hand tasks to the poll that waits here.
	takes *recipient
	// Of a poll that was reserved, read after ready: what a commit handed over,
	// and whether the session ended meanwhile.
	given []Assignment
	ended bool
}

// waitQueues registers a poll that waits for a ready task in one of queues.
func (h *hub) waitQueues(queues []string, session string) *waiter {
	w := &waiter{queues: queues, session: session, ready: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(w.ready)
		return w
	}
	h.polls = append(h.polls, w)
	return w
}

// leaveQueues takes a poll back, with what was handed to it meanwhile: a commit
// that has reserved it is waited for. Where it was only woken, the signal goes
// on to another waiter, so that none is lost.
func (h *hub) leaveQueues(w *waiter) []Assignment {
	h.mu.Lock()
	i := slices.Index(h.polls, w)
	if i >= 0 {
		h.polls = slices.Delete(h.polls, i, i+1)
	}
	h.mu.Unlock()
	if i >= 0 {
		return nil
	}
	<-w.ready
	if len(w.given) == 0 {
		h.wakeQueues(w.queues)
	}
	return w.given
}

// wakeQueues gives a signal on that was of no use to the one who got it.
func (h *hub) wakeQueues(queues []string) {
	for _, q := range queues {
		h.wakeQueue(q)
	}
}

// endSession wakes the polls of a session that ends: no commit may hand them
// anything any more, and what one hands over at this moment is given back.
func (h *hub) endSession(session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.polls = slices.DeleteFunc(h.polls, func(w *waiter) bool {
		if w.session == session {
			close(w.ready)
		}
		return w.session == session
	})
	for _, w := range h.handing {
		w.ended = w.ended || w.session == session
	}
}

// open lets commits hand tasks to a poll that has found none.
func (h *hub) open(w *waiter, r *recipient) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.takes = r
}

// reserve takes the longest waiting poll that takes tasks of a queue; nil where
// there is none. It waits until it is released.
func (h *hub) reserve(queue string) *waiter {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, w := range h.polls {
		if w.takes != nil && slices.Contains(w.queues, queue) {
			h.polls = slices.Delete(h.polls, i, i+1)
			h.handing = append(h.handing, w)
			return w
		}
	}
	return nil
}

// release ends a reservation: the poll gets what was committed for it, or
// nothing and looks for itself.
func (h *hub) release(w *waiter, given []Assignment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handing = slices.DeleteFunc(h.handing, func(other *waiter) bool { return other == w })
	w.given = given
	close(w.ready)
}

// wakeQueue wakes the longest waiting poll that asks for a queue.
func (h *hub) wakeQueue(queue string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, w := range h.polls {
		if slices.Contains(w.queues, queue) {
			h.polls = slices.Delete(h.polls, i, i+1)
			close(w.ready)
			return
		}
	}
}

// follower is a caller that waits for an execution: for any event, or for its end.
type follower struct {
	untilEnd bool
	ready    chan struct{}  // closed at what it waits for
	end      *history.State // read after ready: the state that it ended with, if that is known
}

// follow registers a caller that waits for an execution to change, or to end.
func (h *hub) follow(id string, untilEnd bool) *follower {
	f := &follower{untilEnd: untilEnd, ready: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(f.ready)
		return f
	}
	if h.follows == nil {
		h.follows = map[string][]*follower{}
	}
	h.follows[id] = append(h.follows[id], f)
	return f
}

// known is the state that the execution has ended with meanwhile, if it has.
func (f *follower) known() *history.State {
	select {
	case <-f.ready:
		return f.end
	default:
		return nil
	}
}

func (h *hub) unfollow(id string, f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keepFollowers(id, func(other *follower) bool { return other != f })
}

// changed wakes those who follow an execution: with the state that it ended
// with all of them, else those who wait for any event.
func (h *hub) changed(id string, end *history.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keepFollowers(id, func(f *follower) bool {
		if f.untilEnd && end == nil {
			return true
		}
		f.end = end
		close(f.ready)
		return false
	})
}

func (h *hub) keepFollowers(id string, keep func(*follower) bool) {
	list := slices.DeleteFunc(h.follows[id], func(f *follower) bool { return !keep(f) })
	if len(list) == 0 {
		delete(h.follows, id)
		return
	}
	h.follows[id] = list
}

// dueAt wakes the tick loop where it would sleep past a due moment. 0 is none.
func (h *hub) dueAt(ms int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.due == nil || ms == 0:
	case h.lookMS > 0 && ms < h.lookMS:
		h.wakeLoop()
	case h.lookMS == 0 && (h.newMS == 0 || ms < h.newMS):
		h.newMS = ms
	}
}

// looks notes that the tick loop looks at what is due.
func (h *hub) looks() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lookMS, h.newMS = 0, 0
}

// looksAgainAt notes when it will look again, as far as it has seen.
func (h *hub) looksAgainAt(ms int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lookMS = ms
	if h.newMS > 0 && h.newMS < ms {
		h.wakeLoop()
	}
}

func (h *hub) wakeLoop() {
	select {
	case h.due <- struct{}{}:
	default: // it has been told already
	}
}

// loop gives the channel by which dueAt wakes the tick loop.
func (h *hub) loop() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.due == nil {
		h.due = make(chan struct{}, 1)
	}
	return h.due
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, w := range h.polls {
		close(w.ready)
	}
	for _, list := range h.follows {
		for _, w := range list {
			close(w.ready)
		}
	}
	h.polls, h.follows = nil, nil
}

func (h *hub) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}
