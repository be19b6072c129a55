package view

import (
	"fmt"
	"strings"
	"time"

	"perigee/engine/history"
	"perigee/local/console"
)

// Event says in words what an event is about, beside its type and unit: what
// a line of `perigee history` ends with. Often there is nothing to add.
func Event(e history.Event, zone *time.Location) string {
	moment := func(ms int64) string { return console.Moment(ms, zone) }
	switch e := e.(type) {
	case history.WorkflowCreated:
		return fmt.Sprintf("%s@%s input %s", e.Workflow, e.Version, brief(string(e.Input.OrNull())))
	case history.StepScheduled:
		return attemptOf(e.Attempt, e.Redelivery) + " input " + brief(string(e.Input.OrNull()))
	case history.StepFanOut:
		return fmt.Sprintf("%d elements", len(e.Items))
	case history.StepSkipped:
		return e.Reason
	case history.StepDispatched:
		return dispatchedTo(e)
	case history.StepSucceeded:
		return "output " + brief(string(e.Output.OrNull()))
	case history.StepAttemptFailed:
		return fmt.Sprintf("attempt %d %s", e.Attempt, failure(&e.Error))
	case history.StepAttemptUncertain:
		return fmt.Sprintf("attempt %d %s", e.Attempt, brief(e.Reason))
	case history.RetryScheduled:
		return fmt.Sprintf("attempt %d at %s (after %s)", e.NextAttempt, moment(e.FireAtMS), console.Duration(e.DelayMS))
	case history.StepFailed:
		return failure(&e.Error)
	case history.StepRecovered:
		return "caught " + failure(&e.Error)
	case history.TimerStarted:
		return "until " + moment(e.FireAtMS)
	case history.SignalReceived:
		return e.Name + " " + brief(string(e.Payload.OrNull()))
	case history.SignalAwaitStarted:
		if e.DeadlineMS != nil {
			return e.Signal + " until " + moment(*e.DeadlineMS)
		}
		return e.Signal
	case history.SignalDelivered:
		return fmt.Sprintf("the signal of event %d", e.SignalSeq)
	case history.StaleResultIgnored:
		return e.Outcome
	case history.AttemptProgress:
		return brief(string(e.Details.OrNull()))
	}
	return executionEvent(e)
}

// executionEvent is Event for events about the whole execution.
func executionEvent(e history.Event) string {
	switch e := e.(type) {
	case history.CancelRequested:
		return brief(e.Reason)
	case history.LimitExceeded:
		return e.Limit + ": " + brief(e.Message)
	case history.CompensationStarted:
		return fmt.Sprintf("%s; undo %s", e.Reason, some(e.Steps, 5))
	case history.CompensationFailed:
		return failure(&e.Error)
	case history.HandlersStarted:
		return "on_" + e.Kind
	case history.WorkflowCompleted:
		return "output " + brief(string(e.Output.OrNull()))
	case history.WorkflowFailed:
		return failure(&e.Error) + "; compensation " + string(e.Compensation)
	case history.WorkflowCancelled:
		return "compensation " + string(e.Compensation)
	case history.WorkflowTimedOut:
		return "compensation " + string(e.Compensation)
	case history.Unknown:
		return "of a newer release: " + brief(string(e.Data))
	}
	return ""
}

func attemptOf(attempt uint32, again bool) string {
	if again {
		return fmt.Sprintf("attempt %d again", attempt)
	}
	return fmt.Sprintf("attempt %d", attempt)
}

func dispatchedTo(e history.StepDispatched) string {
	if child, ok := strings.CutPrefix(e.WorkerSession, childSession); ok {
		return "child execution " + child
	}
	return fmt.Sprintf("attempt %d to %s", e.Attempt, e.WorkerID)
}

// EventStyle is how an event's type is shown.
func EventStyle(t history.Type) console.Style {
	switch t {
	case history.TypeStepFailed, history.TypeWorkflowFailed, history.TypeWorkflowTimedOut, history.TypeCompensationFailed, history.TypeLimitExceeded:
		return console.Red
	case history.TypeStepAttemptFailed, history.TypeStepAttemptUncertain, history.TypeRetryScheduled, history.TypeCancelRequested,
		history.TypeWorkflowTimeoutReached, history.TypeCompensationStarted, history.TypeWorkflowCancelled, history.TypeStepCancelled:
		return console.Yellow
	case history.TypeStepSucceeded, history.TypeWorkflowCompleted, history.TypeCompensationCompleted, history.TypeStepRecovered:
		return console.Green
	}
	return console.Plain
}
