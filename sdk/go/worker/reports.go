package worker

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"perigee/sdk/go/client"
)

// maxBatchBytes bounds the outputs that travel together, well below the
// server's limit for one call.
const maxBatchBytes = 1 << 20

const (
	// promptReports is how many calls report at once at least as long as they are
	// quick. A call that takes longer than slowReport, to a server that is far away or
	// has much to do, holds nobody up: another may then start beside it.
	promptReports = 2
	slowReport    = 10 * time.Millisecond
	// reportWork is about what a call costs both sides in processor time. What the
	// quickest last beyond that they wait, for the network or the disk.
	reportWork = 300 * time.Microsecond
)

// reports sends results until they are acknowledged. Results of one execution
// take turns, and few calls run at once; what comes meanwhile waits and travels
// together in the next call. Work that comes in quick succession so costs the
// server a call and a commit for many results and not for each, and a wide
// fan-out does not compete with itself for its execution.
//
// Where a call is work from beginning to end, more of them at once would only be
// smaller and slower. Where nearly all of its time is waiting, results that wait
// for it lose time for nothing, so more run at once. Functions are paid by the call:
// there few are enough.
type reports struct {
	run *run
	max int // calls at once

	mu       sync.Mutex
	underWay map[*call]bool
	quickest time.Duration   // of the last calls; 0 before the first
	busy     map[string]bool // executions that a call under way reports to
	waiting  []*report
}

// call is one on its way.
type call struct {
	batch []*report
	began time.Time
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
	p := &report{execution: execution, result: result, session: session, done: make(chan *client.Task, 1)}
	q.mu.Lock()
	q.waiting = append(q.waiting, p)
	c := q.take()
	q.mu.Unlock()
	if c != nil {
		if len(c.batch) == 1 && c.batch[0] == p {
			q.carry(ctx, c) // nobody waits: it goes at once
			return <-p.done
		}
		go q.carry(ctx, c)
	}
	return q.await(ctx, p)
}

// await waits for the answer to a result. Where the calls under way take long
// another starts.
func (q *reports) await(ctx context.Context, p *report) *client.Task {
	patience := time.NewTicker(slowReport)
	defer patience.Stop()
	for {
		select {
		case next := <-p.done:
			return next
		case <-patience.C:
			q.start(ctx)
		}
	}
}

// start makes the next call, if there is something to report and room for it.
func (q *reports) start(ctx context.Context) {
	q.mu.Lock()
	c := q.take()
	q.mu.Unlock()
	if c != nil {
		go q.carry(ctx, c)
	}
}

// take removes the next batch from the queue, of executions to which no other
// call reports; nil where it is not time for a call.
func (q *reports) take() *call {
	now, prompt := time.Now(), 0
	for c := range q.underWay {
		if now.Sub(c.began) < slowReport {
			prompt++
		}
	}
	if len(q.underWay) == q.max || prompt >= q.atOnce() {
		return nil
	}
	c, size := &call{began: now}, 0
	left := q.waiting[:0]
	for _, p := range q.waiting {
		bytes := len(p.result.Output)
		if q.busy[p.execution] || len(c.batch) == maxTasks || len(c.batch) > 0 && size+bytes > maxBatchBytes {
			left = append(left, p)
			continue
		}
		c.batch, size = append(c.batch, p), size+bytes
	}
	clear(q.waiting[len(left):])
	q.waiting = left
	if len(c.batch) == 0 {
		return nil
	}
	for _, p := range c.batch {
		q.busy[p.execution] = true
	}
	q.underWay[c] = true
	return c
}

// atOnce is how many calls may be under way that have not been for long.
func (q *reports) atOnce() int {
	if !q.run.holdsPolls() {
		return promptReports
	}
	return max(promptReports, int(q.quickest/reportWork))
}

// quicker keeps about the shortest of the last some hundred durations: it grows by
// and by, until another is as short.
func quicker(quickest, took time.Duration) time.Duration {
	if quickest == 0 {
		return took
	}
	return min(took, quickest+quickest/512)
}

// carry reports a batch; then the next call starts.
func (q *reports) carry(ctx context.Context, c *call) {
	q.send(ctx, c.batch)
	q.mu.Lock()
	q.quickest = quicker(q.quickest, time.Since(c.began))
	delete(q.underWay, c)
	for _, p := range c.batch {
		delete(q.busy, p.execution)
	}
	q.mu.Unlock()
	q.start(ctx)
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
			go q.again(ctx, p)
		}
		return
	}
	q.run.sawServer()
	tasks := answer.Tasks
	for i, p := range batch {
		if i < len(answer.Acks) {
			ack := answer.Acks[i]
			if ack.Error != "" {
				go q.again(ctx, p) // it may take long, and nobody else waits for it
				continue
			}
			q.acknowledged(ack.Token, ack.Accepted, ack.Reason)
		}
		if p.session != "" && len(tasks) > 0 {
			p.done <- tasks[0]
			tasks = tasks[1:]
			continue
		}
		p.done <- nil
	}
}

// again reports one result of a call in which it did not count.
func (q *reports) again(ctx context.Context, p *report) { p.done <- q.alone(ctx, p) }

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
