package traceid

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Trace is the id of the trace of a top-level execution and all its family: 32
// hex digits.
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
// with; it asks for the trace to be recorded. The root is the top-level execution
// of a child's family, "" for one without a parent.
func Parent(rootID, executionID, unit string, attempt uint32) string {
	return "00-" + Trace(cmp.Or(rootID, executionID)) + "-" + Attempt(executionID, unit, attempt) + "-01"
}
