package httpapi

import (
	"strconv"

	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// jsonWriter appends JSON. Payloads go in as the text that they are; commas
// are put where the byte before shows that one is due.
type jsonWriter struct{ buf []byte }

func (w *jsonWriter) comma() {
	if n := len(w.buf); n > 0 {
		switch w.buf[n-1] {
		case '{', '[', ':':
		default:
			w.buf = append(w.buf, ',')
		}
	}
}

// open starts an object or array: the whole answer, an element, or the value
// of the member that name was called for.
func (w *jsonWriter) open(bracket byte) {
	w.comma()
	w.buf = append(w.buf, bracket)
}

func (w *jsonWriter) close(bracket byte) { w.buf = append(w.buf, bracket) }

func (w *jsonWriter) name(name string) {
	w.comma()
	w.buf = append(exactjson.AppendQuoted(w.buf, name), ':')
}

func (w *jsonWriter) raw(name, text string) {
	w.name(name)
	w.buf = append(w.buf, text...)
}

// value writes an absent value as null.
func (w *jsonWriter) value(name string, v exactjson.Value) { w.raw(name, string(v.OrNull())) }

func (w *jsonWriter) text(name, s string) {
	w.name(name)
	w.buf = exactjson.AppendQuoted(w.buf, s)
}

func (w *jsonWriter) textIf(name, s string) {
	if s != "" {
		w.text(name, s)
	}
}

func (w *jsonWriter) int(name string, n int64) {
	w.name(name)
	w.buf = strconv.AppendInt(w.buf, n, 10)
}

func (w *jsonWriter) intIf(name string, n int64) {
	if n != 0 {
		w.int(name, n)
	}
}

func (w *jsonWriter) uint(name string, n uint64) {
	w.name(name)
	w.buf = strconv.AppendUint(w.buf, n, 10)
}

func (w *jsonWriter) bool(name string, b bool) {
	w.name(name)
	w.buf = strconv.AppendBool(w.buf, b)
}

func (w *jsonWriter) texts(name string, list []string) {
	w.name(name)
	w.open('[')
	for _, s := range list {
		w.comma()
		w.buf = exactjson.AppendQuoted(w.buf, s)
	}
	w.close(']')
}

func (w *jsonWriter) taskError(name string, e *history.TaskError) {
	w.name(name)
	w.open('{')
	w.text("code", e.Code)
	w.text("message", e.Message)
	w.bool("retryable", e.Retryable)
	if !e.Details.IsNull() {
		w.value("details", e.Details)
	}
	w.close('}')
}
