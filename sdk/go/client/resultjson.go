package client

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// appendResult writes a result by hand: outputs are complete JSON texts
// already, and writing them through a marshaller would read and copy each once
// more.
func appendResult(b []byte, r *Result) ([]byte, error) {
	b = append(b, `{"token":`...)
	b = appendString(b, r.Token)
	if r.Error == nil {
		if r.Output != nil {
			b = append(b, `,"output":`...)
			b = append(b, r.Output...)
		}
		return append(b, '}'), nil
	}
	failure, err := Encode(r.Error)
	if err != nil {
		return nil, fmt.Errorf("encode the failure of a task: %w", err)
	}
	b = append(b, `,"error":`...)
	b = append(b, failure...)
	if r.RetryAfter != nil {
		b = append(b, `,"retry_after_ms":`...)
		b = appendInt(b, r.RetryAfter.Milliseconds())
	}
	return append(b, '}'), nil
}

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

// appendString writes a JSON string. Tokens and session ids are plain ASCII
// and go in as they are.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string cannot fail
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
