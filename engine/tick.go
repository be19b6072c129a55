package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"perigee/engine/decide"
	"perigee/store"
)

// reportedAgeMS is how long a result may lie in the inbox, and a message in
// the outbox, before a tick sees to it: whoever wrote it does so sooner, or died.
const reportedAgeMS = 1000

// Tick is one pass over due work: timers, retries, deadlines, lost workers,
// messages between executions. At most max executions are looked at. Ticks may
// overlap, come late, be lost or run twice.
func (e *Engine) Tick(ctx context.Context, max int) (TickReport, error) {
	var report TickReport
	due, err := e.store.Due(ctx, store.DueRequest{
		NowMS: e.nowMS(), Limit: max, ReportedAgeMS: reportedAgeMS, Except: e.failedWork.waiting(e.localMS()),
	})
	if err != nil {
		return report, fromStore(err, "due work")
	}
	e.clock.learn(due.NowMS)
	report.NextMS = due.NextMS
	report.More = len(due.ExecutionIDs) >= max
	for _, id := range due.ExecutionIDs {
		if ctx.Err() != nil {
			report.More = true
			return report, nil
		}
		report.Advanced++
		if err := e.advanceDue(ctx, id); err != nil && ctx.Err() == nil { // the next tick finds what this one had no time for
			report.Parked++
			e.log.ErrorContext(ctx, "a due execution could not be advanced", "execution_id", id, "error", err)
		}
	}
	if due.Outbox {
		err = e.deliverAll(ctx, &report)
	}
	return report, err
}

// deliverBatch is how many messages a tick delivers.
const deliverBatch = 100

func (e *Engine) deliverAll(ctx context.Context, report *TickReport) error {
	waiting := e.failedMessages.waiting(e.localMS())
	most := deliverBatch + len(waiting)
	messages, err := e.store.Outbox(ctx, "", most)
	if err != nil {
		return fromStore(err, "messages")
	}
	before := report.Delivered
	// Where none could be delivered the rest waits for the next tick: this one
	// would go round in a circle.
	defer func() { report.More = report.More || len(messages) == most && report.Delivered > before }()
	for _, m := range messages {
		if ctx.Err() != nil {
			return nil
		}
		if slices.Contains(waiting, m.ID) {
			continue
		}
		if err := e.deliver(ctx, m); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			e.failedMessages.failed(m.ID, e.localMS())
			e.log.ErrorContext(ctx, "a message could not be delivered", "message", m.ID, "error", err)
			continue
		}
		e.failedMessages.worked(m.ID)
		report.Delivered++
	}
	return nil
}

// advanceDue is advance for an execution from a list of due work: one that fails
// is left out for a while.
func (e *Engine) advanceDue(ctx context.Context, id string) error {
	err := e.advance(ctx, id)
	switch {
	case err == nil:
		e.failedWork.worked(id)
	case ctx.Err() == nil:
		e.failedWork.failed(id, e.localMS())
	}
	return err
}

// advance looks at an execution: what is due is decided, and attempts whose
// workers fell silent are found. It loses every race gladly.
func (e *Engine) advance(ctx context.Context, id string) error {
	var sightings []store.Sighting
	err := e.do(ctx, id, &job{
		looks: true,
		apply: func(m *decide.Machine, l *store.Loaded) error {
			sightings = e.lookAtWorkers(m, l)
			return nil
		},
	})
	if errors.Is(err, errorf(NotFound, "")) {
		return nil
	}
	if err != nil || len(sightings) == 0 {
		return err
	}
	if err := e.store.Sight(ctx, sightings); err != nil {
		return err
	}
	for _, s := range sightings {
		e.hub.dueAt(s.DueAtMS)
	}
	return nil
}

// lookAtWorkers decides about dispatched tasks whose due moment passed. One
// whose worker is silent, or that the server itself sees to and has said nothing
// of in time, is marked suspect; still silent two heartbeat
// intervals later its outcome is unknown, so that an outage of ours does not
// lose every worker. What is left gets its next due moment.
func (e *Engine) lookAtWorkers(m *decide.Machine, l *store.Loaded) []store.Sighting {
	now := l.NowMS
	timeout, beat := e.opts.SessionTimeout.Milliseconds(), e.opts.HeartbeatInterval.Milliseconds()
	var sightings []store.Sighting
	for _, row := range l.Due {
		next := store.Sighting{Key: row.Key, TokenHash: row.TokenHash}
		switch silent := row.LastSeenMS+timeout <= now; {
		case row.DeadlineMS > 0 && row.DeadlineMS <= now:
			continue // decide's
		case !silent:
			next.DueAtMS = row.LastSeenMS + timeout
		case row.SuspectAtMS == 0:
			next.SuspectAtMS = now
			next.DueAtMS = now + 2*beat
		case now >= row.SuspectAtMS+2*beat:
			m.Lost(row.Unit, row.TokenHash, silence(row))
			continue
		default:
			next.SuspectAtMS = row.SuspectAtMS
			next.DueAtMS = row.SuspectAtMS + 2*beat
		}
		if row.DeadlineMS > 0 {
			next.DueAtMS = min(next.DueAtMS, row.DeadlineMS)
		}
		sightings = append(sightings, next)
	}
	return sightings
}

// silence is the reason for an attempt of which nobody has spoken in time.
func silence(row store.DueTask) string {
	if strings.HasPrefix(row.Session, builtinPrefix) {
		return decide.ReasonServerSilent
	}
	return decide.ReasonStoppedResponding(row.WorkerID)
}

// Bounds of the back-off of an execution whose decision errs.
const (
	parkFirst = time.Second
	parkMost  = time.Hour
)

// park puts an execution whose decision erred aside, with back-off and a
// count that doctor and the metrics show.
func (e *Engine) park(ctx context.Context, p *attempt, cause error) {
	e.log.ErrorContext(ctx, "an execution could not be decided and is parked", "execution_id", p.id, "error", cause)
	e.states.drop(p.id)
	if p.loaded.Head == nil {
		return
	}
	h := *p.loaded.Head
	delay := parkMost
	if h.ErrorCount < 12 {
		delay = min(parkMost, parkFirst<<h.ErrorCount)
	}
	h.ErrorCount++
	h.DueAtMS = p.loaded.NowMS + delay.Milliseconds()
	err := e.store.Commit(ctx, store.Commit{Seen: store.Seen{Incarnation: h.Incarnation, Seq: h.LastSeq}, Head: h})
	var lost *store.LostError
	if err != nil && !errors.As(err, &lost) {
		e.log.ErrorContext(ctx, "an execution could not be parked", "execution_id", p.id, "error", err)
	}
}

// Intervals of the local loop.
const (
	tickBatch    = 100
	tickLongest  = time.Second // how long a moment in another process stays unseen
	tickShortest = time.Millisecond
	sweepEvery   = time.Hour // of sessions that ended long ago
)

// Run is the loop of a server that stays up: it ticks whenever something is
// due, and runs built-in tasks. It returns when ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	sooner := e.hub.loop()
	done := e.runBuiltins(ctx)
	defer func() { <-done }()
	for ctx.Err() == nil {
		e.hub.looks()
		report, err := e.Tick(ctx, tickBatch)
		if err != nil && ctx.Err() == nil {
			e.log.ErrorContext(ctx, "the tick failed", "error", err)
		}
		e.Sweep(ctx)
		if report.More && err == nil {
			continue
		}
		pause := e.untilDue(report.NextMS)
		e.hub.looksAgainAt(e.storeMS() + pause.Milliseconds())
		e.sleep(ctx, pause, sooner)
	}
	return nil
}

// untilDue is how long the loop may sleep.
func (e *Engine) untilDue(nextMS int64) time.Duration {
	if nextMS == 0 {
		return tickLongest
	}
	left := time.Duration(nextMS-e.storeMS()) * time.Millisecond
	return min(tickLongest, max(tickShortest, left))
}

func (e *Engine) sleep(ctx context.Context, d time.Duration, sooner <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-sooner:
	}
}

// Sweep removes sessions of workers that are gone for good, if this process has
// not done so within the hour. Run sees to it; who ticks without Run calls it now
// and then.
func (e *Engine) Sweep(ctx context.Context) {
	now, last := e.storeMS(), e.swept.Load()
	if last != 0 && now-last < sweepEvery.Milliseconds() || !e.swept.CompareAndSwap(last, now) {
		return
	}
	keep := max(sweepEvery, 10*e.opts.SessionTimeout)
	if err := e.store.DropSessions(ctx, now-keep.Milliseconds()); err != nil && ctx.Err() == nil {
		e.log.WarnContext(ctx, "old sessions could not be removed", "error", err)
	}
}
