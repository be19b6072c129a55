package engine

import (
	"context"
	"errors"
	"time"

	"perigee/engine/decide"
	"perigee/store"
)

// Results for one execution must not race for its head: of a hundred workers
// that finish at once, ninety-nine would load and decide in vain. So a batch
// of results whose first, direct try lost goes through the inbox: each result
// is written to its own task row, where nobody else writes, and is safe from
// then on. Then the head is drained: whoever gets it takes in every result
// that lies there, in one commit.

// inboxResults is how many results go through the inbox at most, one statement
// each. More of them are worth the head's lock: they share its turn already.
const inboxResults = 4

// Waits of a drain for a head that another process holds: 2, 4, 8 … ms.
const (
	drainTries   = 10
	drainFirst   = 2 * time.Millisecond
	drainLongest = 256 * time.Millisecond
)

// viaInbox sees a batch of results through the inbox. False: it holds other
// commands, or results that need the whole state, and takes the head's lock.
func (p *attempt) viaInbox(ctx context.Context) bool {
	if !p.putReports(ctx) {
		return false
	}
	wait := drainFirst
	for range drainTries {
		err := p.drain(ctx)
		switch {
		case err == nil:
			p.settle()
			return true
		case !errors.Is(err, store.ErrBusy):
			// The reports are safe. The lock finds out what became of this try.
			return false
		}
		if !pause(ctx, wait) {
			return false
		}
		if p.takenIn(ctx) {
			p.acceptAll()
			return true
		}
		wait = min(2*wait, drainLongest)
	}
	// Leaving now could strand the results until the next tick, for not everyone
	// who holds the head looks again: the lock's queue is fair.
	return false
}

// putReports writes every result of the batch to its task row; false where one
// cannot be decided from its row alone. What was written stays: it is taken in
// by whoever decides next, and reporting it again changes nothing.
func (p *attempt) putReports(ctx context.Context) bool {
	if p.machine == nil {
		return false
	}
	results := 0
	for _, j := range p.jobs {
		if results += len(j.results); len(j.results) == 0 || results > inboxResults {
			return false
		}
	}
	for _, j := range p.jobs {
		for _, r := range j.results {
			success, output, fail, refused := p.machine.CheckResult(r.token.unit, r.result)
			if refused || !issuedTo(p.machine, r.token) {
				return false
			}
			report := store.Report{
				Key: taskKey(p.id, r.token.unit), TokenHash: r.token.hash(), Success: success,
				Payload: string(output), RetryAfterMS: r.result.RetryAfterMS, NowMS: p.engine.nowMS(),
			}
			if !success {
				report.Payload = string(fail.JSON())
			}
			if ok, err := p.engine.store.Report(ctx, report); err != nil || !ok {
				return false
			}
		}
	}
	return true
}

// drain takes the head if nobody holds it, and decides with all that lies in
// the inbox.
func (p *attempt) drain(ctx context.Context) error {
	req, warm := p.request()
	return p.engine.store.TryDrain(ctx, req, func(l store.Loaded) (*store.Commit, error) { return p.decide(l, warm) })
}

// takenIn reports whether another process has taken in this batch's results.
func (p *attempt) takenIn(ctx context.Context) bool {
	for _, j := range p.jobs {
		for _, r := range j.results {
			row, err := p.engine.store.Task(ctx, taskKey(p.id, r.token.unit))
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return false
			}
			if err == nil && row.State == store.TaskReported && row.TokenHash == r.token.hash() {
				return false
			}
		}
	}
	return true
}

// acceptAll answers for the one who took the results in. What the tries that
// were lost handed out was not.
func (p *attempt) acceptAll() {
	p.fail(nil)
	for _, j := range p.jobs {
		for i := range j.results {
			j.results[i].ack = decide.Ack{Accepted: true}
		}
	}
}

// pause waits, false where the call ran out of time.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
