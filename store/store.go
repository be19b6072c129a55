package store

import "context"

// Store is a database of executions. All methods are safe for concurrent use.
//
// Time: a request's NowMS is the moment to work with, in epoch milliseconds;
// zero means the database's own clock, so that callers whose clocks differ
// agree. Answers name the moment that was used.
//
// Errors: see errors.go. Whatever fails, nothing is half-written: a method
// that writes does so in one transaction.
type Store interface {
	// Migrate brings the schema to the version of this release, and leaves a
	// newer one that this release works with as it is. Two callers at once are
	// safe. It returns the versions before and after.
	Migrate(ctx context.Context) (from, to int64, err error)
	// CheckSchema fails with ErrSchema where the schema is older than this
	// release's, or newer and not for it; see CheckVersion.
	CheckSchema(ctx context.Context) error
	Ping(ctx context.Context) error
	Close() error
	// Stats counts what went over the wire since the store was opened.
	Stats() Stats

	// PutDefinition stores a definition that is not there yet. For a
	// name@version that exists it returns what is stored, with created false.
	PutDefinition(ctx context.Context, d Definition) (stored Definition, created bool, err error)
	// Definition finds a definition by hash. ErrNotFound.
	Definition(ctx context.Context, hash string) (Definition, error)
	// Definitions lists the versions of one workflow (or, with name "", of
	// all), by name and then in order of creation, without their texts.
	Definitions(ctx context.Context, name string) ([]Definition, error)
	// RetireDefinition takes a version out of the default choice. ErrNotFound.
	RetireDefinition(ctx context.Context, name, version string) error

	// Load reads, in one round trip, what a call needs of an execution.
	// Loaded.Head is nil where there is none of that id.
	Load(ctx context.Context, r LoadRequest) (Loaded, error)
	// Commit writes a decision, all or nothing. A *LostError says that what
	// the decision was made from has changed.
	Commit(ctx context.Context, c Commit) error
	// WithHeadLocked loads an execution under a lock on its head, calls decide
	// and writes what it returns, in one transaction. decide may return nil to
	// write nothing; it must not use the store, and it may be called again where
	// a transaction had to be run anew. On a database without locks it is Load
	// and Commit.
	WithHeadLocked(ctx context.Context, r LoadRequest, decide func(Loaded) (*Commit, error)) error

	// Claim hands ready tasks to a worker session and appends their
	// StepDispatched events.
	Claim(ctx context.Context, r ClaimRequest) (Claimed, error)
	// Report puts a result into the inbox: it marks the dispatched row as
	// reported. False: the row is not (or no longer) dispatched under that token.
	Report(ctx context.Context, r Report) (bool, error)
	// TryDrain is WithHeadLocked, but gives up at once with ErrBusy where
	// another transaction holds the head.
	TryDrain(ctx context.Context, r LoadRequest, decide func(Loaded) (*Commit, error)) error
	// Task reads one task row. ErrNotFound.
	Task(ctx context.Context, key string) (Task, error)
	// Tasks lists the task rows of an execution, by key.
	Tasks(ctx context.Context, executionID string) ([]Task, error)
	// Sight records that dispatched tasks were seen: their next due moments and
	// when they became suspect. Rows that moved on meanwhile are left alone.
	Sight(ctx context.Context, sightings []Sighting) error
	// Due lists executions that have work at this moment, and says when the
	// next moment comes.
	Due(ctx context.Context, r DueRequest) (Due, error)

	// PutSession registers a worker session.
	PutSession(ctx context.Context, s Session) error
	// Session finds a session by its hash. ErrNotFound.
	Session(ctx context.Context, hash string) (Session, error)
	// TouchSession moves last_seen to now where it is older than minAgeMS.
	// It returns the session's task rows (without payloads), and ErrNotFound
	// for a session that does not exist.
	TouchSession(ctx context.Context, hash string, nowMS, minAgeMS int64) (Touched, error)
	// DeleteSession removes a session and returns its task rows. ErrNotFound.
	DeleteSession(ctx context.Context, hash string) (Touched, error)
	// Workers lists all sessions with the number of tasks that each holds, by
	// worker id and then registration.
	Workers(ctx context.Context) ([]WorkerSession, error)
	// DropSessions removes sessions that were last seen before the moment.
	DropSessions(ctx context.Context, lastSeenBeforeMS int64) error

	// Outbox lists undelivered messages, those of one source execution or,
	// with "", the oldest of all.
	Outbox(ctx context.Context, source string, limit int) ([]Message, error)
	// DeleteMessages removes messages that need no delivery any more.
	DeleteMessages(ctx context.Context, ids []string) error

	// History reads stored events after a sequence number, in order, until
	// limit events or maxBytes of data (0: no bound; at least one event).
	History(ctx context.Context, executionID string, afterSeq uint64, limit int, maxBytes int) ([]Event, error)
	// Executions lists heads, newest first.
	Executions(ctx context.Context, f Filter) ([]Head, error)
	// CountActive counts top-level executions that are not terminal, up to limit.
	CountActive(ctx context.Context, limit int) (int, error)

	// PutToken, Tokens and DeleteToken keep the API's bearer tokens, as hashes.
	PutToken(ctx context.Context, t Token) error
	// TokenByHash finds a token. ErrNotFound.
	TokenByHash(ctx context.Context, hash string) (Token, error)
	Tokens(ctx context.Context) ([]Token, error)
	// DeleteToken removes a token by name. ErrNotFound.
	DeleteToken(ctx context.Context, name string) error
}
