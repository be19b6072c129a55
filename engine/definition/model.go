package definition

import (
	"perigee/engine/exactjson"
	"perigee/engine/expr"
	"perigee/engine/schema"
)

// Definition is a checked workflow definition. It is immutable and safe to
// share. Groups (parallel, steps, switch) are gone: Steps is flat, in the
// order of the document, with predecessors and conditions made explicit.
type Definition struct {
	Name        string
	Version     string
	Hash        string // "sha256:" and the hex digest of Canonical
	Description string
	Canonical   exactjson.Value // RFC 8785 text of what the author wrote
	TimeoutMS   int64           // of the whole execution, 0: none
	Input       *schema.Schema  // nil: anything
	Signals     map[string]*schema.Schema
	Queries     map[string]*expr.Program
	Tasks       map[string]*Contract // by task name
	Steps       []*Step
	Handlers    map[string][]*Step // by history.Handler… kind: failure, cancel, timeout
	Output      *expr.Program      // nil: null
	Limits      Limits
	// Children are the workflows that steps start, as "name@version".
	Children []string

	byID map[string]*Step // of Steps
}

// Limits are the stricter limits that a definition may set; 0: not set.
type Limits struct {
	MaxFanOut        int
	MaxHistoryEvents uint64
	MaxPayloadBytes  int
}

// Contract is what a worker must offer to run a task.
type Contract struct {
	Name     string
	Version  string
	Language string // lower case; "any" where the definition says nothing
	Input    *schema.Schema
	Output   *schema.Schema
}

// Queue is the key that a ready task waits under: name@version/language.
func (c *Contract) Queue() string { return c.Name + "@" + c.Version + "/" + c.Language }

// Kind is the action of a step.
type Kind uint8

// The kinds of step.
const (
	KindTask Kind = iota + 1
	KindWorkflow
	KindSleep
	KindAwait
	KindCompute
	KindFail
)

// Step is one step of the main list or of a handler list.
type Step struct {
	ID    string
	Index int // in Definition.Steps, or in its handler list
	Kind  Kind

	// When holds the step's own condition and those of the groups around it,
	// outermost first; all must be true. A condition behind one that is false
	// is not evaluated.
	When []*expr.Program
	// Predecessors and Dependents are indices in the same list, ascending.
	// They are resolved before this step starts; they wait for it.
	Predecessors []int
	Dependents   []int

	For         *expr.Program // nil: not a fan-out
	MaxParallel *expr.Program // nil: no bound

	Call    *Call         // KindTask, KindWorkflow
	Until   *expr.Program // KindSleep by `until`: RFC 3339 text or a timestamp
	Sleep   *expr.Program // KindSleep by `sleep`: text of a duration
	Signal  string        // KindAwait
	Timeout *expr.Program // KindAwait: text of a duration, nil: none
	Value   *expr.Program // KindCompute
	Fail    *Fail         // KindFail
	Catch   []Catch

	Compensate *Call // nil: nothing to undo
	// WhenUncertain: undo also an attempt whose outcome is unknown.
	WhenUncertain bool
}

// Call starts a task or a child workflow, from a step or a compensation.
type Call struct {
	Task            *Contract     // a task that workers run, or nil
	Builtin         string        // "http.request", or ""
	Secrets         []string      // that its headers name, sorted: what an expression gives can name no other
	Workflow        string        // "name@version" of a child, or ""
	With            *expr.Program // nil: {}
	Timeout         *expr.Program // of one attempt; nil: the server's default for tasks, none for children
	QueueTimeout    *expr.Program // nil: none
	Retry           Retry
	AtMostOnce      bool
	MaxRedeliveries *int // nil: the server's default
	AbandonChild    bool // on_parent_close: abandon
}

// Name is the task's or the child's name, for messages.
func (c *Call) Name() string {
	switch {
	case c.Task != nil:
		return c.Task.Name
	case c.Builtin != "":
		return c.Builtin
	}
	return c.Workflow
}

// Retry is a retry policy with every default filled in.
type Retry struct {
	MaxAttempts       uint32 // 0: unlimited
	InitialIntervalMS int64
	Backoff           float64
	MaxIntervalMS     int64
	Jitter            float64 // share of a delay, 0..1
	NoRetry           []string
}

// Fail is the action of a `fail` step.
type Fail struct {
	Code    string
	Message *expr.Program
}

// Catch is one clause that takes a failure.
type Catch struct {
	Codes  []string      // nil: any
	Output *expr.Program // nil: null
}

// Severity of a Fault.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// Fault is one thing that registration found.
type Fault struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Line     int    `json:"line"`   // from 1; 0 where there is no text
	Column   int    `json:"column"` // from 1, in characters
	Path     string `json:"path"`   // JSON pointer into the document
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}
