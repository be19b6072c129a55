package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
	"time"
)

// Event is one event of a history. Which members are set depends on Type;
// Raw is the event as it came.
type Event struct {
	Seq         uint64 `json:"seq"` // from 1, without gaps
	TimestampMS int64  `json:"timestamp_ms"`
	Type        string `json:"type"`

	Step           string            `json:"step"` // unit key
	Attempt        uint32            `json:"attempt"`
	Input          json.RawMessage   `json:"input"`
	Output         json.RawMessage   `json:"output"`
	Items          []json.RawMessage `json:"items"`
	Error          *TaskError        `json:"error"`
	Reason         string            `json:"reason"`
	Redelivery     bool              `json:"redelivery"`
	IdempotencyKey string            `json:"idempotency_key"`
	Token          string            `json:"token"` // hex SHA-256 of the token's secret
	WorkerID       string            `json:"worker_id"`
	WorkerSession  string            `json:"worker_session"` // hex SHA-256 of the session id
	DeadlineMS     *int64            `json:"deadline_ms"`
	NextAttempt    uint32            `json:"next_attempt"`
	DelayMS        int64             `json:"delay_ms"`
	FireAtMS       int64             `json:"fire_at_ms"`
	RetryAfterMS   *int64            `json:"retry_after_ms"`
	Name           string            `json:"name"`
	Signal         string            `json:"signal"`
	SignalID       string            `json:"signal_id"`
	SignalSeq      uint64            `json:"signal_seq"`
	Payload        json.RawMessage   `json:"payload"`
	Details        json.RawMessage   `json:"details"`
	Outcome        string            `json:"outcome"`
	Steps          []string          `json:"steps"`
	Kind           string            `json:"kind"`
	Compensation   string            `json:"compensation"`
	Limit          string            `json:"limit"`
	Message        string            `json:"message"`
	Workflow       string            `json:"workflow"`
	Version        string            `json:"version"`
	DefinitionHash string            `json:"definition_hash"`
	Parent         *Parent           `json:"parent"`

	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps the event as it came beside its members.
func (e *Event) UnmarshalJSON(b []byte) error {
	type plain Event
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return err
	}
	e.Raw = append(json.RawMessage(nil), b...)
	return nil
}

// Terminal reports whether the event ends its execution.
func (e *Event) Terminal() bool {
	switch e.Type {
	case "WorkflowCompleted", "WorkflowFailed", "WorkflowCancelled", "WorkflowTimedOut":
		return true
	}
	return false
}

// HistoryRequest reads events.
type HistoryRequest struct {
	ExecutionID string
	AfterSeq    uint64
	Limit       int           // 0: the server's choice
	Wait        time.Duration // for a first event after AfterSeq, at most 25 s; 0: not at all
}

// HistoryPage is one page of a history.
type HistoryPage struct {
	Events       []Event `json:"events"`
	NextAfterSeq uint64  `json:"next_after_seq"` // 0: nothing more for now
}

// History reads one page of events.
func (c *Client) History(ctx context.Context, r HistoryRequest) (HistoryPage, error) {
	q := url.Values{}
	if r.AfterSeq > 0 {
		q.Set("after_seq", strconv.FormatUint(r.AfterSeq, 10))
	}
	if r.Limit > 0 {
		q.Set("limit", strconv.Itoa(r.Limit))
	}
	if r.Wait > 0 {
		q.Set("wait_ms", strconv.FormatInt(r.Wait.Milliseconds(), 10))
	}
	var out HistoryPage
	err := c.get(ctx, withQuery(executionPath(r.ExecutionID)+"/history", q), r.Wait, &out)
	return out, err
}

// Events walks a history from its start, page by page. With follow it waits
// for what comes and ends after the terminal event; without, it ends with what
// is there.
func (c *Client) Events(ctx context.Context, executionID string, follow bool) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := HistoryRequest{ExecutionID: executionID}
		if follow {
			r.Wait = maxWait
		}
		for quiet := 0; ; {
			page, err := c.History(ctx, r)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for i := range page.Events {
				e := &page.Events[i]
				r.AfterSeq = e.Seq
				if !yield(*e, nil) || (follow && e.Terminal()) {
					return
				}
			}
			switch {
			case !follow && page.NextAfterSeq == 0:
				return
			case len(page.Events) > 0:
				quiet = 0
			case !sleep(ctx, delay(quiet, nil)): // a server that does not hold the call
				yield(Event{}, context.Cause(ctx))
				return
			default:
				quiet++
			}
		}
	}
}
