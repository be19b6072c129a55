package traceid

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Trace is the id of an execution's trace: 32 hex digits.
func Trace(executionID string) string {
	sum := sha256.Sum256([]byte("perigee trace\x00" + executionID))
	return hex.EncodeToString(sum[:16])
}

// Execution is the id of the span that is an execution: 16 hex digits.
func Execution(executionID string) string { return span("execution\x00" + executionID) }

// Attempt is the id of the span that is an attempt of a unit. Attempts that
// were handed out again, with the same number, share it.
func Attempt(executionID, unit string, attempt uint32) string {
	return span("attempt\x00" + executionID + "\x00" + unit + "\x00" + strconv.FormatUint(uint64(attempt), 10))
}

func span(what string) string {
	sum := sha256.Sum256([]byte("perigee span\x00" + what))
	return hex.EncodeToString(sum[:8])
}

// Parent is the header `traceparent` that a worker continues an attempt's span
// with; it asks for the trace to be recorded.
func Parent(executionID, unit string, attempt uint32) string {
	return "00-" + Trace(executionID) + "-" + Attempt(executionID, unit, attempt) + "-01"
}
