package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"perigee/engine/exactjson"
	"perigee/engine/traceid"
	"perigee/store"
)

// Poll hands out ready tasks, held until there is one or the wait is over.
// Whoever polls also sees to a few due executions. UnknownSession.
func (e *Engine) Poll(ctx context.Context, r PollRequest) (Polled, error) {
	session, err := e.session(ctx, r.SessionID)
	if err != nil {
		return Polled{}, err
	}
	if r.MaxTasks == 0 {
		r.MaxTasks = 1
	}
	if r.MaxTasks < 1 || r.MaxTasks > maxTasksPerPoll {
		return Polled{}, errorf(InvalidRequest, "max_tasks is 1 to %d; this is %d", maxTasksPerPoll, r.MaxTasks)
	}
	if r.PollID == "" {
		r.PollID, r.FirstTry = e.opts.NewID(), true
	}
	if !e.opts.HoldPolls {
		r.Wait = 0
	}
	return e.poll(ctx, session, r)
}

// poll is Poll for a session.
func (e *Engine) poll(ctx context.Context, session store.Session, r PollRequest) (Polled, error) {
	queues, came := queuesOf(session), time.Now()
	end := came.Add(min(r.Wait, maxWait))
	look := !r.FirstTry // a repetition asks for what the try before was given
	for {
		// Each turn has secrets of its own: those of the one before may be in a
		// commit of which nobody knows whether it came about.
		to := &recipient{session: session, queues: queues, claimKey: claimKey(r.PollID), secrets: e.newSecrets(r.MaxTasks)}
		w := e.hub.waitQueues(queues, session.Hash)
		next := e.lulls.nextLook(session.Hash, came)
		now := time.Now()
		if last := !now.Before(end) || ctx.Err() != nil; look || last || !now.Before(next) {
			tasks, err := e.claim(ctx, e.claimOf(to))
			if err != nil || len(tasks) > 0 || last || e.hub.isClosed() {
				e.hub.leaveQueues(w)
				if err != nil && look {
					e.hub.wakeQueues(queues) // another may look for what this one was woken for
				}
				return Polled{Tasks: tasks, NextPoll: e.nextPoll(session.Hash, len(tasks))}, err
			}
			next = later(e.lulls.nextLook(session.Hash, came), now.Add(e.lulls.length))
		}
		e.hub.open(w, to)
		var given []Assignment
		given, look = e.awaitQueue(ctx, w, min(time.Until(next), time.Until(end)))
		switch {
		case w.ended:
			e.giveBack(ctx, given)
			return Polled{}, unknownSession()
		case len(given) > 0:
			return Polled{Tasks: given, NextPoll: e.nextPoll(session.Hash, len(given))}, nil
		}
		e.touch(ctx, session.Hash)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// claimOf asks for tasks for a worker.
func (e *Engine) claimOf(to *recipient) store.ClaimRequest {
	return store.ClaimRequest{
		Session: to.session.Hash, WorkerID: to.session.WorkerID, Queues: to.queues, ClaimKey: to.claimKey,
		Secrets: to.secrets, SessionTimeoutMS: e.opts.SessionTimeout.Milliseconds(),
	}
}

// awaitQueue holds a poll until a task may be ready, which is when it is woken,
// or a commit has handed it some.
func (e *Engine) awaitQueue(ctx context.Context, w *waiter, left time.Duration) (given []Assignment, woken bool) {
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-w.ready:
		return w.given, true // it was taken off the list when it was woken
	case <-timer.C:
	case <-ctx.Done():
	}
	return e.hub.leaveQueues(w), false
}

// idlePollFirst is when, at the latest, a worker may come again after a first
// poll in vain, where polls are not held. It doubles up to Options.MaxIdlePoll.
const idlePollFirst = 500 * time.Millisecond

// nextPoll is when a worker may come again: at once where polls are held or it
// has just got work, else after a wait that grows while there is none, with
// full jitter, for workers that became idle together must not come together.
// The count is this process's: where calls are spread over many, a worker
// comes sooner than it need.
func (e *Engine) nextPoll(session string, tasks int) time.Duration {
	inVain := e.sessions.idle(session, tasks)
	if inVain == 0 || e.opts.HoldPolls {
		return 0
	}
	most := min(e.opts.MaxIdlePoll, idlePollFirst<<min(inVain-1, 10))
	return max(time.Millisecond, rand.N(most))
}

// claim asks the store for tasks and advances the due executions it names. Where
// there was no task that may have made one ready.
func (e *Engine) claim(ctx context.Context, r store.ClaimRequest) ([]Assignment, error) {
	tasks, due, err := e.claimOnce(ctx, r)
	if err != nil || len(due) == 0 {
		return tasks, err
	}
	if len(tasks) > 0 {
		brief, cancel := context.WithTimeout(ctx, dueBrief)
		defer cancel()
		e.advanceSome(brief, due)
		return tasks, nil
	}
	e.advanceSome(ctx, due)
	tasks, _, err = e.claimOnce(ctx, r)
	return tasks, err
}

// dueBrief is how long tasks that were claimed may be kept from their worker by
// due work: their time runs.
const dueBrief = time.Second

// claimOnce asks the store for tasks, and for a few executions that are due.
func (e *Engine) claimOnce(ctx context.Context, r store.ClaimRequest) (tasks []Assignment, due []string, err error) {
	r.NowMS = e.nowMS()
	began := e.lulls.looks(r.Session)
	c, err := e.store.Claim(ctx, r)
	e.lulls.looked(r.Session, began, err == nil && !c.More)
	if errors.Is(err, store.ErrBusy) {
		return nil, nil, nil // others took what there was; that is no fault
	}
	if err != nil {
		return nil, nil, fromStore(err, "tasks")
	}
	e.clock.learn(c.NowMS)
	if !c.Known {
		e.sessions.drop(r.Session)
		return nil, nil, unknownSession()
	}
	if c.More && len(c.Tasks) > 0 {
		e.hub.wakeQueues(r.Queues) // for a poll that relied on this claim
	}
	if c.Repeated {
		if c.Tasks, err = e.recall(ctx, c.Tasks); err != nil {
			return nil, nil, err
		}
	}
	for i, seq := range c.Seqs {
		e.states.dispatched(seq, c.Tasks[i])
		e.hub.changed(c.Tasks[i].ExecutionID, nil)
	}
	assignments := make([]Assignment, len(c.Tasks))
	for i, t := range c.Tasks {
		assignments[i] = assignmentOf(t)
		e.hub.dueAt(t.DueAtMS)
	}
	return assignments, c.DueIDs, nil
}

// recall fills in what bare rows do not say of tasks that are handed out again.
// One whose unit has no row any more is left out.
func (e *Engine) recall(ctx context.Context, tasks []store.Task) (known []store.Task, err error) {
	for _, t := range tasks {
		if t.TaskName != "" {
			known = append(known, t)
			continue
		}
		m, err := e.load(ctx, t.ExecutionID)
		if err != nil {
			return nil, err
		}
		row, ok := m.Row(t.Unit)
		if !ok {
			continue
		}
		full := readyTask(m, t.RootID, t.Unit, row, t.ReadySeq)
		t.Queue, t.TaskName, t.ContractVersion = full.Queue, full.TaskName, full.ContractVersion
		t.Workflow, t.WorkflowVersion, t.Input = full.Workflow, full.WorkflowVersion, full.Input
		known = append(known, t)
	}
	return known, nil
}

// dueWithPoll is how many due executions a poll sees to.
const dueWithPoll = 3

// advanceSome advances the due executions that a claim named. Where some of them
// failed lately others may be due behind them.
func (e *Engine) advanceSome(ctx context.Context, ids []string) {
	waiting := e.failedWork.waiting(e.localMS())
	passed := false
	for _, id := range ids {
		if slices.Contains(waiting, id) {
			passed = true
			continue
		}
		if err := e.advanceDue(ctx, id); err != nil {
			e.log.WarnContext(ctx, "a due execution waits for the next tick", "execution_id", id, "error", err)
		}
	}
	if passed {
		if _, err := e.Tick(ctx, dueWithPoll); err != nil {
			e.log.WarnContext(ctx, "due executions wait for the next tick", "error", err)
		}
	}
}

func assignmentOf(t store.Task) Assignment {
	return Assignment{
		Token:           taskToken{t.ExecutionID, t.Unit, t.WorkerID, t.Secret}.String(),
		ExecutionID:     t.ExecutionID,
		Workflow:        t.Workflow,
		WorkflowVersion: t.WorkflowVersion,
		StepID:          t.Unit,
		TaskName:        t.TaskName,
		ContractVersion: t.ContractVersion,
		Input:           exactjson.Value(t.Input),
		IdempotencyKey:  t.Key,
		Attempt:         t.Attempt,
		Redelivery:      t.Redelivery,
		DeadlineMS:      t.DeadlineMS,
		TimeoutMS:       t.TimeoutMS,
		TraceParent:     traceid.Parent(t.RootID, t.ExecutionID, t.Unit, t.Attempt),
	}
}

// queuesOf are the queues whose tasks a session takes: its own language's and
// those of any.
func queuesOf(s store.Session) []string {
	queues := make([]string, 0, 2*len(s.Contracts))
	for _, c := range s.Contracts {
		name := c.TaskName + "@" + c.ContractVersion + "/"
		queues = append(queues, name+s.Runtime)
		if s.Runtime != "any" {
			queues = append(queues, name+"any")
		}
	}
	return queues
}
