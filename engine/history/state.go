package history

import (
	"github.com/tidwall/btree"

	"perigee/engine/exactjson"
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

// Terminal reports whether no decision may follow.
func (s Status) Terminal() bool {
	return s == Completed || s == Failed || s == Cancelled || s == TimedOut
}

// UnitStatus is the status of a unit. UnitPending is the zero value and is served as
// null; those from UnitSucceeded on are final.
type UnitStatus uint8

// The statuses of a unit.
const (
	UnitPending       UnitStatus = iota
	UnitRunning                  // a `for` step whose elements run
	UnitScheduled                // ready, waiting for a worker
	UnitDispatched               // with a worker
	UnitAttemptFailed            // decide will choose retry, catch or failure
	UnitUncertain                // outcome unknown, decide will redeliver
	UnitRetryWait                // waits for its next attempt
	UnitWaiting                  // a timer or a signal
	UnitSucceeded
	UnitSkipped
	UnitFailed
	UnitCancelled
)

// Resolved reports whether the unit has its final status.
func (s UnitStatus) Resolved() bool { return s >= UnitSucceeded }

// IssuedToken is one token that a dispatch of a unit issued.
type IssuedToken struct {
	Token   string // hex SHA-256 of the secret
	Attempt uint32
	// Failure is a digest of the failure that this very token recorded, ""
	// while none; see Unit.Recorded. Not served.
	Failure string
}

// Unit is one schedulable unit. A Unit is immutable once it is in a State:
// Apply replaces it by a changed copy.
type Unit struct {
	// Served members, see the JSON form in statejson.go.
	Status         UnitStatus
	Redelivery     bool // beside Status, where it costs no space
	Attempt        uint32
	Input          exactjson.Value // "" when absent
	IdempotencyKey *string
	Output         exactjson.Value
	Error          *TaskError
	LastError      *TaskError
	ScheduledAtMS  *int64
	DispatchedAtMS *int64
	DeadlineMS     *int64
	WakeAtMS       *int64
	FinishedAtMS   *int64
	WorkerID       *string
	WorkerSession  *string
	Token          *string // of the attempt in flight
	Tokens         []IssuedToken
	SucceededSeq   *uint64
	DispatchCount  uint32

	// Beside the served state: what decide needs. Kept in snapshots.
	FailedAtMS      int64  // time of the last StepAttemptFailed
	RetryAfterMS    *int64 // of the last StepAttemptFailed
	Losses          uint32 // counted losses of the present attempt number
	OutcomeUnknown  bool   // some attempt's outcome is unknown
	LastDispatchSeq uint64
	Signal          string // the signal that an await waits for
	Recovered       bool   // by a catch clause
	StaleRecorded   uint32 // StaleResultIgnored events of this unit
	ProgressAtMS    int64  // time of the last AttemptProgress
	Progress        exactjson.Value
	Items           int    // elements of a StepFanOut
	SucceededBy     string // the token that recorded Output, "" if none did
}

// AbortKind says why an execution winds down.
type AbortKind string

// The kinds of abort, as served.
const (
	AbortFailed    AbortKind = "failed"
	AbortCancelled AbortKind = "cancelled"
	AbortTimedOut  AbortKind = "timed_out"
)

// Abort is why a running execution is being wound down.
type Abort struct {
	Kind   AbortKind
	Error  *TaskError // AbortFailed
	Reason string     // AbortCancelled
	AtMS   int64      // when it began; not served
}

// HandlerPhase is set while on_failure, on_cancel or on_timeout steps run.
type HandlerPhase struct {
	Kind         string
	Compensation CompensationOutcome
}

// Signal is a signal in an execution's buffer.
type Signal struct {
	Seq          uint64 // of its SignalReceived
	Name         string
	Payload      exactjson.Value
	ReceivedAtMS int64
	DeliveredTo  *string // the unit that took it
	ID           string  // the sender's signal_id; not served
}

// State is what a history folds to. Use New and Apply; Clone is cheap (units
// are shared copy-on-write), so a decision that loses its race is thrown away.
// Clone, like Apply, is a write: a State that goroutines share needs a lock
// around both.
type State struct {
	ID                string
	Parent            *ParentRef
	Workflow          string
	Version           string
	DefinitionHash    string
	Input             exactjson.Value
	Status            Status
	CreatedAtMS       int64
	UpdatedAtMS       int64
	FinishedAtMS      *int64
	Abort             *Abort
	CompensationOrder []string
	Compensation      *CompensationOutcome
	Output            exactjson.Value
	Error             *TaskError
	Handlers          *HandlerPhase
	LastSeq           uint64

	// Unknown counts events of types that this release does not know; not served.
	Unknown int

	units     *btree.Map[string, *unit]
	signals   *btree.Map[uint64, *Signal]
	untaken   *btree.Map[string, uint64] // see untakenKey
	signalIDs *btree.Map[string, uint64] // seq of the first signal with that id

	batch   uint64 // number of the present Apply or ApplyAll, see edit
	last    *unit  // that edit gave last, under lastKey
	lastKey string
	chunk   int    // how many units to make at a time; 0: one
	spare   []unit // made and not yet used; none outside of ApplyAll
	at      *int64 // UpdatedAtMS, for units to point to
}

// unit is a Unit in the tree. The mark is the batch that made this copy: while
// that batch lasts nobody else has seen it, so it may be changed in place.
type unit struct {
	Unit
	mark uint64
	room room
}

// room holds what a Unit points to, so that a unit is one allocation. A copy of
// the unit goes on pointing into the original's room.
type room struct {
	key             string
	worker, session string
	issued          [1]IssuedToken
	succeededSeq    uint64
}
