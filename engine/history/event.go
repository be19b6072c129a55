package history

import "perigee/engine/exactjson"

// Type names an event type, as in the "type" member of its JSON form.
type Type string

// Event is one thing that happened. Each implementation below is a value type
// whose fields are the event's JSON members (snake_case, see encode.go).
type Event interface {
	// Type is the event's name in JSON, such as "StepScheduled".
	Type() Type
	// Unit is the key of the unit concerned, or "" for an execution-wide event.
	Unit() string
}

// Record is an event at its place in an execution's history.
type Record struct {
	Seq         uint64 // from 1, without gaps
	TimestampMS int64  // epoch milliseconds, never below the record before it
	Event       Event
}

// TaskError is a failure as a worker reported it or as the engine made it.
type TaskError struct {
	Code      string
	Message   string
	Retryable bool            // true where the JSON form leaves it out
	Details   exactjson.Value // "" when absent
}

// ParentRef links a child execution to the unit that started it.
type ParentRef struct {
	ExecutionID string
	Step        string
}

// CompensationOutcome says what became of an execution's compensations.
type CompensationOutcome string

// The outcomes of compensation.
const (
	CompensationNone     CompensationOutcome = "none" // nothing needed undoing
	CompensationDone     CompensationOutcome = "completed"
	CompensationHasFails CompensationOutcome = "failed"
)

// The events. In the JSON form a nil pointer is left out, except the deadline of a
// dispatch, and so are tokens and ids of signals that are empty; an absent
// exactjson.Value is null.
type (
	WorkflowCreated struct {
		Workflow       string
		Version        string
		DefinitionHash string
		Input          exactjson.Value
		Parent         *ParentRef
	}
	WorkflowStarted struct{}
	StepScheduled   struct {
		Step           string
		Attempt        uint32
		Input          exactjson.Value
		IdempotencyKey string
		Redelivery     bool
	}
	StepFanOut struct {
		Step  string
		Items []exactjson.Value
	}
	StepSkipped struct {
		Step   string
		Reason string
	}
	StepDispatched struct {
		Step          string
		Attempt       uint32
		Token         string // hex SHA-256 of the token's secret
		WorkerID      string
		WorkerSession string // hex SHA-256 of the session id; "child:…" and "builtin:…" as they are
		DeadlineMS    *int64 // null in JSON when nil
	}
	StepSucceeded struct {
		Step    string
		Attempt uint32
		Output  exactjson.Value
		Token   string // "" (left out) when no worker reported it
	}
	StepAttemptFailed struct {
		Step         string
		Attempt      uint32
		Error        TaskError
		Token        string // "" (left out) when the engine made the failure
		RetryAfterMS *int64
	}
	StepAttemptUncertain struct {
		Step    string
		Attempt uint32
		Reason  string
	}
	RetryScheduled struct {
		Step        string
		NextAttempt uint32
		DelayMS     int64
		FireAtMS    int64
	}
	StepFailed struct {
		Step  string
		Error TaskError
	}
	// StepRecovered says that a catch clause took the failure Error and gave Output.
	StepRecovered struct {
		Step   string
		Error  TaskError
		Output exactjson.Value
	}
	StepCancelled struct{ Step string }
	TimerStarted  struct {
		Step     string
		FireAtMS int64
	}
	TimerFired     struct{ Step string }
	SignalReceived struct {
		Name     string
		Payload  exactjson.Value
		SignalID string // "" when the sender gave none
	}
	SignalAwaitStarted struct {
		Step       string
		Signal     string
		DeadlineMS *int64
	}
	SignalDelivered struct {
		Step      string
		SignalSeq uint64
	}
	StaleResultIgnored struct {
		Step    string
		Token   string
		Outcome string // OutcomeDuplicate or OutcomeFailure
	}
	// AttemptProgress is what a worker said of an attempt under way.
	AttemptProgress struct {
		Step    string
		Token   string
		Details exactjson.Value
	}
	CancelRequested        struct{ Reason string }
	WorkflowTimeoutReached struct{}
	LimitExceeded          struct {
		Limit   string
		Message string
	}
	CompensationStarted struct {
		Reason string // ReasonFailed, ReasonCancelled or ReasonTimedOut
		Steps  []string
	}
	CompensationCompleted struct{}
	CompensationFailed    struct {
		Step  string // the unit whose compensation failed, without the prefix
		Error TaskError
	}
	HandlersStarted struct {
		Kind         string // HandlerFailure, HandlerCancel or HandlerTimeout
		Compensation CompensationOutcome
	}
	WorkflowCompleted struct{ Output exactjson.Value }
	WorkflowFailed    struct {
		Error        TaskError
		Compensation CompensationOutcome
	}
	WorkflowCancelled struct{ Compensation CompensationOutcome }
	WorkflowTimedOut  struct{ Compensation CompensationOutcome }
	// Unknown is an event type that this release does not know. The fold only
	// counts it; the engine refuses to work on a history that holds one.
	Unknown struct {
		Name Type
		Data exactjson.Value
	}
)

// Values of StaleResultIgnored.Outcome.
const (
	OutcomeDuplicate = "duplicate"
	OutcomeFailure   = "failure"
)

// Values of CompensationStarted.Reason.
const (
	ReasonFailed    = "failed"
	ReasonCancelled = "cancelled"
	ReasonTimedOut  = "timed_out"
)

// Values of HandlersStarted.Kind, in unit keys as "on_<kind>:<step>".
const (
	HandlerFailure = "failure"
	HandlerCancel  = "cancel"
	HandlerTimeout = "timeout"
)
