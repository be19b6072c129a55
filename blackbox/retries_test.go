package blackbox_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"perigee/sdk/go/client"
)

// epochMS is where the clocks of tests begin.
const epochMS = 1_800_000_000_000

// clock is a time that stands until a test moves it.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(epochMS)
	return c
}

func (c *clock) now() int64       { return c.ms.Load() }
func (c *clock) advance(ms int64) { c.ms.Add(ms) }
func (c *clock) set(ms int64)     { c.ms.Store(ms) }

// everyDatabaseWithClock is everyDatabase with a clock for each.
func everyDatabaseWithClock(t *testing.T, test func(*env, *clock)) {
	t.Helper()
	onDatabases(t, func(t *testing.T, db testDatabase) {
		c := newClock()
		test(newEnv(t, inProcess{}, db, settings{clock: c.now}), c)
	})
}

// tick makes everything that is due happen.
func (e *env) tick() {
	e.Helper()
	for {
		report, err := e.server.(*inProcessServer).tick(100)
		if err != nil {
			e.Errorf("tick: %v", err) // not Fatalf: it may run beside the test
			return
		}
		if !report.More {
			return
		}
	}
}

func stubborn(retry string) string {
	return `
name: stubborn
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps: [ { id: work, task: a.step, retry: ` + retry + ` } ]
`
}

// TestScale_RetryDelaysNeverOverflow: with backoff 10 the delay in milliseconds
// passes int64 at attempt 17 and a double at 307.
func TestScale_RetryDelaysNeverOverflow(t *testing.T) {
	everyDatabaseWithClock(t, func(e *env, c *clock) {
		attempts := size(330, 1000)
		if e.db.kind != "sqlite" {
			attempts = size(30, 1000)
		}
		e.deploy(stubborn(fmt.Sprintf(`{ max_attempts: %d, backoff: 10, jitter: 0 }`, attempts)))
		id := e.start("stubborn", "", "")
		session := e.register("w", "a.step")
		const longest = 3_600_000 // what a policy has that names no max_interval
		last := int64(0)
		for attempt := 1; attempt <= attempts; attempt++ {
			task := e.poll(session)
			if task.Attempt != uint32(attempt) {
				e.Fatalf("got attempt %d, want %d", task.Attempt, attempt)
			}
			c.advance(7)
			e.fail(task, "NO", true)
			if attempt == attempts {
				break
			}
			unit := e.state(id).Units["work"]
			delay := unit.WakeAtMS - c.now()
			if delay < 1000 || delay < last || delay > longest {
				e.Fatalf("after attempt %d the delay from the failure is %d ms, after %d ms before", attempt, delay, last)
			}
			c.set(unit.WakeAtMS - 1)
			e.pollNone(session)
			last = delay
			c.set(unit.WakeAtMS)
		}
		if last != longest {
			e.Errorf("the last delay was %d ms, want %d", last, longest)
		}
		e.end(id, client.Failed)
	})
}

func TestRetry_JitterOnlyShortens(t *testing.T) {
	everyDatabaseWithClock(t, func(e *env, c *clock) {
		e.deploy(stubborn(`{ max_attempts: unlimited, backoff: 10, jitter: 0.5, max_interval: 1m }`))
		session := e.register("w", "a.step")
		id := e.start("stubborn", "", "")
		full := []int64{1000, 10_000, 60_000}
		for range full {
			e.fail(e.poll(session), "NO", true)
			unit := e.state(id).Units["work"]
			e.tickAt(c, unit.WakeAtMS)
		}
		n := 0
		for _, ev := range e.history(id) {
			if ev.Type != "RetryScheduled" {
				continue
			}
			if ev.DelayMS > full[n] || ev.DelayMS < full[n]/2 || ev.FireAtMS != ev.TimestampMS+ev.DelayMS {
				e.Errorf("retry %d: %+v, want half to all of %d ms after it", n+1, ev, full[n])
			}
			n++
		}
	})
}

// tickAt moves the clock forward and makes what is due happen.
func (e *env) tickAt(c *clock, ms int64) {
	e.Helper()
	c.set(max(ms, c.now()))
	e.tick()
}

func TestRetry_RetryAfterOfTheWorkerReplacesTheDelay(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(stubborn(`{ max_attempts: 2, initial_interval: 1h }`))
		id := e.start("stubborn", "", "")
		session := e.register("w", "a.step")
		soon := time.Millisecond
		if _, err := e.api.Fail(e.ctx(), e.poll(session).Token, client.TaskError{Code: "BUSY", Message: "soon", Retryable: true}, &soon, ""); err != nil {
			e.Fatal(err)
		}
		e.done(e.poll(session), `{}`)
		e.end(id, client.Completed)
	})
}
