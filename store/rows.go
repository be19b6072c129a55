package store

import "perigee/engine/history"

// Definition is a registered workflow version.
type Definition struct {
	Name        string
	Version     string
	Hash        string
	Canonical   string            // JSON text
	Children    map[string]string // "name@version" of each child -> hash it is pinned to
	Tasks       map[string]string // contract version of each task that workers must offer
	Extensions  string            // versions of the expression language's parts
	Retired     bool
	CreatedAtMS int64
}

// Seen is the point of a history that something was decided from.
type Seen struct {
	Incarnation int64  // random, set when the execution is created; 0: no execution
	Seq         uint64 // last sequence number
}

// Head is the row of an execution: what lists show and what commits guard on.
type Head struct {
	ID             string
	Incarnation    int64
	Workflow       string
	Version        string
	DefinitionHash string
	Status         string
	LastSeq        uint64
	LastAtMS       int64 // time of the last event
	DueAtMS        int64 // next moment that no task row stands for; 0: none
	ParentID       string
	ParentStep     string
	RootID         string // the top-level execution of a child's family; "" for that one itself
	Tags           map[string]string
	CreatedAtMS    int64
	FinishedAtMS   int64 // 0: not finished
	ErrorCount     int   // decisions in a row that erred; > 0: parked until DueAtMS
}

// Event is a stored event. Data holds the event's own members as a JSON object
// (history.AppendFields); seq, type and time stand beside it.
type Event struct {
	Seq  uint64
	Type string
	AtMS int64
	Data string
}

// Snapshot is a folded state at a point of its history.
type Snapshot struct {
	Seq    uint64
	Format int // of history.ReadSnapshot; a reader ignores formats that are not its own
	Data   string
}

// TaskState is the state of a task row.
type TaskState int

// The states of a task row. Legal moves: (none) -> Ready -> Dispatched ->
// Reported; Ready -> Held; and every state -> (none), or back to Ready in the
// same commit, when a decision says so.
const (
	TaskReady      TaskState = 0 // a poll may claim it
	TaskDispatched TaskState = 1 // with a worker
	TaskReported   TaskState = 2 // its result lies in the inbox
	TaskHeld       TaskState = 3 // ready, but its execution winds down: never claimed
)

// Task is a row of the queue: a unit that is ready or with a worker, and all
// that an assignment needs, so that a poll loads no history. A row that was
// dispatched as it was inserted may be bare, which is without queue, task,
// workflow and input: nobody has to find it, and its history knows them.
type Task struct {
	Key         string // "<execution id>/<unit key>", also the idempotency key
	ExecutionID string
	Unit        string
	State       TaskState
	Queue       string // "name@version/language"
	ReadyAtMS   int64  // with ReadySeq: the queue's order
	ReadySeq    uint64 // of the StepScheduled event
	DueAtMS     int64  // queue time-out while ready, else the next look at the attempt; 0: none

	// The assignment.
	TaskName        string
	ContractVersion string
	Workflow        string
	WorkflowVersion string
	RootID          string // of the head
	Input           string // JSON text
	Attempt         uint32
	Redelivery      bool
	TimeoutMS       int64 // of the attempt

	// While dispatched or reported.
	Session      string // hash of the worker session, or "builtin:…"
	WorkerID     string
	ClaimKey     string
	Secret       string // of the token: lets a repeated poll answer the same again
	TokenHash    string // hex SHA-256 of the secret
	DispatchedMS int64
	DeadlineMS   int64
	SuspectAtMS  int64 // 0: not suspect
	Stop         bool  // the worker is asked to stop

	// While reported.
	Report *Report
}

// Dispatch is the event by which a dispatched task came to its worker.
func (t Task) Dispatch() history.StepDispatched {
	e := history.StepDispatched{
		Step: t.Unit, Attempt: t.Attempt, Token: t.TokenHash, WorkerID: t.WorkerID, WorkerSession: t.Session,
	}
	if t.DeadlineMS != 0 {
		e.DeadlineMS = &t.DeadlineMS
	}
	return e
}

// Report is a result that waits in the inbox.
type Report struct {
	Key          string // of the task row
	TokenHash    string
	Success      bool
	Payload      string // JSON text: the output, or the error object
	RetryAfterMS *int64
	AtMS         int64 // when it came; set by the store
	NowMS        int64 // request only
}

// Guard is the state in which a decision saw a task row.
type Guard struct {
	State     TaskState // TaskReady matches TaskHeld, too
	TokenHash string    // with TaskDispatched and TaskReported
}

// TaskRemoval removes a row that is still as it was seen.
type TaskRemoval struct {
	Key   string
	Guard Guard
}

// TaskMark marks a row of an execution that winds down: a ready row becomes
// Held, a dispatched or reported row gets Stop.
type TaskMark struct {
	Key   string
	Guard Guard
}

// Message is an outbox row: something one execution has to tell another.
type Message struct {
	ID          string // deterministic: writing it twice is one message
	Kind        string // known to the engine
	Source      string // execution id
	Target      string // execution id
	Unit        string // of the target or of the source, as the kind says
	Payload     string // JSON text
	CreatedAtMS int64
}

// NewExecution is an execution with its first events.
type NewExecution struct {
	Head   Head
	Events []Event
}

// Commit is one decision about one execution. Statements run in the order of
// the fields; each guard that fails makes the whole a *LostError.
type Commit struct {
	Seen Seen // Incarnation 0: the execution is created
	Head Head // as it is afterwards
	// Events to append; the first has Seen.Seq+1. None: only the head changes.
	Events   []Event
	Removed  []TaskRemoval
	Marked   []TaskMark
	Inserted []Task // after Removed: a row that returns to the queue is in both
	Snapshot *Snapshot
	Children []NewExecution // *ChildExistsError where an id is taken
	Outbox   []Message
	// Delivered are the outbox rows that this commit takes in.
	Delivered []string
	// ReplaceTasks removes every task row of the execution before Inserted.
	// For rebuilding projections only.
	ReplaceTasks bool
}

// NoSnapshot is a format that no snapshot has: what it asks for is all events.
const NoSnapshot = -1

// LoadRequest asks for an execution.
type LoadRequest struct {
	ID    string
	Known Seen // a cached state: with the same incarnation, only later events are read
	// SnapshotFormat is the one format that the caller reads, 0: any. Snapshots
	// of another are passed over, all of them with NoSnapshot.
	SnapshotFormat int
	// DueTasks asks also for the dispatched task rows whose due moment passed.
	DueTasks bool
	NowMS    int64
}

// Loaded is an execution as one round trip read it, in one snapshot.
type Loaded struct {
	NowMS    int64
	Head     *Head     // nil: there is none
	Snapshot *Snapshot // nil where Known could be used, or there is none
	Events   []Event   // after Snapshot, or after Known.Seq
	Reported []Report  // results in the inbox, oldest first
	Due      []DueTask
}

// DueTask is a dispatched task row whose due moment has passed.
type DueTask struct {
	Key          string
	Unit         string
	TokenHash    string
	Session      string
	WorkerID     string
	DispatchedMS int64
	DeadlineMS   int64
	SuspectAtMS  int64
	LastSeenMS   int64 // of the session; 0: there is no such session
}

// Sighting is Store.Sight's word about one dispatched row.
type Sighting struct {
	Key         string
	TokenHash   string
	DueAtMS     int64
	SuspectAtMS int64
}

// ClaimRequest asks for ready tasks.
type ClaimRequest struct {
	Session  string   // hash, or "builtin:…" which needs no session row
	WorkerID string   //
	Queues   []string // in no order; the oldest task of all comes first
	ClaimKey string   // the same key and session first get what they still hold
	Secrets  []string // one for each task wanted; hashed with SHA-256 (hex) for history
	// SessionTimeoutMS is how long a silent worker is trusted, or how long the
	// process that claims for itself needs to run a task or to call its worker.
	SessionTimeoutMS int64
	NowMS            int64
}

// Claimed is what a claim got.
type Claimed struct {
	NowMS    int64
	Known    bool     // the session exists
	Tasks    []Task   // dispatched to the caller, oldest first
	Seqs     []uint64 // of the StepDispatched events of Tasks; none where Repeated
	Repeated bool     // Tasks were held already, under the same claim key
	More     bool     // tasks may be ready beside these: others held them, or so many were not asked for
	DueIDs   []string // up to three executions with due work
}

// DueRequest asks for due executions.
type DueRequest struct {
	NowMS int64
	Limit int
	// ReportedAgeMS is how long a reported row may wait before it counts as due.
	ReportedAgeMS int64
	// Except are executions to leave out, such as those that failed just now:
	// they must not keep others from the list.
	Except []string
}

// Due lists work.
type Due struct {
	NowMS        int64
	ExecutionIDs []string // earliest due first, without repeats
	Outbox       bool     // there are undelivered messages older than ReportedAgeMS
	NextMS       int64    // earliest due moment after NowMS, 0: none known
	OldestDueMS  int64    // moment of the most overdue work; 0: none
	OldestReady  int64    // ReadyAtMS of the oldest ready task; 0: none
}

// Contract is one task version that a session offers.
type Contract struct {
	TaskName        string `json:"task_name"`
	ContractVersion string `json:"contract_version"`
}

// Session is a registered worker session.
type Session struct {
	Hash           string // hex SHA-256 of the session id
	WorkerID       string
	Runtime        string // lower case
	SDK            string
	Contracts      []Contract
	RegisteredAtMS int64
	LastSeenMS     int64
	NowMS          int64 // request only
}

// WorkerSession is a session with its load.
type WorkerSession struct {
	Session
	Inflight int
}

// HeldTask is a task row that a session holds, without its payload.
type HeldTask struct {
	Key          string
	ExecutionID  string
	Unit         string
	State        TaskState
	TokenHash    string
	Secret       string // of the token: names the attempt to the worker that holds it
	DispatchedMS int64
	Attempt      uint32
	Stop         bool
}

// Touched is what is known of a session that gave a sign of life.
type Touched struct {
	NowMS    int64
	WorkerID string
	Held     []HeldTask // by key
}

// Filter selects heads. Zero fields select everything.
type Filter struct {
	Status          string
	Workflow        string
	Version         string
	Tags            map[string]string
	ParentID        string
	CreatedAfterMS  int64
	CreatedBeforeMS int64
	ErroredOnly     bool // ErrorCount > 0
	Limit           int
	// After is the last head of the page before: older ones follow.
	AfterCreatedMS int64
	AfterID        string
}

// Token is an API token; the token itself is never stored.
type Token struct {
	Name        string // unique
	Hash        string // hex SHA-256
	Role        string // admin, operator, reader, worker
	WorkerIDs   []string
	Tasks       []string // patterns such as payments.*
	CreatedAtMS int64
}

// WakeUp is to which moment the one schedule is set that calls a tick, for those
// who have one (infra/wake).
type WakeUp struct {
	AtMS    int64 // 0: it is set to none
	Version int64 // of the row, 0: there is none yet
}

// Stats counts a store's traffic. Statements inside one batch count each;
// a batch is one round trip.
type Stats struct {
	RoundTrips int64
	Statements int64
	Commits    int64 // transactions that wrote
}
