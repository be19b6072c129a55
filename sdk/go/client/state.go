package client

import (
	"encoding/json"
	"fmt"
)

// Status is the status of an execution.
type Status string

// The statuses of an execution. The last four are terminal.
const (
	Running      Status = "RUNNING"
	Compensating Status = "COMPENSATING"
	Completed    Status = "COMPLETED"
	Failed       Status = "FAILED"
	Cancelled    Status = "CANCELLED"
	TimedOut     Status = "TIMED_OUT"
)

// Terminal reports whether the execution has ended.
func (s Status) Terminal() bool {
	return s == Completed || s == Failed || s == Cancelled || s == TimedOut
}

// TaskError is a failure as a worker reported it or as the engine made it.
type TaskError struct {
	Code      string
	Message   string
	Retryable bool            // true where the JSON form leaves it out
	Details   json.RawMessage // nil where there are none
}

type taskErrorJSON struct {
	Code      string          `json:"code"`
	Message   string          `json:"message"`
	Retryable *bool           `json:"retryable,omitempty"`
	Details   json.RawMessage `json:"details,omitempty"`
}

// MarshalJSON writes retryable only where it is false, its unusual value.
func (e TaskError) MarshalJSON() ([]byte, error) {
	out := taskErrorJSON{Code: e.Code, Message: e.Message, Details: e.Details}
	if !e.Retryable {
		out.Retryable = new(bool)
	}
	return Encode(out)
}

// UnmarshalJSON takes an absent retryable for true.
func (e *TaskError) UnmarshalJSON(b []byte) error {
	var in taskErrorJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*e = TaskError{Code: in.Code, Message: in.Message, Retryable: in.Retryable == nil || *in.Retryable, Details: in.Details}
	return nil
}

// Parent links a child execution to the unit that started it.
type Parent struct {
	ExecutionID string `json:"execution_id"`
	Step        string `json:"step"`
}

// Unit is one unit of an execution: a step, an element of a `for` step, a
// compensation or a handler step.
type Unit struct {
	Status         *string         `json:"status"` // nil: pending
	Attempt        uint32          `json:"attempt"`
	Input          json.RawMessage `json:"input"`
	IdempotencyKey string          `json:"idempotency_key"`
	Output         json.RawMessage `json:"output"`
	Error          *TaskError      `json:"error"`
	LastError      *TaskError      `json:"last_error"`
	Redelivery     bool            `json:"redelivery"`
	ScheduledAtMS  int64           `json:"scheduled_at_ms"`
	DispatchedAtMS int64           `json:"dispatched_at_ms"`
	DeadlineMS     int64           `json:"deadline_ms"`
	WakeAtMS       int64           `json:"wake_at_ms"`
	FinishedAtMS   int64           `json:"finished_at_ms"`
	WorkerID       string          `json:"worker_id"`
	SucceededSeq   uint64          `json:"succeeded_seq"`
	DispatchCount  uint32          `json:"dispatch_count"`
}

// Signal is a signal in an execution's buffer.
type Signal struct {
	Seq          uint64          `json:"seq"`
	Name         string          `json:"name"`
	Payload      json.RawMessage `json:"payload"`
	ReceivedAtMS int64           `json:"received_at_ms"`
	DeliveredTo  string          `json:"delivered_to"` // "": not taken yet
}

// State is the state of an execution. Raw is the state as it came.
type State struct {
	ID                string          `json:"id"`
	Parent            *Parent         `json:"parent"`
	Workflow          string          `json:"workflow"`
	Version           string          `json:"version"`
	DefinitionHash    string          `json:"definition_hash"`
	Input             json.RawMessage `json:"input"`
	Status            Status          `json:"status"`
	CreatedAtMS       int64           `json:"created_at_ms"`
	UpdatedAtMS       int64           `json:"updated_at_ms"`
	FinishedAtMS      int64           `json:"finished_at_ms"` // 0: not finished
	Units             map[string]Unit `json:"units"`
	CompensationOrder []string        `json:"compensation_order"`
	Compensation      string          `json:"compensation"` // none, completed, failed; "" before the end
	Output            json.RawMessage `json:"output"`
	Error             *TaskError      `json:"error"`
	Signals           []Signal        `json:"signals"`
	LastSeq           uint64          `json:"last_seq"`
	NextUnitsAfter    string          `json:"next_units_after"` // "": these are all units
	Omitted           []string        `json:"omitted"`          // units whose values were too large for a page

	Raw json.RawMessage `json:"-"`
}

func decodeState(body json.RawMessage) (*State, error) {
	var s State
	if err := json.Unmarshal(body, &s); err != nil {
		return nil, fmt.Errorf("decode the state of an execution: %w", err)
	}
	s.Raw = body
	return &s, nil
}

// Execution is one row of a list of executions. Raw is the row as it came.
type Execution struct {
	ExecutionID  string            `json:"execution_id"`
	Workflow     string            `json:"workflow"`
	Version      string            `json:"version"`
	Status       Status            `json:"status"`
	CreatedAtMS  int64             `json:"created_at_ms"`
	UpdatedAtMS  int64             `json:"updated_at_ms"`
	FinishedAtMS int64             `json:"finished_at_ms"` // 0: not finished
	Parent       *Parent           `json:"parent"`
	Tags         map[string]string `json:"tags"`
	ErrorCount   int               `json:"error_count"` // decisions in a row that failed: it is parked, the server's log says why

	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps the row as it came beside its members.
func (e *Execution) UnmarshalJSON(b []byte) error {
	type plain Execution
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return err
	}
	e.Raw = append(json.RawMessage(nil), b...)
	return nil
}

// ListPage is one page of executions.
type ListPage struct {
	Executions []Execution `json:"executions"`
	NextCursor string      `json:"next_cursor"` // "": no more
}
