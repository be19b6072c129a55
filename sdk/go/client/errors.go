package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Codes of Error that callers commonly tell apart; docs/errors.md lists all.
const (
	CodeUnknownSession    = "UNKNOWN_SESSION"
	CodeNotFound          = "NOT_FOUND"
	CodeExecutionExists   = "EXECUTION_EXISTS"
	CodeExecutionFinished = "EXECUTION_FINISHED"
	CodeConflict          = "CONFLICT"
	CodeUnavailable       = "UNAVAILABLE"
	CodeResourceExhausted = "RESOURCE_EXHAUSTED"
	CodeInternal          = "INTERNAL"
)

// Error is a refusal by the server.
type Error struct {
	Code       string          // such as "NOT_FOUND"; "HTTP_502" where the answer had no code
	Message    string          // what was expected, what came, what to do
	Status     int             // HTTP status
	Details    json.RawMessage // nil where there are none
	RequestID  string          // x-request-id of the answer
	RetryAfter time.Duration   // what the server asked for, 0: nothing
}

// Error is the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Is makes errors.Is compare by code: errors.Is(err, &client.Error{Code: "NOT_FOUND"}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// temporary reports whether the same call, with the same ids, may succeed later.
func (e *Error) temporary() bool {
	// A gateway gives 500 and 504 too where only its backend was slow; 501 is said
	// by one that is no Perigee server.
	return e.Status == http.StatusTooManyRequests || e.Code == CodeConflict ||
		e.Status >= 500 && e.Code != CodeInternal && e.Status != http.StatusNotImplemented
}

// CodeOf is the code of a server's refusal, or "" where err is none.
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Temporary reports whether the same call may succeed later: the server was
// not reached, or had no room. A context that ended is not temporary.
func Temporary(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.temporary()
	}
	var lost *connectionError
	return errors.As(err, &lost)
}

// connectionError is a call whose outcome is unknown: it may have reached the
// server or not.
type connectionError struct{ cause error }

func (e *connectionError) Error() string { return e.cause.Error() }
func (e *connectionError) Unwrap() error { return e.cause }

// refusal reads an error answer. A body that is not in the API's error shape
// (a gateway's page) gives the status alone.
func refusal(status int, header http.Header, body []byte) *Error {
	e := &Error{Status: status, RequestID: header.Get("X-Request-Id"), RetryAfter: retryAfter(header)}
	var shape struct {
		Code    string          `json:"code"`
		Message string          `json:"message"`
		Details json.RawMessage `json:"details"`
	}
	if err := json.Unmarshal(body, &shape); err == nil && shape.Code != "" {
		e.Code, e.Message, e.Details = shape.Code, shape.Message, shape.Details
		return e
	}
	e.Code = fmt.Sprintf("HTTP_%d", status)
	e.Message = fmt.Sprintf("the answer is no Perigee error (%s): check that the URL is that of a Perigee server", http.StatusText(status))
	return e
}

func asError(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}
