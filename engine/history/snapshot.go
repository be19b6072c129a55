package history

import (
	"errors"
	"fmt"

	"perigee/engine/exactjson"
)

// Format is the number of the fold and of its snapshots. It is raised whenever
// the same history folds to something else than before, or is written
// differently; snapshots of another format are of no use then.
const Format = 1

// ErrFormat is what ReadSnapshot gives for a snapshot of another format: ignore
// it and fold from the start.
var ErrFormat = errors.New("snapshot of another format")

// AppendSnapshot appends everything that s holds: the served form and, in
// further members, what is kept beside it.
func (s *State) AppendSnapshot(dst []byte) []byte {
	start := len(dst)
	w := stateWriter{writer: writer{dst}, beside: true}
	w.int("format", Format)
	w.state(s)
	return w.object(start)
}

// ReadSnapshot reads what AppendSnapshot wrote; payloads are slices of text.
// The error wraps ErrFormat for a snapshot of another format. Callers ignore a
// snapshot that gives an error, whichever it is, and fold the whole history.
func ReadSnapshot(text string) (*State, error) {
	v := exactjson.Value(text)
	if got := braced(v).Get("format"); got != exactjson.FromInt(Format) {
		return nil, fmt.Errorf("read snapshot: %w: expected %d, got %.20q", ErrFormat, Format, string(got))
	}
	r := stateReader{state: New("")}
	for name, v := range braced(v).Members() {
		r.member(name, v)
	}
	if r.err != nil {
		return nil, fmt.Errorf("read snapshot: %w", r.err)
	}
	return r.state, nil
}

type stateReader struct {
	reader
	state *State
}

func (r *stateReader) member(name string, v exactjson.Value) {
	s := r.state
	switch name {
	case "id":
		s.ID = r.text(name, v)
	case "parent":
		s.Parent = r.parent(name, v)
	case "workflow":
		s.Workflow = r.text(name, v)
	case "version":
		s.Version = r.text(name, v)
	case "definition_hash":
		s.DefinitionHash = r.text(name, v)
	case "input":
		s.Input = v
	case "status":
		s.Status = Status(r.text(name, v))
	case "created_at_ms":
		s.CreatedAtMS = r.int64(name, v)
	case "updated_at_ms":
		s.UpdatedAtMS = r.int64(name, v)
	case "finished_at_ms":
		s.FinishedAtMS = r.intPtr(name, v)
	case "units":
		for key, v := range r.object(name, v).Members() {
			r.unit(key, v)
		}
	case "abort":
		s.Abort = r.abort(name, v)
	case "compensation_order":
		s.CompensationOrder = r.texts(name, v)
	case "compensation":
		s.Compensation = new(CompensationOutcome(r.text(name, v)))
	case "output":
		s.Output = v
	case "error":
		s.Error = r.taskErrorPtr(name, v)
	case "signals":
		for _, v := range r.values(name, v) {
			r.signal(name, v)
		}
	case "handlers":
		s.Handlers = r.handlers(name, v)
	case "last_seq":
		s.LastSeq = r.uint64(name, v)
	case "unknown":
		s.Unknown = int(r.uint32(name, v))
	}
}

func (r *stateReader) unit(key string, v exactjson.Value) {
	u := &unit{}
	for name, v := range r.object(key, v).Members() {
		r.unitMember(&u.Unit, name, v)
	}
	r.state.units.Load(key, u) // quick for keys in order, as these are
}

func (r *stateReader) unitMember(u *Unit, name string, v exactjson.Value) {
	switch name {
	case "status":
		u.Status = r.unitStatus(name, v)
	case "attempt":
		u.Attempt = r.uint32(name, v)
	case "input":
		u.Input = v
	case "idempotency_key":
		u.IdempotencyKey = r.textPtr(name, v)
	case "output":
		u.Output = v
	case "error":
		u.Error = r.taskErrorPtr(name, v)
	case "last_error":
		u.LastError = r.taskErrorPtr(name, v)
	case "redelivery":
		u.Redelivery = r.flag(name, v)
	case "scheduled_at_ms":
		u.ScheduledAtMS = r.intPtr(name, v)
	case "dispatched_at_ms":
		u.DispatchedAtMS = r.intPtr(name, v)
	case "deadline_ms":
		u.DeadlineMS = r.intPtr(name, v)
	case "wake_at_ms":
		u.WakeAtMS = r.intPtr(name, v)
	case "finished_at_ms":
		u.FinishedAtMS = r.intPtr(name, v)
	case "worker_id":
		u.WorkerID = r.textPtr(name, v)
	case "worker_session":
		u.WorkerSession = r.textPtr(name, v)
	case "token":
		u.Token = r.textPtr(name, v)
	case "tokens":
		u.Tokens = r.tokens(name, v)
	case "succeeded_seq":
		u.SucceededSeq = r.uintPtr(name, v)
	case "dispatch_count":
		u.DispatchCount = r.uint32(name, v)
	default:
		r.besideMember(u, name, v)
	}
}

func (r *stateReader) besideMember(u *Unit, name string, v exactjson.Value) {
	switch name {
	case "failed_at_ms":
		u.FailedAtMS = r.int64(name, v)
	case "retry_after_ms":
		u.RetryAfterMS = r.intPtr(name, v)
	case "losses":
		u.Losses = r.uint32(name, v)
	case "outcome_unknown":
		u.OutcomeUnknown = r.flag(name, v)
	case "last_dispatch_seq":
		u.LastDispatchSeq = r.uint64(name, v)
	case "signal":
		u.Signal = r.text(name, v)
	case "stale_recorded":
		u.StaleRecorded = r.uint32(name, v)
	case "progress_at_ms":
		u.ProgressAtMS = r.int64(name, v)
	case "progress":
		u.Progress = v
	case "items":
		u.Items = int(r.uint32(name, v))
	case "recovered":
		u.Recovered = r.flag(name, v)
	case "succeeded_by":
		u.SucceededBy = r.text(name, v)
	}
}

func (r *stateReader) unitStatus(name string, v exactjson.Value) UnitStatus {
	text := r.text(name, v)
	if text == "" {
		return UnitPending
	}
	for status := range unitStatusNames {
		if unitStatusNames[status] == text {
			return UnitStatus(status)
		}
	}
	r.fault(name, "the status of a unit", v)
	return UnitPending
}

func (r *stateReader) tokens(name string, v exactjson.Value) []IssuedToken {
	list := make([]IssuedToken, 0, v.Len())
	for _, v := range r.values(name, v) {
		part := r.values(name, v)
		if len(part) < 2 {
			r.fault(name, "pairs of token and attempt", v)
			return nil
		}
		t := IssuedToken{Token: r.text(name, part[0]), Attempt: r.uint32(name, part[1])}
		if len(part) > 2 {
			t.Failure = r.text(name, part[2])
		}
		list = append(list, t)
	}
	return list
}

func (r *stateReader) abort(name string, v exactjson.Value) *Abort {
	a := &Abort{}
	for name, v := range r.object(name, v).Members() {
		switch name {
		case "kind":
			a.Kind = AbortKind(r.text(name, v))
		case "error":
			a.Error = r.taskErrorPtr(name, v)
		case "reason":
			a.Reason = r.text(name, v)
		case "at_ms":
			a.AtMS = r.int64(name, v)
		}
	}
	return a
}

func (r *stateReader) signal(name string, v exactjson.Value) {
	signal := &Signal{}
	for name, v := range r.object(name, v).Members() {
		switch name {
		case "seq":
			signal.Seq = r.uint64(name, v)
		case "name":
			signal.Name = r.text(name, v)
		case "payload":
			signal.Payload = v
		case "received_at_ms":
			signal.ReceivedAtMS = r.int64(name, v)
		case "delivered_to":
			signal.DeliveredTo = r.textPtr(name, v)
		case "id":
			signal.ID = r.text(name, v)
		}
	}
	r.state.addSignal(signal)
}

func (r *stateReader) handlers(name string, v exactjson.Value) *HandlerPhase {
	h := &HandlerPhase{}
	for name, v := range r.object(name, v).Members() {
		switch name {
		case "kind":
			h.Kind = r.text(name, v)
		case "compensation":
			h.Compensation = CompensationOutcome(r.text(name, v))
		}
	}
	return h
}
