package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"perigee/engine/decide"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/store"
)

// maxWait bounds how long a call is held, and lookAgain how long a held call
// trusts that nothing happened in another process.
const (
	maxWait   = 25 * time.Second
	lookAgain = time.Second
)

// load reads an execution as it is, without deciding anything. NotFound.
func (e *Engine) load(ctx context.Context, id string) (*decide.Machine, error) {
	whole := false
	for {
		req, warm := e.loadRequest(id)
		if whole {
			req.SnapshotFormat = store.NoSnapshot
		}
		l, err := e.store.Load(ctx, req)
		if err != nil {
			return nil, fromStore(err, "execution")
		}
		if l.Head == nil {
			return nil, errorf(NotFound, "execution %q not found", id)
		}
		m, size, err := e.materialize(id, &l, warm, nil)
		var need *needProgram
		if errors.As(err, &need) {
			if _, err := e.program(ctx, need.hash); err != nil {
				return nil, fromStore(err, "definition")
			}
			continue
		}
		if errors.Is(err, errUnreadable) && !whole {
			whole = true
			continue
		}
		if err != nil {
			return nil, fromStore(err, "execution")
		}
		e.clock.learn(l.NowMS)
		m.At(l.NowMS)
		if !m.State().Status.Terminal() {
			seen := store.Seen{Incarnation: l.Head.Incarnation, Seq: l.Head.LastSeq}
			e.states.put(warmState{id: id, seen: seen, machine: m.Clone(), size: size, head: l.Head})
		}
		return m, nil
	}
}

// Execution gives the state of an execution. With a wait it is held until the
// execution has ended, or as long as that. NotFound.
func (e *Engine) Execution(ctx context.Context, id string, wait time.Duration) (*history.State, error) {
	return e.awaitEnd(ctx, id, wait, e.hub.follow(id, true))
}

// awaitEnd waits for an execution's end with a follower that was there before
// the caller last saw the execution.
func (e *Engine) awaitEnd(ctx context.Context, id string, wait time.Duration, f *follower) (*history.State, error) {
	var state *history.State
	err := e.await(ctx, id, wait, f, func(end *history.State) (bool, error) {
		if end != nil {
			state = end
			return true, nil
		}
		m, err := e.load(ctx, id)
		if err != nil {
			return false, err
		}
		state = m.State()
		return state.Status.Terminal(), nil
	})
	return state, err
}

// await looks until look says that it has what it waits for, or the wait is
// over; at once where polls are not held here. look is given the state that the
// execution ended with, where this process knows it.
func (e *Engine) await(ctx context.Context, id string, wait time.Duration, f *follower, look func(end *history.State) (bool, error)) error {
	if !e.opts.HoldPolls {
		wait = 0
	}
	end := f.known()
	for until := time.Now().Add(min(wait, maxWait)); ; {
		done, err := look(end)
		left := time.Until(until)
		if err != nil || done || left <= 0 {
			e.hub.unfollow(id, f)
			return err
		}
		end = e.hold(ctx, id, f, min(left, lookAgain))
		if e.hub.isClosed() || ctx.Err() != nil {
			return nil
		}
		f = e.hub.follow(id, f.untilEnd)
	}
}

// hold waits for a follower's moment, or for so long; it gives the state that
// the execution ended with, where that is known.
func (e *Engine) hold(ctx context.Context, id string, f *follower, d time.Duration) *history.State {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-f.ready:
		return f.end
	case <-timer.C:
	case <-ctx.Done():
	}
	e.hub.unfollow(id, f)
	return nil
}

// Cancel asks an execution to wind down. It is no error where the execution
// was cancelled already; ExecutionFinished where it ended otherwise.
func (e *Engine) Cancel(ctx context.Context, id, reason string) (*history.State, error) {
	var state *history.State
	err := e.do(ctx, id, &job{
		apply: func(m *decide.Machine, _ *store.Loaded) error {
			s := m.State()
			if s.Status.Terminal() && s.Status != history.Cancelled {
				return errorf(ExecutionFinished, "execution %q is %s already", id, s.Status)
			}
			m.Cancel(reason)
			return nil
		},
		after: func(p *attempt) []store.Task {
			state = p.machine.State().Clone()
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	return state, nil
}

// Signal sends a signal and gives the sequence number of its event. The same
// signal id with the same content again is a no-op with the same answer.
// Errors: NotFound, UnknownSignal, SignalPayloadInvalid, SignalExists,
// ExecutionFinished, PayloadTooLarge, ResourceExhausted.
func (e *Engine) Signal(ctx context.Context, id, name string, payload exactjson.Value, signalID string) (uint64, error) {
	if signalID == "" {
		signalID = e.opts.NewID() // by which a next try finds what became of the one before
	}
	var seq uint64
	err := e.do(ctx, id, &job{apply: func(m *decide.Machine, _ *store.Loaded) error {
		var err error
		seq, err = e.signal(m, name, payload, signalID)
		return err
	}})
	if err != nil {
		return 0, err
	}
	return seq, nil
}

func (e *Engine) signal(m *decide.Machine, name string, payload exactjson.Value, signalID string) (uint64, error) {
	s, d := m.State(), m.Definition()
	schema, declared := d.Signals[name]
	if !declared {
		return 0, errorf(UnknownSignal, "%s@%s has no signal %q; %s", d.Name, d.Version, name, declaredNames(d.Signals))
	}
	filled, violations := schema.Apply(payload.OrNull())
	if len(violations) > 0 {
		return 0, violated(SignalPayloadInvalid, "the payload of signal "+name, violations)
	}
	if err := e.checkPayload("the payload", filled, decide.Program{Definition: d}); err != nil {
		return 0, err
	}
	if known, ok := s.SignalByID(signalID); ok {
		if known.Name != name || !exactjson.Equal(known.Payload, filled) {
			return 0, errorf(SignalExists, "signal_id %q was used for a signal with other content; use another signal_id", signalID)
		}
		return known.Seq, nil
	}
	if s.Status.Terminal() {
		return 0, errorf(ExecutionFinished, "execution %q is %s already; it takes no signal", s.ID, s.Status)
	}
	if limit := e.limits.MaxHistoryEvents; limit > 0 && s.LastSeq >= 2*limit {
		return 0, errorf(ResourceExhausted, "execution %q has %d events, twice the limit of %d (max_history_events); it takes no more signals", s.ID, s.LastSeq, limit)
	}
	return m.Signal(name, filled, signalID), nil
}

// Query evaluates a declared query, at any time. Errors: NotFound,
// UnknownQuery, QueryFailed.
func (e *Engine) Query(ctx context.Context, id, name string) (exactjson.Value, error) {
	m, err := e.load(ctx, id)
	if err != nil {
		return "", err
	}
	value, declared, fail := m.Query(name)
	d := m.Definition()
	switch {
	case !declared:
		return "", errorf(UnknownQuery, "%s@%s has no query %q; %s", d.Name, d.Version, name, declaredNames(d.Queries))
	case fail != nil:
		return "", errorf(QueryFailed, "%s", fail.Message) // which names the query
	}
	return value, nil
}

// History reads stored events. With a wait it is held until there is one
// after AfterSeq. NotFound.
func (e *Engine) History(ctx context.Context, r HistoryRequest) (HistoryPage, error) {
	limit := r.Limit
	if limit <= 0 || limit > maxHistoryPage {
		limit = maxHistoryPage
	}
	var page HistoryPage
	err := e.await(ctx, r.ExecutionID, r.Wait, e.hub.follow(r.ExecutionID, false), func(*history.State) (bool, error) {
		events, err := e.store.History(ctx, r.ExecutionID, r.AfterSeq, limit+1, maxPageBytes)
		if err != nil {
			return false, fromStore(err, "history")
		}
		page = HistoryPage{Events: events}
		if len(events) > limit {
			page.Events = events[:limit]
		}
		if n := len(page.Events); n > 0 {
			page.NextAfterSeq = page.Events[n-1].Seq
			return true, nil
		}
		return false, e.mustExist(ctx, r)
	})
	if err != nil {
		return HistoryPage{}, err
	}
	return page, e.lastPage(ctx, r.ExecutionID, &page)
}

// Bounds of a page of history.
const (
	maxHistoryPage = 1000
	maxPageBytes   = 4 << 20
)

// mustExist tells an execution without later events from none at all.
func (e *Engine) mustExist(ctx context.Context, r HistoryRequest) error {
	if first, err := e.store.History(ctx, r.ExecutionID, 0, 1, 0); err != nil {
		return fromStore(err, "history")
	} else if len(first) == 0 {
		return errorf(NotFound, "execution %q not found", r.ExecutionID)
	}
	return nil
}

// lastPage clears the cursor of a page behind which there is nothing.
func (e *Engine) lastPage(ctx context.Context, id string, page *HistoryPage) error {
	if page.NextAfterSeq == 0 {
		return nil
	}
	more, err := e.store.History(ctx, id, page.NextAfterSeq, 1, 0)
	if err != nil {
		return fromStore(err, "history")
	}
	if len(more) == 0 {
		page.NextAfterSeq = 0
	}
	return nil
}

// List lists executions, newest first.
func (e *Engine) List(ctx context.Context, r ListRequest) (ListPage, error) {
	limit := r.Limit
	switch {
	case limit == 0:
		limit = 50
	case limit < 1 || limit > 1000:
		return ListPage{}, errorf(InvalidRequest, "limit is 1 to 1000; this is %d", limit)
	}
	f := store.Filter{
		Status: r.Status, Workflow: r.Workflow, Version: r.Version, ParentID: r.Parent, Tags: r.Tags,
		CreatedAfterMS: r.CreatedAfterMS, CreatedBeforeMS: r.CreatedBeforeMS, Limit: limit + 1,
	}
	var ok bool
	if f.AfterCreatedMS, f.AfterID, ok = parseCursor(r.Cursor); !ok {
		return ListPage{}, errorf(InvalidRequest, "the cursor is not one that a list has given; leave it out for the first page")
	}
	heads, err := e.store.Executions(ctx, f)
	if err != nil {
		return ListPage{}, fromStore(err, "executions")
	}
	page := ListPage{Executions: heads}
	if len(heads) > limit {
		page.Executions = heads[:limit]
		last := heads[limit-1]
		page.NextCursor = cursor(last.CreatedAtMS, last.ID)
	}
	return page, nil
}

func cursor(createdMS int64, id string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d/%s", createdMS, id))
}

func parseCursor(text string) (createdMS int64, id string, ok bool) {
	if text == "" {
		return 0, "", true
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, "", false
	}
	moment, id, ok := strings.Cut(string(b), "/")
	createdMS, err = strconv.ParseInt(moment, 10, 64)
	return createdMS, id, ok && err == nil && isExecutionID(id)
}
