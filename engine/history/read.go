package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"perigee/engine/exactjson"
)

// maxLine is the length that a line of a history may have in bytes.
const maxLine = 64 << 20

// ReadHistory reads a history as it is kept in files, in any of three forms: a
// JSON array of events, an object {"id", "history"} (or "events", as the API
// serves it, and then "id" or "execution_id" if there is one), or JSON lines,
// an event each. Events are in their full form, see DecodeRecord. The id is ""
// where the form has none.
func ReadHistory(r io.Reader) (id string, records []Record, err error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return "", nil, fmt.Errorf("read history: %w", err)
	}
	id, records, err = parseHistory(text)
	if err != nil {
		return "", nil, fmt.Errorf("read history: %w", err)
	}
	return id, records, nil
}

func parseHistory(text []byte) (id string, records []Record, err error) {
	whole, fault := exactjson.ParseDepth(text, maxDepth+2)
	switch {
	case fault != nil:
		// Several values are lines; any other fault shows itself there too.
		records, err = parseLines(text, fault)
		return "", records, err
	case whole.Kind() == exactjson.KindArray:
		records, err = decodeEvents(whole)
		return "", records, err
	case whole.Kind() != exactjson.KindObject:
		return "", nil, fmt.Errorf("expected an array of events, an object with a history or a line for each event, got %s", whole.Kind())
	}
	for _, name := range []string{"history", "events"} {
		if list := whole.Get(name); list.Kind() == exactjson.KindArray {
			id, _ = whole.Get("id").Text()
			if id == "" {
				id, _ = whole.Get("execution_id").Text()
			}
			records, err = decodeEvents(list)
			return id, records, err
		}
	}
	one, err := decodeRecord(whole)
	if err != nil {
		return "", nil, err
	}
	return "", []Record{one}, nil
}

func decodeEvents(list exactjson.Value) ([]Record, error) {
	records := make([]Record, 0, list.Len())
	for v := range list.Elements() {
		r, err := decodeRecord(v)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", len(records), err)
		}
		records = append(records, r)
	}
	return records, nil
}

// parseLines reads one event a line. A text whose first line is not a value of
// its own is no such text: then whole, the fault of the text, is the answer.
func parseLines(text []byte, whole error) ([]Record, error) {
	var records []Record
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		r, err := DecodeRecord(line)
		if err != nil {
			if syntax := (*exactjson.SyntaxError)(nil); len(records) == 0 && errors.As(err, &syntax) {
				return nil, whole
			}
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		records = append(records, r)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, whole
	}
	return records, nil
}
