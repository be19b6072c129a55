package client

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Contract is a task that a worker offers.
type Contract struct {
	TaskName        string `json:"task_name"`
	ContractVersion string `json:"contract_version"`
}

// RegisterRequest announces a worker.
type RegisterRequest struct {
	WorkerID  string     `json:"worker_id"`
	Runtime   string     `json:"runtime"` // compared with the language of a task contract
	SDK       string     `json:"sdk,omitempty"`
	Contracts []Contract `json:"contracts"`
}

// Registration is the answer to a registration.
type Registration struct {
	Accepted            bool     `json:"accepted"`
	WorkerSessionID     string   `json:"worker_session_id"` // a secret of the worker's
	HeartbeatIntervalMS int64    `json:"heartbeat_interval_ms"`
	SessionTimeoutMS    int64    `json:"session_timeout_ms"`
	MaxWaitMS           int64    `json:"max_wait_ms"` // how long a poll is held at most; 0: not at all
	Warnings            []string `json:"warnings"`
}

// Task is a task handed to a worker.
type Task struct {
	Token           string          `json:"token"` // a secret of the worker's
	ExecutionID     string          `json:"execution_id"`
	Workflow        string          `json:"workflow"`
	WorkflowVersion string          `json:"workflow_version"`
	StepID          string          `json:"step_id"` // unit key, such as "ship[3]" or "compensate:reserve"
	TaskName        string          `json:"task_name"`
	ContractVersion string          `json:"contract_version"`
	Input           json.RawMessage `json:"input"`
	IdempotencyKey  string          `json:"idempotency_key"` // the same for every attempt and redelivery
	Attempt         uint32          `json:"attempt"`         // from 1
	Redelivery      bool            `json:"redelivery"`      // this attempt was handed out before, its outcome is unknown
	DeadlineMS      int64           `json:"deadline_ms"`     // epoch milliseconds, 0: none
	TimeoutMS       int64           `json:"timeout_ms"`      // 0: none
	Traceparent     string          `json:"traceparent"`
}

// PollRequest asks for tasks.
type PollRequest struct {
	SessionID string
	PollID    string        // "": one is made, so that a repetition gets the same tasks
	Wait      time.Duration // at most 25 s; 0: the answer comes at once
	MaxTasks  int           // 1..32, 0: 1
}

// Polled is the answer to a poll.
type Polled struct {
	Tasks      []*Task `json:"tasks"`
	NextPollMS int64   `json:"next_poll_ms"` // when to come again
}

// Result is what a worker reports of an attempt: an output, or an error.
type Result struct {
	Token      string
	Output     json.RawMessage // of a success; nil: {}
	Error      *TaskError      // of a failure
	RetryAfter *time.Duration  // of a failure: replaces the delay of the retry policy
}

// Reported is the answer to one result sent alone.
type Reported struct {
	Accepted  bool   `json:"accepted"`
	Reason    string `json:"reason"`     // where not accepted
	Next      *Task  `json:"next"`       // nil: none was asked for, or none is ready
	NextError string `json:"next_error"` // UNKNOWN_SESSION: the result stands, register again
}

// Ack is the answer to one result of several.
type Ack struct {
	Token    string `json:"token"`
	Accepted bool   `json:"accepted"`
	Reason   string `json:"reason"` // where not accepted
	// Error is the code of what kept the result from being looked at, "" where
	// nothing did: report it again.
	Error string `json:"error"`
}

// ResultsAnswer is the answer to results.
type ResultsAnswer struct {
	Acks      []Ack   `json:"acks"` // in the order of the results
	Tasks     []*Task `json:"tasks"`
	NextError string  `json:"next_error"` // UNKNOWN_SESSION: the results stand, register again
}

// Worker is one worker with its sessions summed up.
type Worker struct {
	WorkerID       string     `json:"worker_id"`
	Runtime        string     `json:"runtime"`
	SDK            string     `json:"sdk"`
	Contracts      []Contract `json:"contracts"`
	LastSeenMS     int64      `json:"last_seen_ms"`
	RegisteredAtMS int64      `json:"registered_at_ms"`
	Online         bool       `json:"online"`
	Sessions       int        `json:"sessions"`
	Inflight       int        `json:"inflight"`
}

// Register announces a worker and opens a session.
func (c *Client) Register(ctx context.Context, r RegisterRequest) (Registration, error) {
	var out Registration
	err := c.post(ctx, "/v1/workers/register", r, &out)
	return out, err
}

// Poll asks for tasks. UNKNOWN_SESSION means: register again.
func (c *Client) Poll(ctx context.Context, r PollRequest) (Polled, error) {
	own := r.PollID == ""
	if own {
		r.PollID = uuid.NewString()
	}
	in := struct {
		SessionID string `json:"worker_session_id"`
		PollID    string `json:"poll_id"`
		FirstTry  bool   `json:"first_try,omitempty"`
		WaitMS    int64  `json:"wait_ms"` // always: absent means 20 s
		MaxTasks  int    `json:"max_tasks,omitempty"`
	}{r.SessionID, r.PollID, false, r.Wait.Milliseconds(), r.MaxTasks}
	again, err := Encode(in)
	if err != nil {
		return Polled{}, err
	}
	first := again
	if own {
		in.FirstTry = true
		if first, err = Encode(in); err != nil {
			return Polled{}, err
		}
	}
	var out Polled
	err = c.call(ctx, Request{Method: "POST", Path: "/v1/workers/poll", Body: first, Again: again, Wait: r.Wait}, &out)
	return out, err
}

// Heartbeat says that a session is alive and which tokens it holds (nil: says
// nothing of tokens); the answer names those to stop.
func (c *Client) Heartbeat(ctx context.Context, sessionID string, tokens []string) (cancel []string, err error) {
	in := struct {
		SessionID string    `json:"worker_session_id"`
		Tokens    *[]string `json:"tokens,omitempty"`
	}{SessionID: sessionID}
	if tokens != nil {
		in.Tokens = &tokens
	}
	var out struct {
		Cancel []string `json:"cancel"`
	}
	err = c.post(ctx, "/v1/workers/heartbeat", in, &out)
	return out.Cancel, err
}

// Unregister ends a session; what it holds is handed out again at once.
func (c *Client) Unregister(ctx context.Context, sessionID string) error {
	in := struct {
		SessionID string `json:"worker_session_id"`
	}{sessionID}
	return c.post(ctx, "/v1/workers/unregister", in, nil)
}

// Complete reports a success (output nil: {}). With a nextSession the answer
// may bring the next task.
func (c *Client) Complete(ctx context.Context, token string, output json.RawMessage, nextSession string) (Reported, error) {
	return c.Report(ctx, Result{Token: token, Output: output}, nextSession)
}

// Fail reports a failure (retryAfter nil: the retry policy decides); see
// Complete.
func (c *Client) Fail(ctx context.Context, token string, failure TaskError, retryAfter *time.Duration, nextSession string) (Reported, error) {
	return c.Report(ctx, Result{Token: token, Error: &failure, RetryAfter: retryAfter}, nextSession)
}

// Report sends one result, a success or a failure; see Complete.
func (c *Client) Report(ctx context.Context, r Result, nextSession string) (Reported, error) {
	path := "/v1/tasks/complete"
	if r.Error != nil {
		path = "/v1/tasks/fail"
	}
	body, err := appendResult(make([]byte, 0, 256+len(r.Output)), &r)
	if err != nil {
		return Reported{}, err
	}
	if nextSession != "" {
		body = append(body[:len(body)-1], `,"next":{"worker_session_id":`...)
		body = append(appendString(body, nextSession), '}', '}')
	}
	var out Reported
	err = c.call(ctx, Request{Method: "POST", Path: path, Body: body}, &out)
	return out, err
}

// Results reports up to 100 results in one call. With a nextSession it asks
// for up to nextMax (1..32, 0: 1) further tasks.
func (c *Client) Results(ctx context.Context, results []Result, nextSession string, nextMax int) (ResultsAnswer, error) {
	size := 64
	for i := range results {
		size += 256 + len(results[i].Output)
	}
	body := append(make([]byte, 0, size), `{"results":[`...)
	for i := range results {
		if i > 0 {
			body = append(body, ',')
		}
		var err error
		if body, err = appendResult(body, &results[i]); err != nil {
			return ResultsAnswer{}, err
		}
	}
	body = append(body, ']')
	if nextSession != "" {
		body = append(body, `,"next":{"worker_session_id":`...)
		body = append(appendString(body, nextSession), `,"max_tasks":`...)
		body = append(appendInt(body, int64(max(nextMax, 1))), '}')
	}
	body = append(body, '}')
	var out ResultsAnswer
	err := c.call(ctx, Request{Method: "POST", Path: "/v1/tasks/results", Body: body}, &out)
	return out, err
}

// Progress says that an attempt is under way and what it is at; cancel asks
// to stop it.
func (c *Client) Progress(ctx context.Context, token string, details json.RawMessage) (accepted, cancel bool, err error) {
	in := struct {
		Token   string          `json:"token"`
		Details json.RawMessage `json:"details,omitempty"`
	}{token, details}
	var out struct {
		Accepted bool `json:"accepted"`
		Cancel   bool `json:"cancel"`
	}
	err = c.post(ctx, "/v1/tasks/progress", in, &out)
	return out.Accepted, out.Cancel, err
}

// Workers lists the workers that are known.
func (c *Client) Workers(ctx context.Context) ([]Worker, error) {
	var out struct {
		Workers []Worker `json:"workers"`
	}
	err := c.get(ctx, "/v1/workers", 0, &out)
	return out.Workers, err
}
