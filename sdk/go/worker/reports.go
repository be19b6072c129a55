package worker

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"perigee/sdk/go/client"
)

// maxBatchBytes bounds the outputs that travel together, well below the
// server's limit for one call.
const maxBatchBytes = 1 << 20

// reports sends results until they are acknowledged. Results of one execution
// take turns, and up to max calls run at once; what comes meanwhile waits and
// travels together in the next call. A wide fan-out so costs the server a commit
// for each call and not for each result, which would also compete for the same
// execution; results of different executions do not wait for each other.
type reports struct {
	run *run
	max int

	mu       sync.Mutex
	underWay int
	busy     map[string]bool // executions that a call under way reports to
	waiting  []*report
}

// report is one result on its way.
type report struct {
	execution string
	result    client.Result
	session   string            // "": no next task is wanted
	done      chan *client.Task // the next task, or nil
}

// report sends a result of an execution and gives the next task, if one was
// asked for and is ready. It returns when the result is acknowledged or refused
// for good, or when ctx ends.
func (q *reports) report(ctx context.Context, execution string, result client.Result, session string) *client.Task {
	p := &report{execution: execution, result: result, session: session}
	q.mu.Lock()
	if q.underWay == q.max || q.busy[execution] {
		p.done = make(chan *client.Task, 1)
		q.waiting = append(q.waiting, p)
		q.mu.Unlock()
		return <-p.done
	}
	q.underWay++
	q.busy[execution] = true
	q.mu.Unlock()
	next := q.alone(ctx, p)
	q.pass(ctx, p)
	return next
}

// pass gives the call that has just ended to those who wait, if any.
func (q *reports) pass(ctx context.Context, ended *report) {
	batch := q.take([]*report{ended})
	if len(batch) == 0 {
		return
	}
	go func() {
		for ; len(batch) > 0; batch = q.take(batch) {
			q.send(ctx, batch)
		}
	}()
}

// take ends a call: it removes the next batch from the queue, of executions to
// which no other call reports, or gives the call's place back.
func (q *reports) take(ended []*report) (batch []*report) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range ended {
		delete(q.busy, p.execution)
	}
	size := 0
	left := q.waiting[:0]
	for _, p := range q.waiting {
		bytes := len(p.result.Output)
		if q.busy[p.execution] || len(batch) == maxTasks || len(batch) > 0 && size+bytes > maxBatchBytes {
			left = append(left, p)
			continue
		}
		batch, size = append(batch, p), size+bytes
	}
	clear(q.waiting[len(left):])
	q.waiting = left
	for _, p := range batch {
		q.busy[p.execution] = true
	}
	if len(batch) == 0 {
		q.underWay--
	}
	return batch
}

// send reports a batch in one call and hands the tasks that come back to the
// first who asked.
func (q *reports) send(ctx context.Context, batch []*report) {
	if len(batch) == 1 {
		batch[0].done <- q.alone(ctx, batch[0])
		return
	}
	results, session, wanted := make([]client.Result, len(batch)), "", 0
	for i, p := range batch {
		results[i] = p.result
		if p.session != "" {
			session = p.session
			wanted++
		}
	}
	answer, err := q.run.worker.server.Results(ctx, results, session, wanted)
	if err != nil {
		// Refused as a whole (or ctx ended): each for itself says which it is.
		for _, p := range batch {
			p.done <- q.alone(ctx, p)
		}
		return
	}
	q.run.sawServer()
	for _, ack := range answer.Acks {
		q.acknowledged(ack.Token, ack.Accepted, ack.Reason)
	}
	tasks := answer.Tasks
	for _, p := range batch {
		if p.session != "" && len(tasks) > 0 {
			p.done <- tasks[0]
			tasks = tasks[1:]
			continue
		}
		p.done <- nil
	}
}

// alone reports one result. A success that the server refuses to read becomes
// a failure: nothing else would tell the execution before its time-out.
func (q *reports) alone(ctx context.Context, p *report) *client.Task {
	answer, err := q.run.worker.server.Report(ctx, p.result, p.session)
	if e, refused := refusalOf(err); refused && p.result.Error == nil {
		q.run.log.Error("the server refused an output; the attempt is reported as failed", "error", err)
		code := CodeOutputInvalid
		if e.Status == http.StatusRequestEntityTooLarge {
			code = CodeTooLarge
		}
		failed := client.Result{Token: p.result.Token, Error: &client.TaskError{Code: code, Message: e.Message}}
		answer, err = q.run.worker.server.Report(ctx, failed, p.session)
	}
	if err != nil {
		if ctx.Err() == nil {
			q.run.log.Error("the server refused a result; it is lost", "error", err)
		}
		return nil
	}
	q.run.sawServer()
	q.acknowledged(p.result.Token, answer.Accepted, answer.Reason)
	return answer.Next
}

func (q *reports) acknowledged(token string, accepted bool, reason string) {
	if accepted {
		return
	}
	q.run.mu.Lock()
	h := q.run.held[token]
	q.run.mu.Unlock()
	if h != nil {
		q.run.log.Warn("result not accepted", "reason", reason, "task", h.task.TaskName, "execution_id", h.task.ExecutionID, "step", h.task.StepID)
	}
}

// refusalOf gives the refusal of a message for what stands in it.
func refusalOf(err error) (*client.Error, bool) {
	var e *client.Error
	if !errors.As(err, &e) {
		return nil, false
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return e, true
	}
	return nil, false
}
