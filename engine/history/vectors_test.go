package history_test

import (
	"bufio"
	"bytes"
	"os"
	"testing"

	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// vector is a history and the state that the public ORBIT fold made of it.
type vector struct {
	id      string
	text    []exactjson.Value // the events, each in its full JSON form
	records []history.Record
	state   exactjson.Value
}

func vectors(tb testing.TB) []vector {
	tb.Helper()
	file, err := os.ReadFile("testdata/fold.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	var list []vector
	lines := bufio.NewScanner(bytes.NewReader(file))
	lines.Buffer(nil, len(file)+1)
	for lines.Scan() {
		line, err := exactjson.Parse(lines.Bytes())
		if err != nil {
			tb.Fatal(err)
		}
		v := vector{state: line.Get("state")}
		v.id, _ = line.Get("id").Text()
		for event := range line.Get("history").Elements() {
			r, err := history.DecodeRecord([]byte(event))
			if err != nil {
				tb.Fatal(err)
			}
			v.text, v.records = append(v.text, event), append(v.records, r)
		}
		list = append(list, v)
	}
	if len(list) != 150 {
		tb.Fatalf("expected 150 vectors, got %d", len(list))
	}
	return list
}

func TestFold_EveryVectorGivesItsState(t *testing.T) {
	for _, v := range vectors(t) {
		got := exactjson.Value(history.Fold(v.id, v.records).AppendJSON(nil))
		if !exactjson.Equal(v.state, got) {
			t.Errorf("%s: want\n%s\ngot\n%s", v.id, v.state, got)
		}
	}
}

func TestCodec_EveryVectorIsWrittenAsItWasRead(t *testing.T) {
	for _, v := range vectors(t) {
		for i, r := range v.records {
			full := exactjson.Value(history.AppendEvent(nil, r))
			fields := string(history.AppendFields(nil, r.Event))
			stored := exactjson.Value(history.AppendStored(nil, r.Seq, r.TimestampMS, string(r.Event.Type()), fields))
			if full != stored {
				t.Errorf("%s, event %d: AppendEvent and AppendStored differ:\n%s\n%s", v.id, r.Seq, full, stored)
			}
			if !exactjson.Equal(withoutNullDetails(v.text[i]), full) {
				t.Errorf("%s, event %d: want\n%s\ngot\n%s", v.id, r.Seq, v.text[i], full)
			}
		}
	}
}

// withoutNullDetails drops the one thing that is not written back: null details
// of an error, which mean the same as none.
func withoutNullDetails(v exactjson.Value) exactjson.Value {
	var members []exactjson.Member
	for key, m := range v.Members() {
		if key == "error" && m.Get("details") == exactjson.Null {
			m = exactjson.Value(bytes.Replace([]byte(m), []byte(`,"details":null`), nil, 1))
		}
		members = append(members, exactjson.Member{Key: key, Value: m})
	}
	return exactjson.Object(members)
}
