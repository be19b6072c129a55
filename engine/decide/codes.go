package decide

import (
	"fmt"

	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// Codes of task errors that the engine makes.
const (
	CodeTimeout         = "TIMEOUT"
	CodeQueueTimeout    = "QUEUE_TIMEOUT"
	CodeExpression      = "EXPRESSION_ERROR"
	CodeInputContract   = "INPUT_CONTRACT_VIOLATION"
	CodeOutputContract  = "OUTPUT_CONTRACT_VIOLATION"
	CodeCancelled       = "CANCELLED"
	CodeWorkflowTimeout = "WORKFLOW_TIMEOUT"
	CodeAdapterDisabled = "ADAPTER_DISABLED"
	CodeHTTP            = "HTTP_ERROR"
	CodeSignalTimeout   = "SIGNAL_TIMEOUT"
	CodeLimitExceeded   = "LIMIT_EXCEEDED"
	CodeChildNotThere   = "CHILD_NOT_REGISTERED"
	CodeChildStart      = "CHILD_START_FAILED"
	CodeChildMissing    = "CHILD_MISSING"
	CodeChildCancelled  = "CHILD_CANCELLED"
	CodeChildTimedOut   = "CHILD_TIMED_OUT"
	CodeWorkerLost      = "WORKER_LOST"
	CodeUncertain       = "UNCERTAIN"
	CodePayloadTooLarge = "PAYLOAD_TOO_LARGE"
)

// Reasons of StepAttemptUncertain that others make, too.
const (
	ReasonUnregistered  = history.ReasonUnregistered // not counted as a loss
	ReasonNeverReceived = "never received"
	ReasonDidNotStop    = "did not stop in time"
	ReasonServerSilent  = "the server that saw to it stopped responding"
)

// ReasonStoppedResponding is the reason for a worker that fell silent.
func ReasonStoppedResponding(worker string) string {
	return fmt.Sprintf("worker `%s` stopped responding", worker)
}

// failure makes a task error of the engine's own. Only TIMEOUT and WORKER_LOST
// are worth another attempt.
func failure(code, format string, args ...any) *history.TaskError {
	return &history.TaskError{
		Code:      code,
		Message:   fmt.Sprintf(format, args...),
		Retryable: code == CodeTimeout || code == CodeWorkerLost,
	}
}

func withDetails(e *history.TaskError, details exactjson.Value) *history.TaskError {
	e.Details = details
	return e
}
