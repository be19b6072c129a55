package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Code names a kind of error; docs/errors.md lists them all.
type Code string

// The codes of errors that the engine answers with.
const (
	InvalidRequest       Code = "INVALID_REQUEST"
	InvalidInput         Code = "INVALID_INPUT"
	InvalidExecutionID   Code = "INVALID_EXECUTION_ID"
	InvalidDefinition    Code = "INVALID_DEFINITION"
	ChildNotRegistered   Code = "CHILD_NOT_REGISTERED"
	DefinitionConflict   Code = "DEFINITION_CONFLICT"
	WorkflowNotFound     Code = "WORKFLOW_NOT_FOUND"
	NotFound             Code = "NOT_FOUND"
	ExecutionExists      Code = "EXECUTION_EXISTS"
	ExecutionFinished    Code = "EXECUTION_FINISHED"
	UnknownSignal        Code = "UNKNOWN_SIGNAL"
	SignalPayloadInvalid Code = "SIGNAL_PAYLOAD_INVALID"
	SignalExists         Code = "SIGNAL_EXISTS"
	UnknownQuery         Code = "UNKNOWN_QUERY"
	QueryFailed          Code = "QUERY_FAILED"
	UnknownSession       Code = "UNKNOWN_SESSION"
	ReservedTask         Code = "RESERVED_TASK"
	PayloadTooLarge      Code = "PAYLOAD_TOO_LARGE"
	ResourceExhausted    Code = "RESOURCE_EXHAUSTED"
	Conflict             Code = "CONFLICT"
	Unavailable          Code = "UNAVAILABLE"
	NewerHistory         Code = "NEWER_HISTORY"
	Unauthenticated      Code = "UNAUTHENTICATED"
	Forbidden            Code = "FORBIDDEN"
	Internal             Code = "INTERNAL"
)

// Error is an error with a code. Message is for the caller: what was
// expected, what came, what to do. Cause is for the log only.
type Error struct {
	Code       Code
	Message    string
	Details    any           // JSON-marshalable, nil: none
	RetryAfter time.Duration // > 0: the same call may succeed after this long
	Cause      error
}

// Error is the message with the code in front, without the cause.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// LogValue is the message and the cause: a log is where the cause belongs.
func (e *Error) LogValue() slog.Value {
	if e.Cause == nil {
		return slog.StringValue(e.Error())
	}
	return slog.StringValue(e.Error() + " (cause: " + e.Cause.Error() + ")")
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is compare by code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// CodeOf is the code of an error, Internal where it has none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
