package storetest

import (
	"fmt"
	"strings"
	"testing"

	"perigee/store"
)

// texts are payloads that a database might change: none may.
var texts = map[string]string{
	"escaped zero":       `{"a":"\u0000","b":"\ud83d\ude00"}`,
	"emoji":              `{"a":"😀 ä 漢字   "}`,
	"numbers":            `{"a":1.0,"b":1e400,"c":123456789012345678901234567890,"a":-0}`,
	"space and order":    "{ \"b\" : 1,\n\t\"a\":\t2 }",
	"quotes":             `{"a":"it's \"quoted\" \\ % _ ? $1 :x"}`,
	"looks like a date":  `"2024-01-02T03:04:05Z"`,
	"looks like numbers": `0123`,
	"one mebibyte":       `{"a":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}`,
}

var textRules = []rule{
	{"ComesBackAsItWas", func(t *testing.T, s store.Store) {
		for name, text := range texts {
			c := creation(name)
			c.Events[0].Data = text
			c.Snapshot = &store.Snapshot{Seq: 0, Format: 1, Data: text}
			row := readyTask(name, "a", 2)
			row.Input = text
			busy := dispatchedTask(name, "b", "s1", "secret of "+name)
			c.Inserted = []store.Task{row, busy}
			c.Outbox = []store.Message{newMessage("m "+name, name, epoch)}
			c.Outbox[0].Payload = text
			commit(t, s, c)
			equal(t, "reported", true, got(s.Report(t.Context(), store.Report{
				Key: busy.Key, TokenHash: busy.TokenHash, Success: true, Payload: text, NowMS: epoch}))(t))

			loaded := load(t, s, name)
			same := map[string]string{
				"event": loaded.Events[0].Data, "snapshot": loaded.Snapshot.Data, "report": loaded.Reported[0].Payload,
				"input":   got(s.Task(t.Context(), row.Key))(t).Input,
				"message": got(s.Outbox(t.Context(), name, 1))(t)[0].Payload,
				"history": got(s.History(t.Context(), name, 0, 1, 0))(t)[0].Data,
			}
			for where, read := range same {
				if read != text {
					t.Errorf("%s, %s: %d bytes came back as %d, or changed", name, where, len(text), len(read))
				}
			}
		}
	}},
	{"KeysSortByTheirBytes", func(t *testing.T, s store.Store) {
		units := []string{"A", "B", "_", "a", "a-b", "a.b", "aB", "a[10]", "a[2]", "ab", "compensate:a", "z", "ä", "漢", "😀"}
		var rows []store.Task
		for i := range units {
			row := readyTask("e1", units[len(units)-1-i], 2)
			rows = append(rows, row)
		}
		create(t, s, "e1", rows...)
		var sorted []string
		for _, row := range tasksOf(t, s, "e1") {
			sorted = append(sorted, row.Unit)
		}
		equal(t, "by key", units, sorted)
		register(t, s, "s1", epoch)
		sorted = nil
		for _, row := range claim(t, s, poll("s1", "poll-1", len(units), epoch)).Tasks {
			sorted = append(sorted, row.Unit)
		}
		equal(t, "claimed", units, sorted)
	}},
	{"IdsDifferByCase", func(t *testing.T, s store.Store) {
		create(t, s, "Order")
		create(t, s, "order")
		equal(t, "executions", []string{"order", "Order"}, ids(got(s.Executions(t.Context(), store.Filter{Limit: 9}))(t)))
	}},
	{"TagsTakeAnyText", func(t *testing.T, s store.Store) {
		for i, tags := range []map[string]string{{"a": "b=c"}, {"a=b": "c"}, {"k": "it's \"x\" 😀 %"}, {"k": ""}} {
			c := creation(fmt.Sprintf("e%d", i))
			c.Head.Tags = tags
			commit(t, s, c)
			equal(t, "tags", tags, load(t, s, c.Head.ID).Head.Tags)
		}
		for i, tags := range []map[string]string{{"a": "b=c"}, {"a=b": "c"}, {"k": "it's \"x\" 😀 %"}, {"k": ""}} {
			equal(t, "found", []string{fmt.Sprintf("e%d", i)}, ids(got(s.Executions(t.Context(), store.Filter{Tags: tags, Limit: 9}))(t)))
		}
	}},
}
