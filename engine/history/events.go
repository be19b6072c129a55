package history

// The types of the events, as they stand in JSON and in the stores.
const (
	TypeWorkflowCreated        Type = "WorkflowCreated"
	TypeWorkflowStarted        Type = "WorkflowStarted"
	TypeStepScheduled          Type = "StepScheduled"
	TypeStepFanOut             Type = "StepFanOut"
	TypeStepSkipped            Type = "StepSkipped"
	TypeStepDispatched         Type = "StepDispatched"
	TypeStepSucceeded          Type = "StepSucceeded"
	TypeStepAttemptFailed      Type = "StepAttemptFailed"
	TypeStepAttemptUncertain   Type = "StepAttemptUncertain"
	TypeRetryScheduled         Type = "RetryScheduled"
	TypeStepFailed             Type = "StepFailed"
	TypeStepRecovered          Type = "StepRecovered"
	TypeStepCancelled          Type = "StepCancelled"
	TypeTimerStarted           Type = "TimerStarted"
	TypeTimerFired             Type = "TimerFired"
	TypeSignalReceived         Type = "SignalReceived"
	TypeSignalAwaitStarted     Type = "SignalAwaitStarted"
	TypeSignalDelivered        Type = "SignalDelivered"
	TypeStaleResultIgnored     Type = "StaleResultIgnored"
	TypeAttemptProgress        Type = "AttemptProgress"
	TypeCancelRequested        Type = "CancelRequested"
	TypeWorkflowTimeoutReached Type = "WorkflowTimeoutReached"
	TypeLimitExceeded          Type = "LimitExceeded"
	TypeCompensationStarted    Type = "CompensationStarted"
	TypeCompensationCompleted  Type = "CompensationCompleted"
	TypeCompensationFailed     Type = "CompensationFailed"
	TypeHandlersStarted        Type = "HandlersStarted"
	TypeWorkflowCompleted      Type = "WorkflowCompleted"
	TypeWorkflowFailed         Type = "WorkflowFailed"
	TypeWorkflowCancelled      Type = "WorkflowCancelled"
	TypeWorkflowTimedOut       Type = "WorkflowTimedOut"
)

// Types lists every type that this release knows, in the order of event.go.
var Types = []Type{
	TypeWorkflowCreated,
	TypeWorkflowStarted,
	TypeStepScheduled,
	TypeStepFanOut,
	TypeStepSkipped,
	TypeStepDispatched,
	TypeStepSucceeded,
	TypeStepAttemptFailed,
	TypeStepAttemptUncertain,
	TypeRetryScheduled,
	TypeStepFailed,
	TypeStepRecovered,
	TypeStepCancelled,
	TypeTimerStarted,
	TypeTimerFired,
	TypeSignalReceived,
	TypeSignalAwaitStarted,
	TypeSignalDelivered,
	TypeStaleResultIgnored,
	TypeAttemptProgress,
	TypeCancelRequested,
	TypeWorkflowTimeoutReached,
	TypeLimitExceeded,
	TypeCompensationStarted,
	TypeCompensationCompleted,
	TypeCompensationFailed,
	TypeHandlersStarted,
	TypeWorkflowCompleted,
	TypeWorkflowFailed,
	TypeWorkflowCancelled,
	TypeWorkflowTimedOut,
}

// Type of each event: its name.

func (WorkflowCreated) Type() Type        { return TypeWorkflowCreated }
func (WorkflowStarted) Type() Type        { return TypeWorkflowStarted }
func (StepScheduled) Type() Type          { return TypeStepScheduled }
func (StepFanOut) Type() Type             { return TypeStepFanOut }
func (StepSkipped) Type() Type            { return TypeStepSkipped }
func (StepDispatched) Type() Type         { return TypeStepDispatched }
func (StepSucceeded) Type() Type          { return TypeStepSucceeded }
func (StepAttemptFailed) Type() Type      { return TypeStepAttemptFailed }
func (StepAttemptUncertain) Type() Type   { return TypeStepAttemptUncertain }
func (RetryScheduled) Type() Type         { return TypeRetryScheduled }
func (StepFailed) Type() Type             { return TypeStepFailed }
func (StepRecovered) Type() Type          { return TypeStepRecovered }
func (StepCancelled) Type() Type          { return TypeStepCancelled }
func (TimerStarted) Type() Type           { return TypeTimerStarted }
func (TimerFired) Type() Type             { return TypeTimerFired }
func (SignalReceived) Type() Type         { return TypeSignalReceived }
func (SignalAwaitStarted) Type() Type     { return TypeSignalAwaitStarted }
func (SignalDelivered) Type() Type        { return TypeSignalDelivered }
func (StaleResultIgnored) Type() Type     { return TypeStaleResultIgnored }
func (AttemptProgress) Type() Type        { return TypeAttemptProgress }
func (CancelRequested) Type() Type        { return TypeCancelRequested }
func (WorkflowTimeoutReached) Type() Type { return TypeWorkflowTimeoutReached }
func (LimitExceeded) Type() Type          { return TypeLimitExceeded }
func (CompensationStarted) Type() Type    { return TypeCompensationStarted }
func (CompensationCompleted) Type() Type  { return TypeCompensationCompleted }
func (CompensationFailed) Type() Type     { return TypeCompensationFailed }
func (HandlersStarted) Type() Type        { return TypeHandlersStarted }
func (WorkflowCompleted) Type() Type      { return TypeWorkflowCompleted }
func (WorkflowFailed) Type() Type         { return TypeWorkflowFailed }
func (WorkflowCancelled) Type() Type      { return TypeWorkflowCancelled }
func (WorkflowTimedOut) Type() Type       { return TypeWorkflowTimedOut }
func (e Unknown) Type() Type              { return e.Name }

// Unit of each event: the key of the unit concerned, if one is.

func (WorkflowCreated) Unit() string        { return "" }
func (WorkflowStarted) Unit() string        { return "" }
func (e StepScheduled) Unit() string        { return e.Step }
func (e StepFanOut) Unit() string           { return e.Step }
func (e StepSkipped) Unit() string          { return e.Step }
func (e StepDispatched) Unit() string       { return e.Step }
func (e StepSucceeded) Unit() string        { return e.Step }
func (e StepAttemptFailed) Unit() string    { return e.Step }
func (e StepAttemptUncertain) Unit() string { return e.Step }
func (e RetryScheduled) Unit() string       { return e.Step }
func (e StepFailed) Unit() string           { return e.Step }
func (e StepRecovered) Unit() string        { return e.Step }
func (e StepCancelled) Unit() string        { return e.Step }
func (e TimerStarted) Unit() string         { return e.Step }
func (e TimerFired) Unit() string           { return e.Step }
func (SignalReceived) Unit() string         { return "" }
func (e SignalAwaitStarted) Unit() string   { return e.Step }
func (e SignalDelivered) Unit() string      { return e.Step }
func (e StaleResultIgnored) Unit() string   { return e.Step }
func (e AttemptProgress) Unit() string      { return e.Step }
func (CancelRequested) Unit() string        { return "" }
func (WorkflowTimeoutReached) Unit() string { return "" }
func (LimitExceeded) Unit() string          { return "" }
func (CompensationStarted) Unit() string    { return "" }
func (CompensationCompleted) Unit() string  { return "" }
func (e CompensationFailed) Unit() string   { return e.Step }
func (HandlersStarted) Unit() string        { return "" }
func (WorkflowCompleted) Unit() string      { return "" }
func (WorkflowFailed) Unit() string         { return "" }
func (WorkflowCancelled) Unit() string      { return "" }
func (WorkflowTimedOut) Unit() string       { return "" }
func (Unknown) Unit() string                { return "" }
