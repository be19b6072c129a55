package decide

import "perigee/engine/definition"

// Limits are the server's bounds. Zero means "none" for a bound, and false for
// a switch.
type Limits struct {
	MaxFanOut        int    // elements of one `for`
	MaxHistoryEvents uint64 // events of one execution; winding down goes on past it
	MaxPayloadBytes  int    // of a task's input, a result, a signal, a computed value
	MaxJoinBytes     int    // of a fan-out's items, and of its joined outputs
	MaxRedeliveries  int    // counted losses of one attempt before WORKER_LOST
	// CancelGraceMS is how long a worker may go on after the abort.
	CancelGraceMS int64
	// DefaultAttemptTimeoutMS bounds an attempt whose step sets no timeout.
	DefaultAttemptTimeoutMS int64
	// HTTPRequest: the built-in task http.request is enabled.
	HTTPRequest bool
}

// stricter merges a definition's own limits into the server's.
func (l Limits) stricter(d definition.Limits) Limits {
	l.MaxFanOut = lower(l.MaxFanOut, d.MaxFanOut)
	l.MaxHistoryEvents = lower(l.MaxHistoryEvents, d.MaxHistoryEvents)
	l.MaxPayloadBytes = lower(l.MaxPayloadBytes, d.MaxPayloadBytes)
	return l
}

// lower is the lesser of two bounds, where zero means "none".
func lower[N int | uint64](a, b N) N {
	switch {
	case a == 0:
		return b
	case b == 0 || a < b:
		return a
	}
	return b
}
