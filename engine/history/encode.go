package history

import (
	"strconv"

	"perigee/engine/exactjson"
)

// AppendEvent appends the full JSON form of r:
// {"seq":1,"timestamp_ms":…,"type":"StepScheduled", …members}.
func AppendEvent(dst []byte, r Record) []byte {
	w := writer{appendHead(dst, r.Seq, r.TimestampMS, string(r.Event.Type()))}
	w.event(r.Event)
	return append(w.buf, '}')
}

// AppendFields appends the event's own members as one object, the form in
// which stores keep them beside the columns seq, type and time.
func AppendFields(dst []byte, e Event) []byte {
	start := len(dst)
	w := writer{dst}
	w.event(e)
	return w.object(start)
}

// AppendStored appends what AppendEvent would, from what a store keeps: fields
// is the text that AppendFields made, and is copied as it is.
func AppendStored(dst []byte, seq uint64, atMS int64, typ, fields string) []byte {
	dst = appendHead(dst, seq, atMS, typ)
	if len(fields) <= len("{}") {
		return append(dst, '}')
	}
	dst = append(dst, ',')
	return append(dst, fields[1:]...)
}

func appendHead(dst []byte, seq uint64, atMS int64, typ string) []byte {
	dst = strconv.AppendUint(append(dst, `{"seq":`...), seq, 10)
	dst = strconv.AppendInt(append(dst, `,"timestamp_ms":`...), atMS, 10)
	return exactjson.AppendQuoted(append(dst, `,"type":`...), typ)
}

// writer appends the members of an object, each with a comma before it.
type writer struct{ buf []byte }

// object turns the members written from start on into an object.
func (w *writer) object(start int) []byte {
	if len(w.buf) == start {
		return append(w.buf, '{', '}')
	}
	w.buf[start] = '{'
	return append(w.buf, '}')
}

func (w *writer) name(name string) {
	w.buf = append(w.buf, ',', '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

func (w *writer) text(name, s string) {
	w.name(name)
	w.buf = exactjson.AppendQuoted(w.buf, s)
}

func (w *writer) textIf(name, s string) {
	if s != "" {
		w.text(name, s)
	}
}

func (w *writer) textPtr(name string, s *string) {
	if s != nil {
		w.text(name, *s)
	}
}

func (w *writer) texts(name string, list []string) {
	w.name(name)
	w.buf = append(w.buf, '[')
	for i, s := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = exactjson.AppendQuoted(w.buf, s)
	}
	w.buf = append(w.buf, ']')
}

func (w *writer) uint(name string, n uint64) {
	w.name(name)
	w.buf = strconv.AppendUint(w.buf, n, 10)
}

func (w *writer) uintIf(name string, n uint64) {
	if n != 0 {
		w.uint(name, n)
	}
}

func (w *writer) int(name string, n int64) {
	w.name(name)
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

func (w *writer) intIf(name string, n int64) {
	if n != 0 {
		w.int(name, n)
	}
}

func (w *writer) intPtr(name string, n *int64) {
	if n != nil {
		w.int(name, *n)
	}
}

func (w *writer) flag(name string, b bool) {
	w.name(name)
	w.buf = strconv.AppendBool(w.buf, b)
}

func (w *writer) flagIf(name string, b bool) {
	if b {
		w.flag(name, b)
	}
}

// value writes an absent value as null.
func (w *writer) value(name string, v exactjson.Value) {
	w.name(name)
	w.buf = append(w.buf, v.OrNull()...)
}

func (w *writer) valueIf(name string, v exactjson.Value) {
	if !v.Absent() {
		w.value(name, v)
	}
}

func (w *writer) values(name string, list []exactjson.Value) {
	w.name(name)
	w.buf = append(w.buf, '[')
	for i, v := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = append(w.buf, v.OrNull()...)
	}
	w.buf = append(w.buf, ']')
}

// taskError leaves out details that are null: they say no more than none, and
// a history must fold to the same state before and after it was stored.
func (w *writer) taskError(name string, e TaskError) {
	w.name(name)
	start := len(w.buf)
	w.errorMembers(e)
	w.buf = w.object(start)
}

func (w *writer) errorMembers(e TaskError) {
	w.text("code", e.Code)
	w.text("message", e.Message)
	w.flag("retryable", e.Retryable)
	if !e.Details.IsNull() {
		w.value("details", e.Details)
	}
}

func (w *writer) taskErrorPtr(name string, e *TaskError) {
	if e != nil {
		w.taskError(name, *e)
	}
}

func (w *writer) parent(p *ParentRef) {
	if p == nil {
		return
	}
	w.name("parent")
	start := len(w.buf)
	w.text("execution_id", p.ExecutionID)
	w.text("step", p.Step)
	w.buf = w.object(start)
}

// event writes the event's own members.
func (w *writer) event(e Event) {
	switch e := e.(type) {
	case WorkflowCreated:
		w.text("workflow", e.Workflow)
		w.text("version", e.Version)
		w.text("definition_hash", e.DefinitionHash)
		w.value("input", e.Input)
		w.parent(e.Parent)
	case SignalReceived:
		w.text("name", e.Name)
		w.value("payload", e.Payload)
		w.textIf("signal_id", e.SignalID)
	case CancelRequested:
		w.text("reason", e.Reason)
	case LimitExceeded:
		w.text("limit", e.Limit)
		w.text("message", e.Message)
	case CompensationStarted:
		w.text("reason", e.Reason)
		w.texts("steps", e.Steps)
	case HandlersStarted:
		w.text("kind", e.Kind)
		w.text("compensation", string(e.Compensation))
	case WorkflowCompleted:
		w.value("output", e.Output)
	case WorkflowFailed:
		w.taskError("error", e.Error)
		w.text("compensation", string(e.Compensation))
	case WorkflowCancelled:
		w.text("compensation", string(e.Compensation))
	case WorkflowTimedOut:
		w.text("compensation", string(e.Compensation))
	case Unknown:
		for key, v := range braced(e.Data).Members() {
			w.buf = exactjson.AppendQuoted(append(w.buf, ','), key)
			w.buf = append(append(w.buf, ':'), v...)
		}
	case WorkflowStarted, WorkflowTimeoutReached, CompensationCompleted:
	default:
		w.text("step", e.Unit())
		w.unitEvent(e)
	}
}

// unitEvent writes what an event of a unit has beside its step.
func (w *writer) unitEvent(e Event) {
	switch e := e.(type) {
	case StepScheduled:
		w.uint("attempt", uint64(e.Attempt))
		w.value("input", e.Input)
		w.text("idempotency_key", e.IdempotencyKey)
		w.flag("redelivery", e.Redelivery)
	case StepFanOut:
		w.values("items", e.Items)
	case StepSkipped:
		w.text("reason", e.Reason)
	case StepDispatched:
		w.dispatched(e)
	case StepSucceeded:
		w.uint("attempt", uint64(e.Attempt))
		w.value("output", e.Output)
		w.textIf("token", e.Token)
	case StepAttemptFailed:
		w.uint("attempt", uint64(e.Attempt))
		w.taskError("error", e.Error)
		w.textIf("token", e.Token)
		w.intPtr("retry_after_ms", e.RetryAfterMS)
	case StepAttemptUncertain:
		w.uint("attempt", uint64(e.Attempt))
		w.text("reason", e.Reason)
	case RetryScheduled:
		w.uint("next_attempt", uint64(e.NextAttempt))
		w.int("delay_ms", e.DelayMS)
		w.int("fire_at_ms", e.FireAtMS)
	case StepFailed:
		w.taskError("error", e.Error)
	case StepRecovered:
		w.taskError("error", e.Error)
		w.value("output", e.Output)
	case TimerStarted:
		w.int("fire_at_ms", e.FireAtMS)
	case SignalAwaitStarted:
		w.text("signal", e.Signal)
		w.intPtr("deadline_ms", e.DeadlineMS)
	case SignalDelivered:
		w.uint("signal_seq", e.SignalSeq)
	case StaleResultIgnored:
		w.text("token", e.Token)
		w.text("outcome", e.Outcome)
	case AttemptProgress:
		w.text("token", e.Token)
		w.value("details", e.Details)
	case CompensationFailed:
		w.taskError("error", e.Error)
	}
}

// dispatched always writes the deadline, as null where there is none.
func (w *writer) dispatched(e StepDispatched) {
	w.uint("attempt", uint64(e.Attempt))
	w.text("token", e.Token)
	w.text("worker_id", e.WorkerID)
	w.text("worker_session", e.WorkerSession)
	if e.DeadlineMS == nil {
		w.value("deadline_ms", exactjson.Null)
		return
	}
	w.int("deadline_ms", *e.DeadlineMS)
}
