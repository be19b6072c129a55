package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"perigee/store"
)

// A call whose execution is warm, by this process's own last commit, need not
// load it: it decides from what it has, and the commit's guard on the head says
// whether that was the latest. Where the guess was wrong nothing is written and
// the call goes the usual way. An answer is only ever given after a commit whose
// guard held: a call that finds nothing to write loads after all.

// guess tries that; it reports whether the pass is done.
func (p *attempt) guess(ctx context.Context) bool {
	e := p.engine
	now, ok := e.clock.now(e)
	if !ok || p.looks || !e.guesses.allowed(now) {
		return false
	}
	warm, known := e.states.get(p.id)
	l := store.Loaded{NowMS: now}
	switch {
	case known && warm.head != nil:
		l.Head = warm.head
	case known || !p.creates():
		return false
	}
	c, err := p.decide(l, warm)
	if err != nil || c == nil || p.refused() {
		p.releaseAll()
		return false
	}
	err = e.store.Commit(ctx, *c)
	if err == nil {
		p.settle()
		return true
	}
	p.releaseAll()
	e.states.moved(p.id)
	var lost *store.LostError
	if errors.As(err, &lost) && !lost.Exists {
		e.guesses.lost(now)
	}
	// Whatever it was, the usual way finds out: it loads first.
	return false
}

func (p *attempt) creates() bool {
	for _, j := range p.jobs {
		if j.create == nil {
			return false
		}
	}
	return true
}

// refused reports whether a job failed: that is told only from what was loaded.
func (p *attempt) refused() bool {
	for _, j := range p.jobs {
		if j.err != nil {
			return true
		}
	}
	return false
}

// guesses stops guessing for a while after a guess that was wrong: another
// process works on the same executions, and each wrong guess costs a round trip.
type guesses struct {
	mu      sync.Mutex
	untilMS int64
	pauseMS int64
}

const (
	firstPauseMS = 100
	mostPauseMS  = 60_000
)

func (g *guesses) allowed(nowMS int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return nowMS >= g.untilMS
}

func (g *guesses) lost(nowMS int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if nowMS > g.untilMS+mostPauseMS {
		g.pauseMS = 0
	}
	g.pauseMS = min(mostPauseMS, max(firstPauseMS, 2*g.pauseMS))
	g.untilMS = nowMS + g.pauseMS
}

// dbClock estimates the database's clock from what it last said. The estimate
// never runs ahead: an answer's way here only makes it lag.
type dbClock struct {
	mu     sync.Mutex
	saidMS int64
	at     time.Time // by the monotonic clock
	wall   time.Time
}

// learn takes in a moment that the database has just named. An answer that was
// long on its way says less than what is known: the estimate would step back, and
// what begins next would look older than what began before.
func (c *dbClock) learn(ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if known := c.saidMS + now.Sub(c.at).Milliseconds(); c.saidMS != 0 && ms < known && now.Sub(c.at) < keptFor {
		return
	}
	c.saidMS, c.at, c.wall = ms, now, now.Round(0)
}

// keptFor is how long an estimate stands against an answer that says less: short
// enough that a clock which runs faster than the database's is put right.
const keptFor = time.Second

// trustedFor bounds how long the process's own clock carries the estimate.
const trustedFor = 10 * time.Second

// clocksAgree is how far the process's two clocks may drift apart in that time.
const clocksAgree = time.Second

// now is the estimate, false where it would be too old. With a clock of its own
// the engine needs none.
func (c *dbClock) now(e *Engine) (int64, bool) {
	if ms := e.nowMS(); ms != 0 {
		return ms, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// A process that was frozen, or moved, may find that one of its own clocks
	// stood still meanwhile: then neither says how long it was.
	now := time.Now()
	since, wall := now.Sub(c.at), now.Round(0).Sub(c.wall)
	return c.saidMS + since.Milliseconds(), c.saidMS != 0 && since < trustedFor && (wall-since).Abs() < clocksAgree
}
