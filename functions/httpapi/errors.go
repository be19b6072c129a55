package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"perigee/engine"
)

// Codes that only HTTP knows.
const (
	methodNotAllowed     engine.Code = "METHOD_NOT_ALLOWED"
	unsupportedMediaType engine.Code = "UNSUPPORTED_MEDIA_TYPE"
)

// statuses maps each code to its HTTP status; docs/errors.md shows the same.
var statuses = map[engine.Code]int{
	engine.InvalidRequest:       http.StatusBadRequest,
	engine.InvalidInput:         http.StatusBadRequest,
	engine.InvalidExecutionID:   http.StatusBadRequest,
	engine.InvalidDefinition:    http.StatusBadRequest,
	engine.ChildNotRegistered:   http.StatusBadRequest,
	engine.ReservedTask:         http.StatusBadRequest,
	engine.Unauthenticated:      http.StatusUnauthorized,
	engine.Forbidden:            http.StatusForbidden,
	engine.NotFound:             http.StatusNotFound,
	engine.WorkflowNotFound:     http.StatusNotFound,
	engine.UnknownSignal:        http.StatusNotFound,
	engine.UnknownQuery:         http.StatusNotFound,
	engine.UnknownSession:       http.StatusNotFound,
	methodNotAllowed:            http.StatusMethodNotAllowed,
	engine.DefinitionConflict:   http.StatusConflict,
	engine.ExecutionExists:      http.StatusConflict,
	engine.ExecutionFinished:    http.StatusConflict,
	engine.SignalExists:         http.StatusConflict,
	engine.Conflict:             http.StatusConflict,
	engine.PayloadTooLarge:      http.StatusRequestEntityTooLarge,
	unsupportedMediaType:        http.StatusUnsupportedMediaType,
	engine.SignalPayloadInvalid: http.StatusUnprocessableEntity,
	engine.QueryFailed:          http.StatusUnprocessableEntity,
	engine.ResourceExhausted:    http.StatusTooManyRequests,
	engine.Internal:             http.StatusInternalServerError,
	engine.Unavailable:          http.StatusServiceUnavailable,
	engine.NewerHistory:         http.StatusServiceUnavailable,
}

// StatusOf is the HTTP status of a code, 500 for one that it does not know.
func StatusOf(code engine.Code) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

func errorf(code engine.Code, format string, args ...any) *engine.Error {
	return &engine.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// refuse answers with an error. What has no code of its own is INTERNAL, and
// its text stays in the log.
func (s *server) refuse(x *exchange, r *http.Request, err error) {
	e := coded(err)
	x.err = e
	status := StatusOf(e.Code)
	h := x.Header()
	switch status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="perigee"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		h.Set("Retry-After", strconv.FormatInt(retryAfterSeconds(e.RetryAfter), 10))
	}
	x.write(r, answer{status: status, body: appendError(nil, e)})
}

// coded finds the *engine.Error in err, or makes one.
func coded(err error) *engine.Error {
	var e *engine.Error
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &engine.Error{Code: engine.Unavailable, Message: "the call ran out of time before it was done; repeat it with the same ids", Cause: err}
	}
	return &engine.Error{Code: engine.Internal, Message: "something went wrong on the server's side; its log has the cause under this x-request-id", Cause: err}
}

func causeOf(err error) string {
	var e *engine.Error
	if errors.As(err, &e) && e.Cause != nil {
		return e.Cause.Error()
	}
	return ""
}

// retryAfterSeconds rounds up: coming early would be in vain.
func retryAfterSeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

func appendError(dst []byte, e *engine.Error) []byte {
	w := jsonWriter{dst}
	w.open('{')
	w.text("code", string(e.Code))
	w.text("message", e.Message)
	if e.Details != nil {
		if text, err := marshal(e.Details); err == nil {
			w.raw("details", text)
		}
	}
	w.close('}')
	return w.buf
}

// marshal is json.Marshal without the escapes meant for HTML.
func marshal(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}
