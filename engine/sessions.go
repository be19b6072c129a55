package engine

import (
	"context"
	"errors"
	"sync"

	"perigee/store"
)

// SessionWorker is the worker that opened a session. UnknownSession.
func (e *Engine) SessionWorker(ctx context.Context, sessionID string) (workerID string, err error) {
	s, err := e.session(ctx, sessionID)
	return s.WorkerID, err
}

// session finds a session by its id, from memory where it was seen lately.
func (e *Engine) session(ctx context.Context, id string) (store.Session, error) {
	hash := hashSecret(id)
	if s, ok := e.sessions.get(hash); ok {
		e.touch(ctx, hash)
		return s, nil
	}
	s, err := e.store.Session(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		return s, unknownSession()
	}
	if err != nil {
		return s, fromStore(err, "session")
	}
	e.sessions.put(s, e.localMS()-max(0, e.storeMS()-s.LastSeenMS)) // its age is by the store's clock
	e.touch(ctx, hash)
	return s, nil
}

func (e *Engine) touchAgeMS() int64 { return e.opts.HeartbeatInterval.Milliseconds() / 2 }

// touch writes that a session is alive, at most every half heartbeat interval.
// A failure only makes the worker look idle for longer.
func (e *Engine) touch(ctx context.Context, hash string) {
	if !e.sessions.due(hash, e.localMS(), e.touchAgeMS()) {
		return
	}
	e.writeTouch(ctx, hash)
}

// touchHash is touch for a session that this process may not have seen.
func (e *Engine) touchHash(ctx context.Context, hash string) {
	if _, ok := e.sessions.get(hash); ok {
		e.touch(ctx, hash)
		return
	}
	e.writeTouch(ctx, hash)
}

// writeTouch is touch without asking whether it is due. A session that has ended
// needs none.
func (e *Engine) writeTouch(ctx context.Context, hash string) {
	_, err := e.store.TouchSession(ctx, hash, e.nowMS(), e.touchAgeMS())
	if err != nil && !errors.Is(err, store.ErrNotFound) && ctx.Err() == nil {
		e.log.WarnContext(ctx, "a worker's sign of life could not be written", "error", err)
	}
}

// sessionCache keeps sessions, which never change until they end, and when
// each was last touched. A claim checks that the session still exists.
type sessionCache struct {
	mu       sync.Mutex
	sessions map[string]*cachedSession
}

type cachedSession struct {
	store.Session
	touchedMS int64
	inVain    int // polls in a row that brought nothing
}

const maxSessions = 10_000

func newSessionCache() *sessionCache {
	return &sessionCache{sessions: map[string]*cachedSession{}}
}

func (c *sessionCache) get(hash string) (store.Session, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sessions[hash]
	if !ok {
		return store.Session{}, false
	}
	return s.Session, true
}

func (c *sessionCache) put(s store.Session, touchedMS int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sessions) >= maxSessions {
		clear(c.sessions)
	}
	c.sessions[s.Hash] = &cachedSession{Session: s, touchedMS: touchedMS}
}

// idle counts a poll that brought so many tasks and gives the number in a row
// that brought none.
func (c *sessionCache) idle(hash string, tasks int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sessions[hash]
	switch {
	case tasks > 0 && ok:
		s.inVain = 0
	case tasks > 0:
		return 0
	case !ok:
		return 1
	default:
		s.inVain++
	}
	return s.inVain
}

func (c *sessionCache) drop(hash string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, hash)
}

func (c *sessionCache) seen(hash string, nowMS int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.sessions[hash]; ok {
		s.touchedMS = max(s.touchedMS, nowMS)
	}
}

// due reports whether a touch is worth a write, and counts it as made.
func (c *sessionCache) due(hash string, nowMS, ageMS int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sessions[hash]
	if !ok || nowMS-s.touchedMS < ageMS {
		return false
	}
	s.touchedMS = nowMS
	return true
}
