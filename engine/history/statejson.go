package history

import (
	"fmt"
	"strconv"

	"perigee/engine/exactjson"
)

// unitStatusNames are the served names; a pending unit has none and is null.
var unitStatusNames = [...]string{
	UnitRunning:       "RUNNING",
	UnitScheduled:     "SCHEDULED",
	UnitDispatched:    "DISPATCHED",
	UnitAttemptFailed: "ATTEMPT_FAILED",
	UnitUncertain:     "UNCERTAIN",
	UnitRetryWait:     "RETRY_WAIT",
	UnitWaiting:       "WAITING",
	UnitSucceeded:     "SUCCEEDED",
	UnitSkipped:       "SKIPPED",
	UnitFailed:        "FAILED",
	UnitCancelled:     "CANCELLED",
}

// String is the status as expressions and people see it; PENDING included,
// which the JSON form of a state has as null.
func (s UnitStatus) String() string {
	if s == UnitPending {
		return "PENDING"
	}
	if int(s) < len(unitStatusNames) {
		return unitStatusNames[s]
	}
	return "UNKNOWN"
}

// PageOptions say which part of a state to serve. The zero value is all of it.
// Signals are on the first page only.
type PageOptions struct {
	After string // only units whose key is greater
	Limit int    // of units; 0: none
	// MaxBytes ends a page once units, the input and the output fill so much, and
	// the signals once they fill an eighth of that; 0: never. One unit and one
	// signal always fit.
	MaxBytes int
	// MaxValueBytes is what a value of a unit or a signal may have; longer ones are
	// left out and named; 0: no limit.
	MaxValueBytes int
}

// Page says what a served part of a state lacks.
type Page struct {
	NextUnitsAfter string // PageOptions.After of the next page, "" on the last
	// Omitted names what was left out: "<unit key>.<member>",
	// "signals[<seq>].payload", and "signals[<seq>:]" for all from that one on.
	Omitted []string
}

// AppendJSON appends the served form of the whole state.
func (s *State) AppendJSON(dst []byte) []byte {
	dst, _ = s.AppendJSONPage(dst, PageOptions{})
	return dst
}

// AppendJSONPage appends the served form with some of the units. What Page says
// also stands in the text, as "next_units_after" and "omitted", if it says
// anything.
func (s *State) AppendJSONPage(dst []byte, o PageOptions) ([]byte, Page) {
	start := len(dst)
	w := stateWriter{writer: writer{dst}, page: o}
	w.state(s)
	w.textIf("next_units_after", w.result.NextUnitsAfter)
	if len(w.result.Omitted) > 0 {
		w.texts("omitted", w.result.Omitted)
	}
	return w.object(start), w.result
}

// stateWriter writes a state; with beside also what is kept beside the served
// state, in members of their own that are left out where they are zero.
type stateWriter struct {
	writer
	beside bool
	page   PageOptions
	result Page
}

func (w *stateWriter) state(s *State) {
	w.text("id", s.ID)
	w.parent(s.Parent)
	w.text("workflow", s.Workflow)
	w.text("version", s.Version)
	w.text("definition_hash", s.DefinitionHash)
	w.value("input", s.Input)
	w.text("status", string(s.Status))
	w.int("created_at_ms", s.CreatedAtMS)
	w.int("updated_at_ms", s.UpdatedAtMS)
	w.intPtr("finished_at_ms", s.FinishedAtMS)
	w.units(s)
	w.abort(s.Abort)
	if len(s.CompensationOrder) > 0 {
		w.texts("compensation_order", s.CompensationOrder)
	}
	if s.Compensation != nil {
		w.text("compensation", string(*s.Compensation))
	}
	w.valueIf("output", s.Output)
	w.taskErrorPtr("error", s.Error)
	w.signals(s)
	w.handlers(s.Handlers)
	w.uint("last_seq", s.LastSeq)
	if w.beside {
		w.uintIf("unknown", uint64(s.Unknown))
	}
}

func (w *stateWriter) units(s *State) {
	w.name("units")
	start := len(w.buf)
	count, last := 0, ""
	rest := len(s.Input) + len(s.Output)
	for key, u := range s.unitsFrom(w.page.After) {
		if key == w.page.After && key != "" {
			continue
		}
		if count > 0 && w.full(count, len(w.buf)-start+rest) {
			w.result.NextUnitsAfter = last
			break
		}
		w.unit(key, u)
		count, last = count+1, key
	}
	w.buf = w.object(start)
}

func (w *stateWriter) full(count, size int) bool {
	return w.page.Limit > 0 && count >= w.page.Limit || w.page.MaxBytes > 0 && size >= w.page.MaxBytes
}

func (w *stateWriter) unit(key string, u *Unit) {
	w.buf = exactjson.AppendQuoted(append(w.buf, ','), key)
	w.buf = append(w.buf, ':')
	start := len(w.buf)
	if u.Status == UnitPending {
		w.value("status", exactjson.Null)
	} else {
		w.text("status", u.Status.String())
	}
	w.uint("attempt", uint64(u.Attempt))
	w.payload(key, "input", u.Input)
	w.textPtr("idempotency_key", u.IdempotencyKey)
	w.payload(key, "output", u.Output)
	w.failure(key, "error", u.Error)
	w.failure(key, "last_error", u.LastError)
	w.flag("redelivery", u.Redelivery)
	w.intPtr("scheduled_at_ms", u.ScheduledAtMS)
	w.intPtr("dispatched_at_ms", u.DispatchedAtMS)
	w.intPtr("deadline_ms", u.DeadlineMS)
	w.intPtr("wake_at_ms", u.WakeAtMS)
	w.intPtr("finished_at_ms", u.FinishedAtMS)
	w.textPtr("worker_id", u.WorkerID)
	w.textPtr("worker_session", u.WorkerSession)
	w.textPtr("token", u.Token)
	w.tokens(u.Tokens)
	if u.SucceededSeq != nil {
		w.uint("succeeded_seq", *u.SucceededSeq)
	}
	w.uint("dispatch_count", uint64(u.DispatchCount))
	if w.beside {
		w.unitBeside(u)
	}
	w.buf = w.object(start)
}

func (w *stateWriter) unitBeside(u *Unit) {
	w.intIf("failed_at_ms", u.FailedAtMS)
	w.intPtr("retry_after_ms", u.RetryAfterMS)
	w.uintIf("losses", uint64(u.Losses))
	w.flagIf("outcome_unknown", u.OutcomeUnknown)
	w.uintIf("last_dispatch_seq", u.LastDispatchSeq)
	w.textIf("signal", u.Signal)
	w.uintIf("stale_recorded", uint64(u.StaleRecorded))
	w.intIf("progress_at_ms", u.ProgressAtMS)
	w.valueIf("progress", u.Progress)
	w.intIf("items", int64(u.Items))
	w.flagIf("recovered", u.Recovered)
	w.textIf("succeeded_by", u.SucceededBy)
}

// payload writes a value that may be too long to be served.
func (w *stateWriter) payload(key, name string, v exactjson.Value) {
	if w.tooLong(len(v)) {
		w.result.Omitted = append(w.result.Omitted, key+"."+name)
		return
	}
	w.valueIf(name, v)
}

func (w *stateWriter) failure(key, name string, e *TaskError) {
	if e != nil && w.tooLong(len(e.Message)+len(e.Details)) {
		w.result.Omitted = append(w.result.Omitted, key+"."+name)
		return
	}
	w.taskErrorPtr(name, e)
}

func (w *stateWriter) tooLong(size int) bool {
	return w.page.MaxValueBytes > 0 && size > w.page.MaxValueBytes
}

// tokens writes pairs of token and attempt, and beside the served state the
// digest of the failure that the token recorded as a third.
func (w *stateWriter) tokens(tokens []IssuedToken) {
	if len(tokens) == 0 {
		return
	}
	w.name("tokens")
	open := byte('[')
	for _, t := range tokens {
		w.buf = append(w.buf, open, '[')
		open = ','
		w.buf = append(exactjson.AppendQuoted(w.buf, t.Token), ',')
		w.buf = strconv.AppendUint(w.buf, uint64(t.Attempt), 10)
		if w.beside && t.Failure != "" {
			w.buf = exactjson.AppendQuoted(append(w.buf, ','), t.Failure)
		}
		w.buf = append(w.buf, ']')
	}
	w.buf = append(w.buf, ']')
}

func (w *stateWriter) abort(a *Abort) {
	if a == nil {
		return
	}
	w.name("abort")
	start := len(w.buf)
	w.text("kind", string(a.Kind))
	switch a.Kind {
	case AbortFailed:
		w.taskErrorPtr("error", a.Error)
	case AbortCancelled:
		w.text("reason", a.Reason)
	}
	if w.beside {
		w.int("at_ms", a.AtMS)
	}
	w.buf = w.object(start)
}

func (w *stateWriter) signals(s *State) {
	if s.SignalCount() == 0 || w.page.After != "" {
		return
	}
	w.name("signals")
	first, open := len(w.buf), byte('[')
	for signal := range s.Signals() {
		if w.page.MaxBytes > 0 && len(w.buf)-first > w.page.MaxBytes/8 {
			w.result.Omitted = append(w.result.Omitted, fmt.Sprintf("signals[%d:]", signal.Seq))
			break
		}
		w.buf = append(w.buf, open)
		open = ','
		start := len(w.buf)
		w.uint("seq", signal.Seq)
		w.text("name", signal.Name)
		if w.tooLong(len(signal.Payload)) {
			w.result.Omitted = append(w.result.Omitted, fmt.Sprintf("signals[%d].payload", signal.Seq))
		} else {
			w.value("payload", signal.Payload)
		}
		w.int("received_at_ms", signal.ReceivedAtMS)
		w.textPtr("delivered_to", signal.DeliveredTo)
		if w.beside {
			w.textIf("id", signal.ID)
		}
		w.buf = w.object(start)
	}
	w.buf = append(w.buf, ']')
}

func (w *stateWriter) handlers(h *HandlerPhase) {
	if h == nil {
		return
	}
	w.name("handlers")
	start := len(w.buf)
	w.text("kind", h.Kind)
	w.text("compensation", string(h.Compensation))
	w.buf = w.object(start)
}
