package history_test

import (
	"pgregory.net/rapid"

	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// Small sets of names, so that random events concern each other.
var (
	anyStep    = rapid.SampledFrom([]string{"a", "b", "a[0]", "a[1]", "a[10]", "compensate:a", "compensate:a[0]", "on_failure:x", "$output", "é\"\\", ""})
	anyToken   = rapid.SampledFrom([]string{"", "t1", "t2", "t3"})
	anyName    = rapid.SampledFrom([]string{"go", "stop", "go\x00", ""})
	anyText    = rapid.OneOf(rapid.SampledFrom([]string{"", "TIMEOUT", "DECLINED", "worker unregistered", "never received"}), rapid.StringN(0, 8, 20))
	anyAttempt = rapid.Uint32Range(0, 3)
	anyTime    = rapid.Int64()
	anyTimePtr = rapid.Ptr(anyTime, true)
	anyValue   = rapid.SampledFrom([]exactjson.Value{"", "null", "true", "1.50", "18446744073709551615", `"x"`, "[]", "{}", `{"a":[1,{"b":null}],"é":"\n"}`})
	anyOutcome = rapid.SampledFrom([]history.CompensationOutcome{history.CompensationNone, history.CompensationDone, history.CompensationHasFails})
	anyError   = rapid.Custom(func(t *rapid.T) history.TaskError {
		return history.TaskError{
			Code: anyText.Draw(t, "code"), Message: anyText.Draw(t, "message"),
			Retryable: rapid.Bool().Draw(t, "retryable"), Details: anyValue.Draw(t, "details"),
		}
	})
)

// anyEvent draws an event of any type that there is, and of one that there is not.
var anyEvent = rapid.Custom(func(t *rapid.T) history.Event {
	typ := rapid.SampledFrom(append([]history.Type{"StepTeleported"}, history.Types...)).Draw(t, "type")
	step, attempt, token := anyStep.Draw(t, "step"), anyAttempt.Draw(t, "attempt"), anyToken.Draw(t, "token")
	text, value := anyText.Draw(t, "text"), anyValue.Draw(t, "value")
	switch typ {
	case history.TypeWorkflowCreated:
		var parent *history.ParentRef
		if step != "" {
			parent = &history.ParentRef{ExecutionID: text, Step: step}
		}
		return history.WorkflowCreated{Workflow: text, Version: "1.0.0", DefinitionHash: token, Input: value, Parent: parent}
	case history.TypeWorkflowStarted:
		return history.WorkflowStarted{}
	case history.TypeStepScheduled:
		return history.StepScheduled{Step: step, Attempt: attempt, Input: value, IdempotencyKey: text, Redelivery: attempt == 2}
	case history.TypeStepFanOut:
		return history.StepFanOut{Step: step, Items: rapid.SliceOfN(anyValue, 0, 3).Draw(t, "items")}
	case history.TypeStepSkipped:
		return history.StepSkipped{Step: step, Reason: text}
	case history.TypeStepDispatched:
		return history.StepDispatched{Step: step, Attempt: attempt, Token: token, WorkerID: text, WorkerSession: text, DeadlineMS: anyTimePtr.Draw(t, "deadline")}
	case history.TypeStepSucceeded:
		return history.StepSucceeded{Step: step, Attempt: attempt, Output: value, Token: token}
	case history.TypeStepAttemptFailed:
		return history.StepAttemptFailed{Step: step, Attempt: attempt, Error: anyError.Draw(t, "error"), Token: token, RetryAfterMS: anyTimePtr.Draw(t, "retry after")}
	case history.TypeStepAttemptUncertain:
		return history.StepAttemptUncertain{Step: step, Attempt: attempt, Reason: text}
	case history.TypeRetryScheduled:
		return history.RetryScheduled{Step: step, NextAttempt: attempt, DelayMS: anyTime.Draw(t, "delay"), FireAtMS: anyTime.Draw(t, "fire at")}
	case history.TypeStepFailed:
		return history.StepFailed{Step: step, Error: anyError.Draw(t, "error")}
	case history.TypeStepRecovered:
		return history.StepRecovered{Step: step, Error: anyError.Draw(t, "error"), Output: value}
	case history.TypeStepCancelled:
		return history.StepCancelled{Step: step}
	case history.TypeTimerStarted:
		return history.TimerStarted{Step: step, FireAtMS: anyTime.Draw(t, "fire at")}
	case history.TypeTimerFired:
		return history.TimerFired{Step: step}
	default:
		return anyOtherEvent(t, typ, step, token, text, value)
	}
})

func anyOtherEvent(t *rapid.T, typ history.Type, step, token, text string, value exactjson.Value) history.Event {
	switch typ {
	case history.TypeSignalReceived:
		return history.SignalReceived{Name: anyName.Draw(t, "name"), Payload: value, SignalID: token}
	case history.TypeSignalAwaitStarted:
		return history.SignalAwaitStarted{Step: step, Signal: anyName.Draw(t, "signal"), DeadlineMS: anyTimePtr.Draw(t, "deadline")}
	case history.TypeSignalDelivered:
		return history.SignalDelivered{Step: step, SignalSeq: rapid.Uint64Range(0, 30).Draw(t, "signal seq")}
	case history.TypeStaleResultIgnored:
		return history.StaleResultIgnored{Step: step, Token: token, Outcome: history.OutcomeDuplicate}
	case history.TypeAttemptProgress:
		return history.AttemptProgress{Step: step, Token: token, Details: value}
	case history.TypeCancelRequested:
		return history.CancelRequested{Reason: text}
	case history.TypeWorkflowTimeoutReached:
		return history.WorkflowTimeoutReached{}
	case history.TypeLimitExceeded:
		return history.LimitExceeded{Limit: text, Message: text}
	case history.TypeCompensationStarted:
		return history.CompensationStarted{Reason: text, Steps: rapid.SliceOfN(anyStep, 0, 3).Draw(t, "steps")}
	case history.TypeCompensationCompleted:
		return history.CompensationCompleted{}
	case history.TypeCompensationFailed:
		return history.CompensationFailed{Step: step, Error: anyError.Draw(t, "error")}
	case history.TypeHandlersStarted:
		return history.HandlersStarted{Kind: history.HandlerCancel, Compensation: anyOutcome.Draw(t, "outcome")}
	case history.TypeWorkflowCompleted:
		return history.WorkflowCompleted{Output: value}
	case history.TypeWorkflowFailed:
		return history.WorkflowFailed{Error: anyError.Draw(t, "error"), Compensation: anyOutcome.Draw(t, "outcome")}
	case history.TypeWorkflowCancelled:
		return history.WorkflowCancelled{Compensation: anyOutcome.Draw(t, "outcome")}
	case history.TypeWorkflowTimedOut:
		return history.WorkflowTimedOut{Compensation: anyOutcome.Draw(t, "outcome")}
	}
	return history.Unknown{Name: typ, Data: rapid.SampledFrom([]exactjson.Value{"{}", `{"step":"a","more":[1]}`}).Draw(t, "data")}
}

// anyHistory draws up to 40 events, plausible or not, at seq 1, 2, 3 …
var anyHistory = rapid.Custom(func(t *rapid.T) []history.Record {
	return number(rapid.SliceOfN(anyEvent, 0, 40).Draw(t, "events"))
})
