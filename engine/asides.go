package engine

import (
	"slices"
	"sync"
	"time"
)

// asides are the executions and messages that failed when this process saw to
// them. Due work is listed the most overdue first: without a pause, ever longer,
// a few that always fail would take every turn. A decision that errs is parked
// in the database; this is about what must not or cannot be written there, such
// as the history of a newer release.
type asides struct {
	mu   sync.Mutex
	rows map[string]aside
}

type aside struct {
	untilMS int64
	pause   time.Duration
}

const (
	asideFirst = time.Second
	asideMost  = time.Minute
	maxAsides  = 1000 // past it, who would wait least goes on as if it had not failed
)

// failed sets something aside, for twice as long as the last time.
func (a *asides) failed(key string, nowMS int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rows == nil {
		a.rows = map[string]aside{}
	}
	pause := min(asideMost, max(asideFirst, 2*a.rows[key].pause))
	a.rows[key] = aside{nowMS + pause.Milliseconds(), pause}
	if len(a.rows) <= maxAsides {
		return
	}
	first := key
	for k, row := range a.rows {
		if row.untilMS < a.rows[first].untilMS {
			first = k
		}
	}
	delete(a.rows, first)
}

// worked forgets what something failed.
func (a *asides) worked(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.rows, key)
}

// waiting are the keys whose pause is not over, sorted.
func (a *asides) waiting(nowMS int64) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys []string
	for key, row := range a.rows {
		switch {
		case nowMS < row.untilMS:
			keys = append(keys, key)
		case nowMS > row.untilMS+2*asideMost.Milliseconds():
			delete(a.rows, key) // somebody else has seen to it
		}
	}
	slices.Sort(keys)
	return keys
}
