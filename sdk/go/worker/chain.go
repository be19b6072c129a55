package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"perigee/sdk/go/client"
)

// holding is a task from its start here until its result is acknowledged.
type holding struct {
	task   *client.Task
	cancel context.CancelCauseFunc
	end    context.CancelFunc // frees the timer of the deadline
}

// hold makes a task known to heartbeats and gives its handler's context. Its
// time runs from here: the wire's timeout_ms is used where there is one, since
// clocks differ.
func (r *run) hold(tasks context.Context, t *client.Task) (context.Context, *holding) {
	h := &holding{task: t, end: func() {}}
	ctx := tasks
	switch {
	case t.TimeoutMS > 0:
		ctx, h.end = context.WithTimeout(ctx, time.Duration(t.TimeoutMS)*time.Millisecond)
	case t.DeadlineMS > 0:
		ctx, h.end = context.WithDeadline(ctx, time.UnixMilli(t.DeadlineMS))
	}
	ctx, h.cancel = context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[t.Token] = h
	return ctx, h
}

func (r *run) release(h *holding) {
	h.cancel(nil)
	h.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[h.task.Token] == h {
		delete(r.held, h.task.Token)
	}
}

// chain runs a task and, while its results bring a next one, that; then the
// slot is free. The contexts: of taking work, of the handlers, of the calls.
func (r *run) chain(taking, tasks, calls context.Context, t *client.Task) {
	defer r.giveSlots(1)
	for t != nil {
		t = r.link(taking, tasks, calls, t)
	}
}

// link runs one task and gives the next. Once taking has ended none is asked
// for.
func (r *run) link(taking, tasks, calls context.Context, t *client.Task) (next *client.Task) {
	ctx, h := r.hold(tasks, t)
	defer r.release(h)
	result, decided := r.execute(ctx, h)
	if !decided {
		return nil
	}
	session := ""
	if taking.Err() == nil {
		session = r.sessionID()
	}
	return r.reports.report(calls, t.ExecutionID, result, session)
}

// execute runs the handler and gives what is to be reported. decided is false
// where nothing is known that the server will not find out by itself: the
// handler was interrupted by its deadline or by the worker's end. (To report
// that as a failure would let an at-most-once step be repeated.)
func (r *run) execute(ctx context.Context, h *holding) (result client.Result, decided bool) {
	t := h.task
	handler, known := r.worker.handlers[client.Contract{TaskName: t.TaskName, ContractVersion: t.ContractVersion}]
	if !known {
		return failure(t, Fail(CodeUnknownTask, fmt.Sprintf("worker %s does not handle %s@%s", r.worker.opts.WorkerID, t.TaskName, t.ContractVersion), nil)), true
	}
	output, err := r.invoke(ctx, handler, &Task{Task: t, held: h, run: r})
	if err == nil {
		encoded, err := encodeOutput(output)
		if err != nil {
			return failure(t, &Error{Code: CodeOutputInvalid, Message: "output of " + t.TaskName + ": " + err.Error(), NoRetry: true}), true
		}
		return client.Result{Token: t.Token, Output: encoded}, true
	}
	var typed *Error
	if errors.As(err, &typed) {
		return failure(t, typed), true
	}
	// An error without a code after an interruption says no more than that.
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return failure(t, asError(err)), true
	case errors.Is(cause, ErrCancelled):
		return failure(t, &Error{Code: CodeCancelled, Message: err.Error(), NoRetry: true}), true
	default:
		return client.Result{}, false
	}
}

// invoke calls the handler; a panic is a failure whose stack goes to the log
// only.
func (r *run) invoke(ctx context.Context, handler Handler, t *Task) (output any, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("handler panicked", "task", t.TaskName, "execution_id", t.ExecutionID, "step", t.StepID, "panic", p, "stack", string(debug.Stack()))
			output, err = nil, Fail(CodePanic, fmt.Sprintf("the handler panicked: %v", p), nil)
		}
	}()
	return handler(ctx, t)
}

func failure(t *client.Task, e *Error) client.Result {
	wire, retryAfter := e.wire()
	return client.Result{Token: t.Token, Error: wire, RetryAfter: retryAfter}
}

func encodeOutput(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		// A text that is no JSON would spoil the whole message.
		if len(v) > 0 && !json.Valid(v) {
			return nil, errors.New("json.RawMessage holds no valid JSON")
		}
		return v, nil
	}
	return client.Encode(v)
}
