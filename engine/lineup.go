package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"perigee/engine/decide"
	"perigee/store"
)

// job is one command for one execution. Commands that meet in one process are
// combined: whoever finds nobody at work becomes the leader and commits for
// all that wait, with one load and one commit.
type job struct {
	// apply checks the command against the state and emits its events. It runs
	// anew on every try, so it sets what it answers and keeps nothing. An error
	// means that it emitted nothing. What it sets may be read where do returned
	// no error: after any other the leader may still be at work.
	apply func(m *decide.Machine, l *store.Loaded) error
	// results are what the job reports of attempts; nil for other commands.
	results []reported
	// after runs when everything is decided: it may dispatch what became ready.
	after func(p *attempt) []store.Task
	// create gives the program of an execution that does not exist yet.
	create func() decide.Program
	tags   map[string]string // of the execution to create
	// looks asks for the dispatched tasks that are due; such a job is background
	// work: it is dropped when it loses a race.
	looks bool

	until time.Time // when the caller's time is over; zero: never
	done  chan struct{}
	next  []store.Task // what after dispatched, in the try that was committed
	err   error
}

// lineup holds the jobs that wait for each execution.
type lineup struct {
	mu    sync.Mutex
	lines map[string]*line
}

type line struct{ waiting []*job }

// maxCombined bounds how many commands share one commit.
const maxCombined = 128

// callTimeout bounds one batch, so that a database that hangs does not hold
// those who wait for ever.
const callTimeout = 20 * time.Second

// do runs a job for an execution, alone or together with others.
func (e *Engine) do(ctx context.Context, id string, j *job) error {
	if err := ctx.Err(); err != nil {
		return fromStore(err, "execution") // nobody waits for it any more
	}
	j.done = make(chan struct{})
	j.until, _ = ctx.Deadline()
	if e.lines.join(id, j) {
		e.lead(ctx, id, e.lines.take(id))
		return j.err
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		// The leader may still commit it: the caller's retry, with the same
		// ids, finds out.
		return fromStore(ctx.Err(), "execution")
	}
}

// join lines up a job and reports whether the caller has to lead.
func (l *lineup) join(id string, j *job) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines == nil {
		l.lines = map[string]*line{}
	}
	at, busy := l.lines[id]
	if !busy {
		at = &line{}
		l.lines[id] = at
	}
	at.waiting = append(at.waiting, j)
	return !busy
}

// take gives the leader the jobs that wait; none ends its lead.
func (l *lineup) take(id string) []*job {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.lines[id]
	n := min(len(at.waiting), maxCombined)
	if n == 0 {
		delete(l.lines, id)
		return nil
	}
	jobs := at.waiting[:n:n]
	at.waiting = at.waiting[n:]
	return jobs
}

// lead commits for a batch of those who wait. When others came in meanwhile the
// lead passes to a goroutine, so that no caller works for others for ever. What
// a commit makes due in other executions is done after the line is left: it may
// come back to this one.
func (e *Engine) lead(ctx context.Context, id string, jobs []*job) {
	p := e.serve(ctx, id, jobs)
	if next := e.lines.take(id); next != nil {
		go e.lead(context.WithoutCancel(ctx), id, next)
	}
	e.follow(ctx, p)
}

// serve runs one batch and tells each job how it went, whatever happens: a line
// that nobody leads would hold up its execution for good. A caller that goes
// away takes nobody's commit along.
func (e *Engine) serve(ctx context.Context, id string, jobs []*job) (p *attempt) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), endOf(jobs))
	defer cancel()
	p = &attempt{engine: e, id: id, jobs: jobs}
	defer func() {
		if r := recover(); r != nil {
			e.states.drop(id)
			p.fail(&Error{Code: Internal, Message: "the server failed; its log says why", Cause: fmt.Errorf("%v\n%s", r, debug.Stack())})
		}
		for _, j := range jobs {
			close(j.done)
		}
	}()
	p.pass(ctx)
	return p
}

// endOf is when a batch has to be done: when the time of the last of its
// callers is over.
func endOf(jobs []*job) time.Time {
	longest := time.Now().Add(callTimeout)
	var end time.Time
	for _, j := range jobs {
		if j.until.IsZero() || j.until.After(longest) {
			return longest
		}
		if j.until.After(end) {
			end = j.until
		}
	}
	return end
}
