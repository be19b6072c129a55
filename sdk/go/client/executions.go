package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// maxWait is the longest that the server waits in one call.
const maxWait = 25 * time.Second

// StartRequest starts an execution.
type StartRequest struct {
	Workflow    string
	Version     string            // "": the default version
	Input       json.RawMessage   // nil: none
	ExecutionID string            // "": one is made, so that a repetition starts nothing twice
	Tags        map[string]string // nil: none
	Wait        time.Duration     // how long to wait for the end, at most 25 s; 0: not at all
}

// Started is the answer to a start.
type Started struct {
	ExecutionID string          `json:"execution_id"`
	Created     bool            `json:"created"`          // false: it was there, with the same workflow and input
	Status      Status          `json:"status,omitempty"` // with Wait, where it ended in time
	Output      json.RawMessage `json:"output,omitempty"`
	Error       *TaskError      `json:"error,omitempty"`
}

// Start starts an execution.
func (c *Client) Start(ctx context.Context, r StartRequest) (Started, error) {
	if r.ExecutionID == "" {
		r.ExecutionID = uuid.NewString()
	}
	in := struct {
		Workflow    string            `json:"workflow"`
		Version     string            `json:"version,omitempty"`
		Input       json.RawMessage   `json:"input,omitempty"`
		ExecutionID string            `json:"execution_id"`
		Tags        map[string]string `json:"tags,omitempty"`
		WaitMS      int64             `json:"wait_ms,omitempty"`
	}{r.Workflow, r.Version, r.Input, r.ExecutionID, r.Tags, r.Wait.Milliseconds()}
	body, err := Encode(in)
	if err != nil {
		return Started{}, err
	}
	var out Started
	err = c.call(ctx, Request{Method: "POST", Path: "/v1/executions", Body: body, Wait: r.Wait}, &out)
	return out, err
}

// ListRequest selects executions, newest first. Empty fields select all.
type ListRequest struct {
	Status                          Status
	Workflow, Version, Parent       string
	Tags                            map[string]string
	CreatedAfterMS, CreatedBeforeMS int64 // epoch milliseconds, 0: no bound
	Limit                           int   // 1..1000, 0: 50
	Cursor                          string
}

// List is one page of executions.
func (c *Client) List(ctx context.Context, r ListRequest) (ListPage, error) {
	q := url.Values{}
	set := func(key, value string) {
		if value != "" {
			q.Set(key, value)
		}
	}
	set("status", string(r.Status))
	set("workflow", r.Workflow)
	set("version", r.Version)
	set("parent", r.Parent)
	set("cursor", r.Cursor)
	set("created_after", positive(r.CreatedAfterMS))
	set("created_before", positive(r.CreatedBeforeMS))
	set("limit", positive(int64(r.Limit)))
	for k, v := range r.Tags {
		q.Set("tag."+k, v)
	}
	var out ListPage
	err := c.get(ctx, withQuery("/v1/executions", q), 0, &out)
	return out, err
}

// ExecutionRequest reads an execution's state.
type ExecutionRequest struct {
	ExecutionID string
	Wait        time.Duration // for a terminal status, at most 25 s; 0: not at all
	UnitsAfter  string        // State.NextUnitsAfter of the page before
	Limit       int           // units a page, 0: 1000
}

// Execution reads the state of an execution.
func (c *Client) Execution(ctx context.Context, r ExecutionRequest) (*State, error) {
	q := url.Values{}
	if r.Wait > 0 {
		q.Set("wait_ms", strconv.FormatInt(r.Wait.Milliseconds(), 10))
	}
	if r.UnitsAfter != "" {
		q.Set("units_after", r.UnitsAfter)
	}
	if r.Limit > 0 {
		q.Set("limit", strconv.Itoa(r.Limit))
	}
	body, err := c.Do(ctx, Request{Method: "GET", Path: withQuery(executionPath(r.ExecutionID), q), Wait: r.Wait})
	if err != nil {
		return nil, err
	}
	return decodeState(body)
}

// Wait waits until an execution has ended, as long as ctx lasts, and gives its
// state. A server that does not hold the call is asked again with growing
// pauses, up to 2 s.
func (c *Client) Wait(ctx context.Context, executionID string) (*State, error) {
	for quick := 0; ; {
		asked := time.Now()
		state, err := c.Execution(ctx, ExecutionRequest{ExecutionID: executionID, Wait: maxWait})
		if err != nil || state.Status.Terminal() {
			return state, err
		}
		if time.Since(asked) > time.Second {
			quick = 0
			continue
		}
		if !sleep(ctx, delay(quick, nil)) {
			return state, context.Cause(ctx)
		}
		quick++
	}
}

// Cancel asks an execution to wind down and gives its state. It is no error
// to cancel twice, but one to cancel what ended otherwise (EXECUTION_FINISHED).
func (c *Client) Cancel(ctx context.Context, executionID, reason string) (*State, error) {
	in := struct {
		Reason string `json:"reason,omitempty"`
	}{reason}
	body, err := Encode(in)
	if err != nil {
		return nil, err
	}
	answer, err := c.Do(ctx, Request{Method: "POST", Path: executionPath(executionID) + "/cancel", Body: body})
	if err != nil {
		return nil, err
	}
	return decodeState(answer)
}

// Signal sends a signal and gives the place of its event in the history.
// signalID "" makes one. Payload nil sends none.
func (c *Client) Signal(ctx context.Context, executionID, name string, payload json.RawMessage, signalID string) (seq uint64, err error) {
	if signalID == "" {
		signalID = uuid.NewString()
	}
	in := struct {
		Payload  json.RawMessage `json:"payload,omitempty"`
		SignalID string          `json:"signal_id"`
	}{payload, signalID}
	var out struct {
		Seq uint64 `json:"seq"`
	}
	err = c.post(ctx, executionPath(executionID)+"/signals/"+url.PathEscape(name), in, &out)
	return out.Seq, err
}

// Query evaluates a query of the execution's definition.
func (c *Client) Query(ctx context.Context, executionID, name string) (json.RawMessage, error) {
	var out struct {
		Result json.RawMessage `json:"result"`
	}
	err := c.get(ctx, executionPath(executionID)+"/queries/"+url.PathEscape(name), 0, &out)
	return out.Result, err
}

func executionPath(id string) string { return "/v1/executions/" + url.PathEscape(id) }

func withQuery(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

func positive(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
