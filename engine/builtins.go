package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"perigee/engine/decide"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/store"
)

// Some tasks wait for no poll: the server itself claims them, in a session that
// needs no registration, and either runs them (http.request) or calls their
// worker (push). Nobody's heartbeat speaks for such an attempt. Until the server
// has its result, or its worker has taken the call, the row is due again as soon
// as that must have happened: then the server died with it, and the outcome is
// unknown. An attempt whose worker took it stays out until its deadline, which
// it always has.

// Failure is why a task that the server ran, or the call of its worker, failed.
type Failure struct {
	history.TaskError
	// RetryAfter replaces the delay of the retry policy; nil: it does not.
	RetryAfter *time.Duration
	// Unknown says that nobody knows whether the attempt took effect. A step
	// that is at_most_once is then not tried again.
	Unknown bool
}

// Push calls workers that do not poll.
type Push interface {
	// Takes reports whether the worker of a task is called.
	Takes(task string) bool
	// Deliver hands an assignment to its worker, who reports the result on its
	// token as any worker does. Nil: the worker has it.
	Deliver(ctx context.Context, a Assignment) *Failure
	// Bound is more time than any Deliver takes.
	Bound() time.Duration
}

const (
	httpTask = "http.request"
	// httpWorker and pushWorker name the server in histories; a token of a
	// pushed worker that is restricted to worker ids has to name pushWorker.
	httpWorker = "perigee"
	pushWorker = "push"
)

// How many attempts of each kind one process has under way at once.
const (
	maxRequests   = 16
	maxDeliveries = 64
)

const (
	// requestBound is more time than any call of http.request takes.
	requestBound = decide.BuiltinTimeoutMS * time.Millisecond
	// deliveryMargin is what a delivery may take beside the call itself: to begin
	// after it was claimed, and to be noted once it was accepted.
	deliveryMargin = 15 * time.Second
)

// builtin is a kind of task that the server claims itself.
type builtin struct {
	worker string
	most   int
	bound  time.Duration // after which an attempt that nobody speaks for is looked at
	queues func(context.Context) ([]string, error)
}

// builtins are the kinds that this engine was given the means for.
func (e *Engine) builtins() []builtin {
	var kinds []builtin
	if e.opts.HTTPRequest != nil {
		kinds = append(kinds, builtin{httpWorker, maxRequests, requestBound, func(context.Context) ([]string, error) {
			return []string{decide.HTTPQueue}, nil
		}})
	}
	if e.opts.Push != nil {
		kinds = append(kinds, builtin{pushWorker, maxDeliveries, e.opts.Push.Bound() + deliveryMargin, e.pushQueues})
	}
	return kinds
}

// runBuiltins claims and runs the tasks that the server sees to itself. The
// channel is closed when the last one has ended.
func (e *Engine) runBuiltins(ctx context.Context) <-chan struct{} {
	var loops sync.WaitGroup
	for _, kind := range e.builtins() {
		loops.Go(func() { e.runBuiltin(ctx, kind) })
	}
	done := make(chan struct{})
	go func() {
		loops.Wait()
		close(done)
	}()
	return done
}

// runBuiltin is the loop of one kind. Nothing is claimed that could not be run
// at once, and nothing any more once the engine is closed.
func (e *Engine) runBuiltin(ctx context.Context, kind builtin) {
	running := make(chan struct{}, kind.most)
	for ctx.Err() == nil && !e.hub.isClosed() {
		select {
		case running <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		task, ok := e.nextBuiltin(ctx, kind)
		if !ok {
			<-running
			continue
		}
		go func() {
			defer func() { <-running }()
			e.RunBuiltin(ctx, task)
		}()
	}
	for range kind.most {
		running <- struct{}{}
	}
}

// nextBuiltin claims one task, or waits for a moment in which there may be one.
func (e *Engine) nextBuiltin(ctx context.Context, kind builtin) (Assignment, bool) {
	queues, err := kind.queues(ctx)
	w := e.hub.waitQueues(queues, "")
	var tasks []Assignment
	if err == nil {
		tasks, err = e.claimBuiltins(ctx, kind, queues, 1)
	}
	if err != nil && ctx.Err() == nil {
		e.log.ErrorContext(ctx, "tasks of the server's own could not be claimed", "worker", kind.worker, "error", err)
	}
	if len(tasks) == 0 {
		e.awaitQueue(ctx, w, lookAgain)
		return Assignment{}, false
	}
	e.hub.leaveQueues(w)
	return tasks[0], true
}

// ClaimBuiltins claims up to n tasks that the server sees to itself; each goes
// to RunBuiltin. A server that stays up does so in Run.
func (e *Engine) ClaimBuiltins(ctx context.Context, n int) ([]Assignment, error) {
	var claimed []Assignment
	for _, kind := range e.builtins() {
		queues, err := kind.queues(ctx)
		if err != nil {
			return claimed, err
		}
		if len(claimed) == n {
			break
		}
		tasks, err := e.claimBuiltins(ctx, kind, queues, n-len(claimed))
		claimed = append(claimed, tasks...)
		if err != nil {
			return claimed, err
		}
	}
	return claimed, nil
}

// ForgetBuiltins has the next ClaimBuiltins look at the registered definitions,
// of which others may have registered one: for who claims seldom, and would
// miss its tasks until the next time.
func (e *Engine) ForgetBuiltins() { e.pushed.forget() }

func (e *Engine) claimBuiltins(ctx context.Context, kind builtin, queues []string, n int) ([]Assignment, error) {
	if len(queues) == 0 {
		return nil, nil
	}
	return e.claim(ctx, store.ClaimRequest{
		Session: builtinPrefix + e.instance, WorkerID: kind.worker, Queues: queues,
		ClaimKey: e.opts.NewID(), Secrets: e.newSecrets(n), SessionTimeoutMS: kind.bound.Milliseconds(),
	})
}

// RunBuiltin runs a task that ClaimBuiltins claimed and reports how it went,
// or calls its worker and reports only where that fails. When ctx ends
// meanwhile the task is given back, for another process to take at once; that
// counts as a loss, so that one which never ends in time does not go round for
// ever.
func (e *Engine) RunBuiltin(ctx context.Context, a Assignment) {
	output, fail := e.runOrDeliver(ctx, a)
	stopped := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	var err error
	switch {
	case fail == nil && a.TaskName != httpTask:
		err = e.accepted(ctx, a)
	case fail == nil:
		_, err = e.Results(ctx, ResultsRequest{Results: []Result{{Token: a.Token, Output: output}}})
	case stopped:
		err = e.giveUp(ctx, a, nil)
	default:
		err = e.failBuiltin(ctx, a, fail)
	}
	if err != nil {
		e.log.ErrorContext(ctx, "the result of a task of the server's own could not be recorded; it will be looked at when it is due",
			"execution_id", a.ExecutionID, "step_id", a.StepID, "error", err)
	}
}

// runOrDeliver does what has to be done, within the attempt's own time.
func (e *Engine) runOrDeliver(ctx context.Context, a Assignment) (exactjson.Value, *Failure) {
	if a.TimeoutMS > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(a.TimeoutMS)*time.Millisecond)
		defer cancel()
	}
	if a.TaskName == httpTask {
		return e.opts.HTTPRequest(ctx, a.Input)
	}
	return "", e.opts.Push.Deliver(ctx, a)
}

// accepted lets an attempt whose worker took the call stay out until its
// deadline. A result that was faster has taken the row away.
func (e *Engine) accepted(ctx context.Context, a Assignment) error {
	t, ok := parseToken(a.Token)
	if !ok {
		return errorf(Internal, "the token of %s %s cannot be read", a.ExecutionID, a.StepID)
	}
	err := e.store.Sight(ctx, []store.Sighting{{Key: a.IdempotencyKey, TokenHash: t.hash(), DueAtMS: a.DeadlineMS}})
	if err != nil {
		return fromStore(err, "delivery")
	}
	e.hub.dueAt(a.DeadlineMS)
	return nil
}

// failBuiltin reports a failure on the attempt's token.
func (e *Engine) failBuiltin(ctx context.Context, a Assignment, fail *Failure) error {
	result := Result{Token: a.Token, Error: &fail.TaskError, RetryAfter: fail.RetryAfter}
	if fail.Unknown {
		return e.giveUp(ctx, a, &result)
	}
	_, err := e.Results(ctx, ResultsRequest{Results: []Result{result}})
	return err
}

// giveUp records that the outcome of an attempt is unknown. With a result, that
// stands instead wherever the step may be tried again.
func (e *Engine) giveUp(ctx context.Context, a Assignment, instead *Result) error {
	t, ok := parseToken(a.Token)
	if !ok {
		return errorf(Internal, "the token of %s %s cannot be read", a.ExecutionID, a.StepID)
	}
	return e.do(ctx, t.execution, &job{apply: func(m *decide.Machine, _ *store.Loaded) error {
		u := m.State().Unit(t.unit)
		switch {
		case u == nil || u.Status != history.UnitDispatched:
			// The worker was faster, or its execution has ended.
		case instead != nil && !m.AtMostOnce(t.unit):
			m.Result(t.unit, t.hash(), decidedResult(*instead))
		default:
			m.Lost(t.unit, t.hash(), decide.ReasonStoppedResponding(t.worker))
		}
		return nil
	}})
}

// pushFreshMS is how long what is known of registered definitions is trusted:
// another process may register one.
const pushFreshMS = 2000

// pushedQueues are the queues of tasks whose workers are called, as the
// registered definitions name them.
type pushedQueues struct {
	mu      sync.Mutex
	untilMS int64
	queues  []string            // sorted, each once
	of      map[string][]string // by a definition's hash, which stands for what never changes
}

func (p *pushedQueues) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.untilMS = 0
}

// pushQueues lists the queues that are pushed from. Retired versions count:
// their executions run on.
func (e *Engine) pushQueues(ctx context.Context) ([]string, error) {
	p := &e.pushed
	p.mu.Lock()
	defer p.mu.Unlock()
	now := e.localMS()
	if now < p.untilMS {
		return p.queues, nil
	}
	rows, err := e.store.Definitions(ctx, "")
	if err != nil {
		return nil, fromStore(err, "definitions")
	}
	of := make(map[string][]string, len(rows))
	var queues []string
	for _, row := range rows {
		mine, known := p.of[row.Hash]
		if !known {
			if mine, err = e.pushedBy(ctx, row); err != nil {
				e.log.WarnContext(ctx, "the tasks of a definition cannot be pushed", "workflow", row.Name, "version", row.Version, "error", err)
				continue
			}
		}
		of[row.Hash] = mine
		queues = append(queues, mine...)
	}
	slices.Sort(queues)
	p.queues, p.of, p.untilMS = slices.Compact(queues), of, now+pushFreshMS
	return p.queues, nil
}

// pushedBy are the queues of one definition that are pushed from.
func (e *Engine) pushedBy(ctx context.Context, row store.Definition) ([]string, error) {
	takes := false
	for name := range row.Tasks {
		takes = takes || e.opts.Push.Takes(name)
	}
	if !takes {
		return nil, nil
	}
	program, err := e.program(ctx, row.Hash)
	if err != nil {
		return nil, err
	}
	var queues []string
	for name, contract := range program.Definition.Tasks {
		if e.opts.Push.Takes(name) {
			queues = append(queues, contract.Queue())
		}
	}
	return queues, nil
}
