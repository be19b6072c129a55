package decide

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"perigee/engine/definition"
	"perigee/engine/history"
	"perigee/engine/schema"
)

// settle is rules 3 and 4: what becomes of failed and of uncertain attempts.
// Each one that is listed gives an event, so that a list cut short is a full
// call, and the rest is for the next.
func (m *Machine) settle(p phase) {
	for _, r := range m.open.list(history.UnitAttemptFailed, p, maxEventsPerCall) {
		if m.settleFailed(r); p == phaseMain && m.aborting() {
			return
		}
	}
	for _, r := range m.open.list(history.UnitUncertain, p, maxEventsPerCall) {
		if m.settleUncertain(r); p == phaseMain && m.aborting() {
			return
		}
	}
}

// settleFailed is rule 3.
func (m *Machine) settleFailed(r ref) {
	u, c := m.state.Unit(m.key(r)), m.call(r)
	if c == nil || c.Workflow != "" || !m.retries(c, u) {
		m.fail(r, u.LastError)
		return
	}
	delay := m.retryDelay(c.Retry, u, m.key(r))
	m.emit(history.RetryScheduled{
		Step:        m.key(r),
		NextAttempt: u.Attempt + 1,
		DelayMS:     delay,
		FireAtMS:    addMS(u.FailedAtMS, delay),
	})
}

// retries reports whether a failed attempt is followed by another.
func (m *Machine) retries(c *definition.Call, u *history.Unit) bool {
	e, policy := u.LastError, c.Retry
	switch {
	case !e.Retryable, slices.Contains(policy.NoRetry, e.Code):
		return false
	case c.AtMostOnce && u.FailedByEngine() && e.Code == CodeTimeout:
		return false
	case policy.MaxAttempts > 0 && u.Attempt >= policy.MaxAttempts:
		return false
	}
	return u.Attempt < math.MaxUint32
}

// settleUncertain is rule 4.
func (m *Machine) settleUncertain(r ref) {
	u, c := m.state.Unit(m.key(r)), m.call(r)
	bound := m.limits.MaxRedeliveries
	if c.MaxRedeliveries != nil {
		bound = *c.MaxRedeliveries
	}
	e := history.StepAttemptFailed{Step: m.key(r), Attempt: u.Attempt}
	switch {
	case c.AtMostOnce:
		e.Error = *failure(CodeUncertain, "the outcome of attempt %d is unknown, and the step runs at most once", u.Attempt)
		m.emit(e)
	case int(u.Losses) > bound:
		e.Error = *failure(CodeWorkerLost, "attempt %d was lost more often than max_redeliveries allows (%d)", u.Attempt, bound)
		m.emit(e)
	default:
		m.reschedule(r, u, true)
	}
}

// reschedule puts a unit back into the queue with its recorded input. Its
// time-outs see another `now` than the first time: where they cannot be had any
// more, such as the time left until a deadline, the unit fails.
func (m *Machine) reschedule(r ref, u *history.Unit, redelivery bool) {
	if _, _, fail := m.callTimes(m.call(r), m.vars(r)); fail != nil {
		m.fail(r, fail)
		return
	}
	key := m.key(r)
	m.emit(history.StepScheduled{
		Step:           key,
		Attempt:        u.Attempt,
		Input:          u.Input.Or("{}"),
		IdempotencyKey: m.idempotencyKey(key),
		Redelivery:     redelivery,
	})
}

// retryDelay is the time from a failure to the next attempt, in milliseconds:
// min(max_interval, initial_interval * backoff^(attempt-1)), shortened by
// jitter. The worker's own retry_after replaces it.
func (m *Machine) retryDelay(p definition.Retry, u *history.Unit, key string) int64 {
	if u.RetryAfterMS != nil {
		return max(0, *u.RetryAfterMS)
	}
	return int64(float64(RetryInterval(p, u.Attempt)) * (1 - p.Jitter*m.unitFraction(key, u.Attempt)))
}

// RetryInterval is the delay before jitter after a failed attempt (from 1), in
// milliseconds: it never shrinks with the attempt and never exceeds the maximum.
func RetryInterval(p definition.Retry, attempt uint32) int64 {
	if p.InitialIntervalMS == 0 {
		return 0 // also where the power is infinite
	}
	attempt = max(attempt, 1)
	d := float64(p.InitialIntervalMS) * math.Pow(p.Backoff, float64(attempt-1))
	if d >= float64(p.MaxIntervalMS) {
		return p.MaxIntervalMS
	}
	return int64(d)
}

// unitFraction is a number in [0,1) made of the attempt's identity, so that
// decisions stay pure.
func (m *Machine) unitFraction(key string, attempt uint32) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", m.state.ID, key, attempt))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
}

// describe names the first violation and how many there are.
func describe(violations []schema.Violation) string {
	first := violations[0]
	path := first.Path
	if path == "" {
		path = "the top"
	}
	if n := len(violations) - 1; n > 0 {
		return fmt.Sprintf("%s: %s (and %d more)", path, first.Message, n)
	}
	return fmt.Sprintf("%s: %s", path, first.Message)
}
