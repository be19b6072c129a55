package worker

import (
	"context"
	"slices"
	"time"

	"perigee/sdk/go/client"
)

// defaultHeartbeat is used where a server names no interval.
const defaultHeartbeat = 10 * time.Second

// heartbeats tells the server at its interval that the session lives and which
// tokens it holds, and cancels what the answer names. It returns nil when ctx
// ends, or the refusal of a new registration.
func (r *run) heartbeats(ctx context.Context) error {
	for {
		interval := r.interval()
		if !sleep(ctx, interval) {
			return nil
		}
		if err := r.beat(ctx, interval); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (r *run) beat(ctx context.Context, interval time.Duration) error {
	tokens := r.tokens()
	if len(tokens) == 0 && r.heardWithin(interval) {
		return nil // an answered poll said the same
	}
	session := r.sessionID()
	// One try: the next beat is the repetition, with a list that is current.
	once, cancel := context.WithTimeout(ctx, max(interval, time.Second))
	defer cancel()
	stop, err := r.worker.once.Heartbeat(once, session, tokens)
	switch {
	case err == nil:
		r.sawServer()
		r.stop(stop)
		return nil
	case client.CodeOf(err) == client.CodeUnknownSession:
		return r.register(ctx, session)
	case client.Temporary(err) || once.Err() != nil:
		return nil
	}
	r.log.Warn("heartbeat", "error", err)
	return nil
}

func (r *run) interval() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session.HeartbeatIntervalMS <= 0 {
		return defaultHeartbeat
	}
	return time.Duration(r.session.HeartbeatIntervalMS) * time.Millisecond
}

func (r *run) heardWithin(d time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.contact) < d
}

// tokens lists what is held, in a fixed order; never nil, since an empty list
// says that nothing is held.
func (r *run) tokens() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]string, 0, len(r.held))
	for token := range r.held {
		list = append(list, token)
	}
	slices.Sort(list)
	return list
}

// stop ends the contexts of the named tasks.
func (r *run) stop(tokens []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, token := range tokens {
		if h := r.held[token]; h != nil {
			h.cancel(ErrCancelled)
		}
	}
}
