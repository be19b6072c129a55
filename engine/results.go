package engine

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"

	"perigee/engine/decide"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/store"
)

// maxResults bounds the results of one call.
const maxResults = 100

// recipient is who gets tasks in a commit that makes them ready.
type recipient struct {
	session  store.Session
	queues   []string
	claimKey string
	secrets  []string // one for each task that it takes
}

// nextWish is a worker's wish for more work in the answer to its results.
type nextWish struct {
	recipient
	got      []Assignment
	repeated bool // a result was not news
}

// Results takes in what workers report: all results for one execution are one
// commit. With a next session, work that these results made ready is handed
// out in that commit, any other in one more. Each ack stands for itself: where
// some executions cannot be decided the others' results count. An error says
// that none does, for all that is known.
func (e *Engine) Results(ctx context.Context, r ResultsRequest) (ResultsAnswer, error) {
	if len(r.Results) == 0 || len(r.Results) > maxResults {
		return ResultsAnswer{}, errorf(InvalidRequest, "results has 1 to %d entries; this one has %d", maxResults, len(r.Results))
	}
	answer := ResultsAnswer{Acks: make([]Ack, len(r.Results))}
	wish, err := e.wish(ctx, r)
	if errors.Is(err, unknownSession()) {
		answer.NextError = string(UnknownSession)
	} else if err != nil {
		return ResultsAnswer{}, err
	}
	if err := e.reportAll(ctx, groupResults(r.Results, answer.Acks), answer.Acks, wish); err != nil {
		return ResultsAnswer{}, err
	}
	if wish == nil {
		return answer, nil
	}
	if len(wish.got) == 0 && e.mayFind(wish) {
		wish.got, err = e.claim(ctx, e.claimOf(&wish.recipient))
		if err != nil {
			// The results stand; the worker polls for more.
			answer.NextError = string(CodeOf(err))
		}
	}
	answer.Next = wish.got
	return answer, nil
}

// mayFind reports whether a claim for a wish is worth its while. Where polls are
// held a lull speaks against it; but a repetition has to look for what was handed
// out to the try before.
func (e *Engine) mayFind(w *nextWish) bool {
	return w.repeated || !e.opts.HoldPolls || !e.lulls.quiet(w.session.Hash)
}

// wish prepares the handing out of more work; nil where none is asked for.
func (e *Engine) wish(ctx context.Context, r ResultsRequest) (*nextWish, error) {
	if r.NextSession == "" {
		return nil, nil
	}
	if r.NextMax == 0 {
		r.NextMax = 1
	}
	if r.NextMax < 1 || r.NextMax > maxTasksPerPoll {
		return nil, errorf(InvalidRequest, "max_tasks is 1 to %d; this is %d", maxTasksPerPoll, r.NextMax)
	}
	session, err := e.session(ctx, r.NextSession)
	if err != nil {
		return nil, err
	}
	return &nextWish{recipient: recipient{
		session: session,
		queues:  queuesOf(session),
		// The same results again, after a lost reply, get the same tasks again.
		claimKey: claimKey(r.Results[0].Token),
		secrets:  e.newSecrets(r.NextMax),
	}}, nil
}

// claimKey tells the calls of one session apart that may hold tasks at a time:
// 64 bits of a hash are enough for that, and rows and their index stay small.
func claimKey(id string) string { return hashSecret(id)[:16] }

// reportAll applies the results of several executions side by side, so that
// their commits can share a trip to the disk, and sets their acks. Each gets its
// part of the wish. Its error is that of all of them.
func (e *Engine) reportAll(ctx context.Context, groups [][]reported, acks []Ack, wish *nextWish) error {
	if len(groups) == 1 {
		if err := e.report(ctx, groups[0], wish); err != nil {
			return err
		}
		acknowledge(groups[0], acks, nil)
		return nil
	}
	shares := wish.share(groups)
	failures := make([]error, len(groups))
	var all sync.WaitGroup
	for i, group := range groups {
		all.Go(func() { failures[i] = e.report(ctx, group, shares[i]) })
	}
	all.Wait()
	failed := 0
	for i, group := range groups {
		acknowledge(group, acks, failures[i])
		if failures[i] != nil {
			failed++
			continue
		}
		if s := shares[i]; s != nil {
			wish.got = append(wish.got, s.got...)
			wish.repeated = wish.repeated || s.repeated
		}
	}
	if failed > 0 && failed == len(groups) {
		return errors.Join(failures...)
	}
	return nil
}

// acknowledge sets the acks of one execution's results. After an error what its
// job has set is not to be read: a leader may still be at work.
func acknowledge(group []reported, acks []Ack, err error) {
	for i := range group {
		if r := &group[i]; err == nil {
			acks[r.at].Accepted, acks[r.at].Reason = r.ack.Accepted, r.ack.Reason
		} else {
			acks[r.at].Reason, acks[r.at].Error = "", string(CodeOf(err))
		}
	}
}

// share divides a wish: a task for each result, as far as it goes.
func (w *nextWish) share(groups [][]reported) []*nextWish {
	shares := make([]*nextWish, len(groups))
	if w == nil {
		return shares
	}
	left := w.secrets
	for i, group := range groups {
		n := min(len(group), len(left))
		part := w.recipient
		part.secrets, left = left[:n:n], left[n:]
		shares[i] = &nextWish{recipient: part}
	}
	return shares
}

// reported is a result on its way to its execution.
type reported struct {
	token  taskToken
	result decide.Result
	at     int        // its place among all
	ack    decide.Ack // as the last try has it
}

// groupResults sorts results by execution, in the order of their first ones.
// A token that is none of ours gets its ack here.
func groupResults(results []Result, acks []Ack) [][]reported {
	var groups [][]reported
	for i, r := range results {
		acks[i] = Ack{Token: r.Token, Reason: decide.UnknownToken}
		token, ok := parseToken(r.Token)
		if !ok {
			continue
		}
		one := reported{token: token, result: decidedResult(r), at: i, ack: decide.Ack{Reason: decide.UnknownToken}}
		at := slices.IndexFunc(groups, func(g []reported) bool { return g[0].token.execution == token.execution })
		if at < 0 {
			groups = append(groups, []reported{one})
		} else {
			groups[at] = append(groups[at], one)
		}
	}
	return groups
}

func decidedResult(r Result) decide.Result {
	d := decide.Result{Output: r.Output, Error: r.Error}
	switch {
	case r.TooLarge != "":
		d.Refused = &history.TaskError{Code: decide.CodePayloadTooLarge, Message: r.TooLarge}
	case r.Malformed != "":
		d.Refused = &history.TaskError{Code: decide.CodeOutputContract, Message: r.Malformed}
	}
	if r.RetryAfter != nil {
		ms := r.RetryAfter.Milliseconds()
		d.RetryAfterMS = &ms
	}
	return d
}

// report applies the results of one execution in one commit.
func (e *Engine) report(ctx context.Context, group []reported, wish *nextWish) error {
	var alive []string // sessions that this shows to be
	j := &job{results: group, apply: func(m *decide.Machine, _ *store.Loaded) error {
		alive = nil
		before := len(m.Records())
		for i := range group {
			r := &group[i]
			if !issuedTo(m, r.token) {
				r.ack = decide.Ack{Reason: decide.UnknownToken}
				continue
			}
			if s := holderOf(m, r.token); s != "" && !slices.Contains(alive, s) {
				alive = append(alive, s)
			}
			r.ack = m.Result(r.token.unit, r.token.hash(), r.result)
		}
		if wish != nil {
			wish.repeated = len(m.Records())-before < len(group)
		}
		return nil
	}}
	if wish != nil && len(wish.got) < len(wish.secrets) {
		j.after = func(p *attempt) []store.Task { return p.dispatchNext(wish) }
	}
	err := e.do(ctx, group[0].token.execution, j)
	if errors.Is(err, errorf(NotFound, "")) {
		return nil // the ack says so
	}
	if err != nil {
		return err
	}
	for _, t := range j.next {
		wish.got = append(wish.got, assignmentOf(t))
	}
	for _, hash := range alive {
		e.touchHash(ctx, hash)
	}
	return nil
}

// holderOf is the worker session that holds the attempt of a token, "" where the
// token is not the current one or no worker's.
func holderOf(m *decide.Machine, t taskToken) string {
	u := m.State().Unit(t.unit)
	if u == nil || u.Token == nil || *u.Token != t.hash() || u.WorkerSession == nil ||
		u.WithChild() || strings.HasPrefix(*u.WorkerSession, builtinPrefix) {
		return ""
	}
	return *u.WorkerSession
}

// issuedTo reports whether the attempt under way, if it is the token's, is with
// the worker that the token names: nobody may put another name in front of a
// secret.
func issuedTo(m *decide.Machine, t taskToken) bool {
	u := m.State().Unit(t.unit)
	return u == nil || u.Token == nil || *u.Token != t.hash() || u.WorkerID == nil || *u.WorkerID == t.worker
}

// dispatchNext hands what this very decision made ready to the worker whose
// result it was, in the same commit.
func (p *attempt) dispatchNext(wish *nextWish) []store.Task {
	m := p.machine
	var tasks []store.Task
	for unit, seq := range madeReady(m) {
		taken := len(wish.got) + len(tasks)
		if taken == len(wish.secrets) {
			break
		}
		if row, ok := m.Row(unit); ok && slices.Contains(wish.queues, row.Queue) && m.Startable(unit) {
			tasks = append(tasks, p.dispatchTo(unit, seq, row, &wish.recipient, wish.secrets[taken]))
		}
	}
	return tasks
}

// madeReady are the units that a decision put into the queue, in their order,
// with the sequence numbers of their events.
func madeReady(m *decide.Machine) iter.Seq2[string, uint64] {
	records := m.Records()
	return func(yield func(string, uint64) bool) {
		for _, r := range records {
			if s, ok := r.Event.(history.StepScheduled); ok && !yield(s.Step, r.Seq) {
				return
			}
		}
	}
}

// dispatchTo dispatches a ready unit to a worker and makes its row.
func (p *attempt) dispatchTo(unit string, seq uint64, row decide.QueueRow, to *recipient, secret string) store.Task {
	t := readyTask(p.machine, p.rootID(), unit, row, seq)
	t.State = store.TaskDispatched
	t.Secret, t.TokenHash = secret, hashSecret(secret)
	t.Session, t.WorkerID, t.ClaimKey = to.session.Hash, to.session.WorkerID, to.claimKey
	t.DispatchedMS = p.machine.Now()
	t.DeadlineMS = t.DispatchedMS + t.TimeoutMS
	t.DueAtMS = min(t.DeadlineMS, t.DispatchedMS+p.engine.opts.SessionTimeout.Milliseconds())
	p.machine.Dispatch(unit, t.Dispatch())
	return t
}

// Progress records what a worker says of an attempt, at most once a second,
// and keeps its session alive. It reports whether the attempt is still the
// current one and whether the worker should stop.
func (e *Engine) Progress(ctx context.Context, token string, details exactjson.Value) (current, stop bool, err error) {
	t, ok := parseToken(token)
	if !ok {
		return false, true, nil
	}
	var accepted, cancel bool
	var session string
	err = e.do(ctx, t.execution, &job{apply: func(m *decide.Machine, _ *store.Loaded) error {
		if err := e.checkPayload("details", details, decide.Program{Definition: m.Definition()}); err != nil {
			return err
		}
		accepted = m.Progress(t.unit, t.hash(), details)
		cancel = !accepted || m.State().Abort != nil && !history.IsCleanup(t.unit)
		if u := m.State().Unit(t.unit); accepted && u.WorkerSession != nil {
			session = *u.WorkerSession
		}
		return nil
	}})
	if errors.Is(err, errorf(NotFound, "")) {
		return false, true, nil
	}
	if err != nil {
		return false, false, err
	}
	if session != "" {
		e.touchHash(ctx, session)
	}
	return accepted, cancel, nil
}

// resultOf reads a result from the inbox.
func resultOf(r store.Report) decide.Result {
	d := decide.Result{RetryAfterMS: r.RetryAfterMS}
	if r.Success {
		d.Output = exactjson.Value(r.Payload)
		return d
	}
	e, err := history.ReadTaskError(exactjson.Value(r.Payload))
	if err != nil {
		e = history.TaskError{Code: string(Internal), Message: "the reported error cannot be read"}
	}
	d.Error = &e
	return d
}
