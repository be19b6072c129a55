package engine_test

import (
	"testing"
	"time"

	"perigee/engine"
)

// Where polls are not held an idle worker comes ever less often, up to a bound,
// and at once after work.
func TestPoll_AnIdleWorkerIsToldToComeLessOften(t *testing.T) {
	const longest = 2 * time.Second
	b := newBench(t, engine.Options{MaxIdlePoll: longest})
	session := b.register("none")
	var seen []time.Duration
	for i := range 200 {
		p, err := b.Poll(t.Context(), engine.PollRequest{SessionID: session})
		if err != nil {
			t.Fatal(err)
		}
		if most := min(longest, 500*time.Millisecond<<min(i, 10)); p.NextPoll <= 0 || p.NextPoll > most {
			t.Fatalf("poll %d in vain: next in %v, want above 0 and at most %v", i+1, p.NextPoll, most)
		}
		seen = append(seen, p.NextPoll)
	}
	below, above := 0, 0
	for _, d := range seen[10:] {
		if d < longest/2 {
			below++
		} else {
			above++
		}
	}
	if below < 40 || above < 40 {
		t.Errorf("of 190 waits %d are below half of the longest and %d above it: they are not spread", below, above)
	}
}
