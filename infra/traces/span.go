package traces

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"perigee/engine"
	"perigee/engine/history"
	"perigee/engine/traceid"
)

// The JSON form of OTLP: ids are hex, kinds and codes numbers, and 64-bit
// numbers texts.
type (
	span struct {
		TraceID      string      `json:"traceId"`
		SpanID       string      `json:"spanId"`
		ParentSpanID string      `json:"parentSpanId,omitempty"`
		Name         string      `json:"name"`
		Kind         int         `json:"kind"`
		Start        string      `json:"startTimeUnixNano"`
		End          string      `json:"endTimeUnixNano"`
		Attributes   []attribute `json:"attributes"`
		Status       *status     `json:"status,omitempty"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string `json:"stringValue,omitempty"`
		Int    string  `json:"intValue,omitempty"`
		Bool   bool    `json:"boolValue,omitempty"`
	}
	status struct {
		Code int `json:"code"`
	}
)

const (
	kindInternal = 1
	kindClient   = 3 // something is asked of another, and waited for
	codeError    = 2
)

// longestValue bounds a text in bytes: workers choose the codes of errors.
const longestValue = 256

// spanOf is the span of something that ended: the execution's own, or one of an
// attempt, whose parent is its execution's. A child execution's is below the
// attempt that it was. error.type is OpenTelemetry's own attribute; it has none
// for workflows, so the others are ours.
func spanOf(e engine.Ended) span {
	s := span{
		TraceID: traceid.Trace(e.RootID), Start: nanoseconds(e.StartMS), End: nanoseconds(max(e.StartMS, e.EndMS)), Kind: kindInternal,
	}
	s.text("perigee.workflow.name", e.Workflow)
	s.text("perigee.workflow.version", e.WorkflowVersion)
	s.text("perigee.execution.id", e.ExecutionID)
	if e.Attempt != nil {
		s.attempt(e)
	} else {
		s.execution(e)
	}
	return s
}

func (s *span) execution(e engine.Ended) {
	s.SpanID, s.Name = traceid.Execution(e.ExecutionID), e.Workflow
	s.text("perigee.execution.status", string(e.Status))
	// A child from before roots were known is alone in its trace.
	if e.Parent != nil && e.RootID != e.ExecutionID {
		s.ParentSpanID = traceid.Attempt(e.Parent.ExecutionID, e.Parent.Step, childAttempt)
		s.text("perigee.parent.execution.id", e.Parent.ExecutionID)
	}
	switch e.Status {
	case history.Failed:
		s.failed(e.ErrorCode)
	case history.TimedOut:
		s.failed(string(e.Status))
	}
}

// childAttempt is the attempt that a child execution is: a `workflow` step is
// never tried again.
const childAttempt = 1

func (s *span) attempt(e engine.Ended) {
	a := e.Attempt
	s.SpanID, s.ParentSpanID = traceid.Attempt(e.ExecutionID, a.Unit, a.Number), traceid.Execution(e.ExecutionID)
	s.Name = nameOf(a.Unit)
	if !a.Child {
		s.Kind = kindClient
		s.text("perigee.task.name", a.Calls)
		s.text("perigee.worker.id", a.WorkerID)
	}
	s.text("perigee.unit", a.Unit)
	s.number("perigee.attempt.number", int64(a.Number))
	s.text("perigee.attempt.outcome", string(a.Outcome))
	if a.Redelivery {
		s.Attributes = append(s.Attributes, attribute{"perigee.attempt.redelivery", value{Bool: true}})
	}
	if a.Outcome == engine.AttemptFailed {
		s.failed(e.ErrorCode)
	}
}

// nameOf is a unit without its index: names of spans are few.
func nameOf(unit string) string {
	if history.ParseKey(unit).Index >= 0 {
		return unit[:strings.LastIndexByte(unit, '[')]
	}
	return unit
}

// failed marks an error by its code. Its message might hold anything.
func (s *span) failed(code string) {
	s.Status = &status{codeError}
	s.text("error.type", code)
}

// text adds an attribute that says something.
func (s *span) text(key, text string) {
	if text == "" {
		return
	}
	if len(text) > longestValue {
		end := longestValue
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	s.Attributes = append(s.Attributes, attribute{key, value{String: &text}})
}

func (s *span) number(key string, n int64) {
	s.Attributes = append(s.Attributes, attribute{key, value{Int: strconv.FormatInt(n, 10)}})
}

func nanoseconds(ms int64) string {
	return strconv.FormatInt(ms*int64(time.Millisecond), 10)
}

// request is the body of a call: spans that are JSON already, and who sends them.
func request(namespace string, spans []json.RawMessage) ([]byte, error) {
	resource := span{}
	resource.text("service.name", "perigee")
	resource.text("service.namespace", namespace)
	type object = map[string]any
	return json.Marshal(object{"resourceSpans": []object{{
		"resource":   object{"attributes": resource.Attributes},
		"scopeSpans": []object{{"scope": object{"name": "perigee"}, "spans": spans}},
	}}})
}
