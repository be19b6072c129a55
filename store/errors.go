package store

import (
	"errors"
	"fmt"
)

// Errors that callers tell apart with errors.Is. Backends wrap them with the
// operation; SQLSTATE and SQLite codes stay inside the backend.
var (
	// ErrNotFound: there is no such row.
	ErrNotFound = errors.New("not found")
	// ErrBusy: another transaction holds what was asked for; try again later.
	ErrBusy = errors.New("busy")
	// ErrUnavailable: the database cannot be reached or refuses to work; nothing
	// was written.
	ErrUnavailable = errors.New("database unavailable")
	// ErrUnknownOutcome: the connection was lost while committing; the write
	// may or may not have happened.
	ErrUnknownOutcome = errors.New("outcome of the commit unknown")
	// ErrSchema: this release does not work with the database's schema.
	ErrSchema = errors.New("schema version")
	// ErrTooLarge: more than the database takes in one transaction.
	ErrTooLarge = errors.New("transaction too large")
)

// LostError says that a guard of a Commit failed: someone was faster. Nothing
// was written; load again and decide again.
type LostError struct {
	// Task is the key of a task row that changed, or "" where it was the head
	// (or where the database does not tell which).
	Task string
	// Exists is set where the execution that a commit creates exists already.
	Exists bool
}

func (e *LostError) Error() string {
	switch {
	case e.Exists:
		return "lost a race: the execution exists already"
	case e.Task != "":
		return fmt.Sprintf("lost a race for task %s", e.Task)
	}
	return "lost a race for the execution's head"
}

// ChildExistsError says that a child's execution id is taken. Nothing was written.
type ChildExistsError struct {
	ID string // "" where the database does not tell which
}

func (e *ChildExistsError) Error() string {
	return fmt.Sprintf("execution %q exists already", e.ID)
}
