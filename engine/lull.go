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

// lulls remembers, for each session, its last claim that left nothing.
type lulls struct {
	length  time.Duration
	mu      sync.Mutex
	began   map[string]time.Time // by the session's hash: when that claim began
	stirred time.Time            // when a task was last made ready for nobody in particular
}

// exhausted notes that a claim took all that was ready, or found nothing.
func (l *lulls) exhausted(session string, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began == nil || len(l.began) >= maxSessions {
		l.began = map[string]time.Time{}
	}
	l.began[session] = began
}

// stir ends every lull: somebody may find something now.
func (l *lulls) stir() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stirred = time.Now()
}

// last is when the session's last claim that left nothing began, zero where that says
// nothing any more.
func (l *lulls) last(session string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	began := l.began[session]
	if !began.After(l.stirred) {
		return time.Time{}
	}
	return began
}

// quiet reports whether there was nothing for a session a moment ago.
func (l *lulls) quiet(session string) bool { return time.Since(l.last(session)) < l.length }

// nextLook is when a poll that came at a moment has to look: a while after a
// claim that left nothing and began later than it came, soon after one before.
func (l *lulls) nextLook(session string, came time.Time) time.Time {
	last := l.last(session)
	if last.After(came) {
		return last.Add(lookAgain)
	}
	return last.Add(l.length)
}
