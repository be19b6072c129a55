package worker

import (
	"errors"
	"time"

	"perigee/sdk/go/client"
)

// Causes of the end of a handler's context, beside the attempt's deadline
// (context.DeadlineExceeded).
var (
	// ErrCancelled: the execution does not want the result any more, or another
	// attempt has resolved the step. A handler that can stop should; what it
	// finishes in spite of it still counts while the execution winds down.
	ErrCancelled = errors.New("the execution asked this task to stop")
	// ErrStopping: the worker has to stop. The attempt is handed out again.
	ErrStopping = errors.New("the worker is stopping")
)

// Codes of failures that this package reports by itself.
const (
	CodeHandlerError  = "HANDLER_ERROR"     // a handler's error without a code
	CodePanic         = "PANIC"             // a handler panicked
	CodeCancelled     = "CANCELLED"         // a handler stopped because it was asked to
	CodeOutputInvalid = "OUTPUT_INVALID"    // an output that cannot be written as JSON
	CodeTooLarge      = "PAYLOAD_TOO_LARGE" // an output that the server did not take
	CodeUnknownTask   = "UNKNOWN_TASK"      // a task that was not announced
)

// Error is a failure of a task with a code, by which definitions tell failures
// apart (no_retry, catch). Without further marks it may be retried.
type Error struct {
	Code       string // upper case with underscores, such as CARD_DECLINED
	Message    string
	Details    any            // JSON-marshalable, nil: none
	NoRetry    bool           // no further attempt, whatever the retry policy says
	RetryAfter *time.Duration // nil: the retry policy's delay
	Cause      error          // not reported
}

// Error is the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Fail is a failure with a code that the definition may know. Details may be nil.
func Fail(code, message string, details any) *Error {
	return &Error{Code: code, Message: message, Details: details}
}

// NonRetryable is err with no further attempt.
func NonRetryable(err error) error {
	return mark(err, func(e *Error) { e.NoRetry = true })
}

// Retryable is err with further attempts as the retry policy says; it undoes
// NonRetryable.
func Retryable(err error) error {
	return mark(err, func(e *Error) { e.NoRetry = false })
}

// RetryAfter is err with the next attempt after d, as a server that is busy
// asks for, instead of the retry policy's delay.
func RetryAfter(err error, d time.Duration) error {
	return mark(err, func(e *Error) { e.RetryAfter = &d })
}

// mark changes a copy: an error value may be shared.
func mark(err error, change func(*Error)) error {
	if err == nil {
		return nil
	}
	e := *asError(err)
	change(&e)
	return &e
}

// asError finds the failure in err's chain, with the outermost message, or
// makes one.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeHandlerError, Message: err.Error(), Cause: err}
}

// wire is the failure as it is reported.
func (e *Error) wire() (*client.TaskError, *time.Duration) {
	out := &client.TaskError{Code: e.Code, Message: e.Message, Retryable: !e.NoRetry}
	if e.Details != nil {
		details, err := client.Encode(e.Details)
		if err != nil {
			details, _ = client.Encode("details left out: " + err.Error())
		}
		out.Details = details
	}
	return out, e.RetryAfter
}
