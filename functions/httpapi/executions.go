package httpapi

import (
	"maps"
	"net/http"
	"slices"

	"perigee/engine"
	"perigee/engine/history"
	"perigee/store"
)

// Paging of a state: units in one answer, and how long a value of a unit may be
// before it is left out and named instead.
const (
	maxStateUnits     = 1000
	maxUnitValueBytes = 256 << 10
)

func (s *server) startExecution(c *call) (answer, error) {
	in, err := c.object()
	if err != nil {
		return answer{}, err
	}
	req := engine.StartRequest{
		Workflow:    in.needText("workflow"),
		Version:     in.text("version"),
		Input:       in.value("input"),
		ExecutionID: in.text("execution_id"),
		Tags:        in.textMap("tags"),
		Wait:        s.wait(in.millis("wait_ms", 0)),
	}
	if err := firstError(in.done(), c.query().done()); err != nil {
		return answer{}, err
	}
	started, err := s.Engine.Start(c.Context(), req)
	if err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.open('{')
	w.text("execution_id", started.ExecutionID)
	w.bool("created", started.Created)
	if st := started.State; st != nil && st.Status.Terminal() {
		w.text("status", string(st.Status))
		switch {
		case st.Status == history.Completed:
			w.value("output", st.Output)
		case st.Error != nil:
			w.taskError("error", st.Error)
		}
	}
	w.close('}')
	return answer{status: createdOr200(started.Created), body: w.buf}, nil
}

// executionStatuses are what ?status may name.
var executionStatuses = []string{
	string(history.Running), string(history.Compensating), string(history.Completed),
	string(history.Failed), string(history.Cancelled), string(history.TimedOut),
}

func (s *server) listExecutions(c *call) (answer, error) {
	q := c.query()
	req := engine.ListRequest{
		Status:          q.choice("status", executionStatuses...),
		Workflow:        q.text("workflow"),
		Version:         q.text("version"),
		Parent:          q.text("parent"),
		Tags:            q.prefixed("tag."),
		CreatedAfterMS:  q.count("created_after", 0, maxMoment, 0),
		CreatedBeforeMS: q.count("created_before", 0, maxMoment, 0),
		Limit:           int(q.count("limit", 1, maxPageLimit, defaultListLimit)),
		Cursor:          q.text("cursor"),
	}
	if err := q.done(); err != nil {
		return answer{}, err
	}
	page, err := s.Engine.List(c.Context(), req)
	if err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.open('{')
	w.name("executions")
	w.open('[')
	for i := range page.Executions {
		w.head(&page.Executions[i])
	}
	w.close(']')
	w.textIf("next_cursor", page.NextCursor)
	w.close('}')
	return answer{body: w.buf}, nil
}

// maxMoment is the largest moment that JSON readers with doubles read exactly.
const maxMoment = 1<<53 - 1

// head writes an execution as lists show it.
func (w *jsonWriter) head(h *store.Head) {
	w.open('{')
	w.text("execution_id", h.ID)
	w.text("workflow", h.Workflow)
	w.text("version", h.Version)
	w.text("definition_hash", h.DefinitionHash)
	w.text("status", h.Status)
	w.int("created_at_ms", h.CreatedAtMS)
	w.int("updated_at_ms", h.LastAtMS)
	w.intIf("finished_at_ms", h.FinishedAtMS)
	w.intIf("due_at_ms", h.DueAtMS)
	w.intIf("error_count", int64(h.ErrorCount))
	if h.ParentID != "" {
		w.name("parent")
		w.open('{')
		w.text("execution_id", h.ParentID)
		w.text("step", h.ParentStep)
		w.close('}')
	}
	w.name("tags")
	w.open('{')
	for _, key := range slices.Sorted(maps.Keys(h.Tags)) {
		w.text(key, h.Tags[key])
	}
	w.close('}')
	w.uint("last_seq", h.LastSeq)
	w.close('}')
}

// statePage reads which units of a state are asked for.
func (q *query) statePage() history.PageOptions {
	return history.PageOptions{
		After:         q.text("units_after"),
		Limit:         int(q.count("limit", 1, maxStateUnits, maxStateUnits)),
		MaxBytes:      maxAnswerBytes,
		MaxValueBytes: maxUnitValueBytes,
	}
}

func stateAnswer(st *history.State, page history.PageOptions) answer {
	body, _ := st.AppendJSONPage(nil, page)
	return answer{body: body}
}

func (s *server) getExecution(c *call) (answer, error) {
	q := c.query()
	page, wait := q.statePage(), q.millis("wait_ms")
	if err := q.done(); err != nil {
		return answer{}, err
	}
	st, err := s.Engine.Execution(c.Context(), c.PathValue("id"), s.wait(wait))
	if err != nil {
		return answer{}, err
	}
	return stateAnswer(st, page), nil
}

func (s *server) cancelExecution(c *call) (answer, error) {
	in, err := c.object()
	if err != nil {
		return answer{}, err
	}
	reason := in.prose("reason")
	q := c.query()
	page := q.statePage()
	if err := firstError(in.done(), q.done()); err != nil {
		return answer{}, err
	}
	st, err := s.Engine.Cancel(c.Context(), c.PathValue("id"), reason)
	if err != nil {
		return answer{}, err
	}
	return stateAnswer(st, page), nil
}

func (s *server) getHistory(c *call) (answer, error) {
	q := c.query()
	req := engine.HistoryRequest{
		ExecutionID: c.PathValue("id"),
		AfterSeq:    uint64(q.count("after_seq", 0, maxMoment, 0)),
		Limit:       int(q.count("limit", 1, maxPageLimit, maxPageLimit)),
		Wait:        s.wait(q.millis("wait_ms")),
	}
	if err := q.done(); err != nil {
		return answer{}, err
	}
	page, err := s.Engine.History(c.Context(), req)
	if err != nil {
		return answer{}, err
	}
	return answer{body: appendHistory(nil, page)}, nil
}

// appendHistory ends a page before it grows too large; one event always fits.
func appendHistory(dst []byte, page engine.HistoryPage) []byte {
	w := jsonWriter{dst}
	w.open('{')
	w.name("events")
	w.open('[')
	next := page.NextAfterSeq
	for i, e := range page.Events {
		if i > 0 && len(w.buf)+len(e.Data) > maxAnswerBytes {
			next = page.Events[i-1].Seq
			break
		}
		w.comma()
		w.buf = history.AppendStored(w.buf, e.Seq, e.AtMS, e.Type, e.Data)
	}
	w.close(']')
	if next != 0 {
		w.uint("next_after_seq", next)
	}
	w.close('}')
	return w.buf
}

func (s *server) sendSignal(c *call) (answer, error) {
	in, err := c.object()
	if err != nil {
		return answer{}, err
	}
	payload, signalID := in.value("payload"), in.text("signal_id")
	if err := firstError(in.done(), c.query().done()); err != nil {
		return answer{}, err
	}
	seq, err := s.Engine.Signal(c.Context(), c.PathValue("id"), c.PathValue("name"), payload, signalID)
	if err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.open('{')
	w.uint("seq", seq)
	w.close('}')
	return answer{status: http.StatusAccepted, body: w.buf}, nil
}

func (s *server) queryExecution(c *call) (answer, error) {
	if err := c.query().done(); err != nil {
		return answer{}, err
	}
	result, err := s.Engine.Query(c.Context(), c.PathValue("id"), c.PathValue("name"))
	if err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.open('{')
	w.value("result", result)
	w.close('}')
	return answer{body: w.buf}, nil
}
