package lambda

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Unrest makes calls fail as they do at a provider, by chance. It is safe for
// concurrent use; nil is quiet.
type Unrest struct {
	// Churn is the chance, 0 to 1, that a call finds no process of the calls
	// before: a provider ends idle ones as it likes.
	Churn float64
	// Failures is the chance that a call is throttled, that its process ends in
	// the middle or stands still for a while, or that its answer is lost.
	Failures float64

	mu     sync.Mutex
	random *rand.Rand
}

// NewUnrest makes unrest that a seed repeats, as far as calls come in order.
func NewUnrest(churn, failures float64, seed uint64) *Unrest {
	return &Unrest{Churn: churn, Failures: failures, random: rand.New(rand.NewPCG(seed, 1))}
}

// fate is what happens to one call.
type fate struct {
	churn, throttle, loseAnswer bool
	killAfter, stallAfter       time.Duration // 0: not at all
}

// soon is when, at the latest, something happens to a call that runs.
const soon = 20 * time.Millisecond

func (u *Unrest) draw() fate {
	if u == nil {
		return fate{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	f := fate{churn: u.random.Float64() < u.Churn}
	if u.random.Float64() >= u.Failures {
		return f
	}
	moment := time.Duration(1 + u.random.Int64N(int64(soon)))
	switch u.random.IntN(4) {
	case 0:
		f.throttle = true
	case 1:
		f.killAfter = moment
	case 2:
		f.stallAfter = moment
	case 3:
		f.loseAnswer = true
	}
	return f
}

// stall is how long a call stands still: long enough for others to overtake it.
const stall = 200 * time.Millisecond

// befall lets a call meet its fate, unless it ends before.
func (f fate) befall(s *sandbox) (stop func()) {
	switch {
	case f.killAfter > 0:
		timer := time.AfterFunc(f.killAfter, func() { s.cmd.Process.Kill() })
		return func() { timer.Stop() }
	case f.stallAfter > 0:
		timer := time.AfterFunc(f.stallAfter, func() {
			freeze(s.cmd.Process)
			time.Sleep(stall)
			thaw(s.cmd.Process)
		})
		return func() { timer.Stop() }
	}
	return func() {}
}
