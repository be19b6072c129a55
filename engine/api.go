package engine

import (
	"time"

	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/store"
)

// Registered is the answer to a registration.
type Registered struct {
	Name, Version, Hash string
	Created             bool
	Warnings            []definition.Fault
}

// DefinitionInfo is one registered workflow version.
type DefinitionInfo struct {
	Name, Version, Hash string
	Description         string
	Retired             bool
	CreatedAtMS         int64
	Canonical           exactjson.Value // "" in lists
}

// StartRequest starts an execution.
type StartRequest struct {
	Workflow    string
	Version     string // "": the default version
	Input       exactjson.Value
	ExecutionID string // "": one is made
	Tags        map[string]string
	Wait        time.Duration // how long to wait for the end; 0: not at all
}

// Started is the answer to a start.
type Started struct {
	ExecutionID string
	Created     bool
	State       *history.State // with Wait, where the execution ended in time
}

// ListRequest selects executions, newest first.
type ListRequest struct {
	Status, Workflow, Version, Parent string
	Tags                              map[string]string
	CreatedAfterMS, CreatedBeforeMS   int64
	Limit                             int    // 1..1000, 0: 50
	Cursor                            string // of the page before
}

// ListPage is one page of executions.
type ListPage struct {
	Executions []store.Head
	NextCursor string // "": no more
}

// HistoryRequest reads events.
type HistoryRequest struct {
	ExecutionID string
	AfterSeq    uint64
	Limit       int           // 0: 1000
	Wait        time.Duration // for a first event after AfterSeq
}

// HistoryPage is one page of a history. Render an event with
// history.AppendStored.
type HistoryPage struct {
	Events       []store.Event
	NextAfterSeq uint64 // 0: nothing more for now
}

// RegisterRequest announces a worker.
type RegisterRequest struct {
	WorkerID  string
	Runtime   string
	SDK       string
	Contracts []store.Contract
}

// WorkerRegistered is the answer to a registration.
type WorkerRegistered struct {
	SessionID         string // a secret of the worker's
	HeartbeatInterval time.Duration
	SessionTimeout    time.Duration
	Warnings          []string
}

// PollRequest asks for tasks.
type PollRequest struct {
	SessionID string
	PollID    string // "": one is made
	FirstTry  bool   // PollID was not sent before: nothing can have been handed out under it
	Wait      time.Duration
	MaxTasks  int // 1..32, 0: 1
}

// Polled is the answer to a poll.
type Polled struct {
	Tasks    []Assignment
	NextPoll time.Duration // when to come again
}

// Assignment is a task handed to a worker.
type Assignment struct {
	Token           string // a secret of the worker's
	ExecutionID     string
	Workflow        string
	WorkflowVersion string
	StepID          string // the unit key
	TaskName        string
	ContractVersion string
	Input           exactjson.Value
	IdempotencyKey  string
	Attempt         uint32
	Redelivery      bool
	DeadlineMS      int64 // 0: none
	TimeoutMS       int64 // 0: none
	// TraceParent is the header by which the worker continues the attempt's span.
	TraceParent string
}

// Result is what a worker reports of an attempt: an output, or an error.
type Result struct {
	Token      string
	Output     exactjson.Value    // of a success; "" means {}
	Error      *history.TaskError // of a failure
	RetryAfter *time.Duration
	// TooLarge and Malformed mark an output that the transport could not take
	// although it could read the envelope: a failed attempt, PAYLOAD_TOO_LARGE or
	// OUTPUT_CONTRACT_VIOLATION, with this text as its message.
	TooLarge, Malformed string
}

// ResultsRequest reports results and may ask for more work.
type ResultsRequest struct {
	Results     []Result
	NextSession string // session id; "": no more work is asked for
	NextMax     int    // 1..32, 0: 1
}

// Ack is the answer to one result.
type Ack struct {
	Token    string
	Accepted bool
	Reason   string // where not accepted
	// Error is the code of what kept the result from being looked at, such as
	// CONFLICT; "": nothing did. The same result may be reported again.
	Error string
}

// ResultsAnswer is the answer to results.
type ResultsAnswer struct {
	Acks      []Ack // in the order of the results
	Next      []Assignment
	NextError string // "UNKNOWN_SESSION": the results stand
}

// WorkerInfo is one worker with its sessions summed up.
type WorkerInfo struct {
	WorkerID       string
	Runtime, SDK   string
	Contracts      []store.Contract
	LastSeenMS     int64
	RegisteredAtMS int64
	Online         bool
	Sessions       int
	Inflight       int
}

// TickReport says what a pass over due work did.
type TickReport struct {
	Advanced  int   // executions that were looked at
	Delivered int   // messages between executions
	Parked    int   // executions whose decision erred
	NextMS    int64 // next due moment known, 0: none
	More      bool  // there is due work left
}

// Identity is who calls.
type Identity struct {
	Name      string
	Role      string   // admin, operator, reader, worker
	WorkerIDs []string // of a worker token; empty: any
	Tasks     []string // patterns a worker token may register for; empty: any
}

// Finding is one difference between a projection and its history.
type Finding struct {
	ExecutionID string
	What        string // one line for a person
	Repaired    bool
}
