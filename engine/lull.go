package engine

import (
	"sync"
	"time"
)

// A claim that finds nothing costs the database as much as one that does, and a
// busy worker asks all the time: with its results, and with the polls between
// them. So while it is known that nothing was left a moment ago, and this
// process has put nothing into the queue since, a poll that waits waits first
// and looks later. What other processes make ready so waits for one lull more.

// lullLength is how long a claim that left nothing speaks for those after it.
const lullLength = 25 * time.Millisecond

// lulls remembers each session's claims.
type lulls struct {
	length  time.Duration
	mu      sync.Mutex
	claims  map[string]*sessionClaims // by the session's hash
	stirred time.Time                 // when a task was last made ready for nobody in particular
}

// sessionClaims are the moments at which two claims began: the last that is under
// way or left nothing, and the last that is known to have left nothing.
type sessionClaims struct{ last, emptied time.Time }

// looks notes that a claim begins: those after it need not, until it has ended.
func (l *lulls) looks(session string) (began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.claims == nil || len(l.claims) >= maxSessions {
		l.claims = map[string]*sessionClaims{}
	}
	began = time.Now()
	l.of(session).last = began
	return began
}

// looked notes how a claim ended: whether it left nothing that is ready.
func (l *lulls) looked(session string, began time.Time, emptied bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch c := l.of(session); {
	case emptied && began.After(c.emptied):
		c.emptied = began
	case !emptied && c.last.Equal(began):
		c.last = c.emptied
	}
}

func (l *lulls) of(session string) *sessionClaims {
	c := l.claims[session]
	if c == nil {
		c = &sessionClaims{}
		l.claims[session] = c
	}
	return c
}

// stir ends every lull: somebody may find something now.
func (l *lulls) stir() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stirred = time.Now()
}

// since are a session's claims as far as they still say something.
func (l *lulls) since(session string) (c sessionClaims) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.claims[session]; known != nil {
		c = *known
	}
	for _, began := range []*time.Time{&c.last, &c.emptied} {
		if !began.After(l.stirred) {
			*began = time.Time{}
		}
	}
	return c
}

// quiet reports whether there was nothing for a session a moment ago.
func (l *lulls) quiet(session string) bool { return time.Since(l.since(session).last) < l.length }

// nextLook is when a poll that came at a moment has to look: a while after a
// claim that left nothing and began later than it came, soon after any other.
func (l *lulls) nextLook(session string, came time.Time) time.Time {
	c := l.since(session)
	if c.emptied.After(came) {
		return c.emptied.Add(lookAgain)
	}
	return c.last.Add(l.length)
}
