package history_test

import (
	"fmt"
	"testing"

	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// stored is an event as a store gives it.
type stored struct {
	seq    uint64
	at     int64
	typ    history.Type
	fields string
}

// storedRun is the history of n tasks in a row, in the form of a store. Every
// result and what it made ready were one commit, with one time.
func storedRun(n int) (events []stored, size int) {
	at := int64(1790000000000)
	add := func(e history.Event) {
		fields := string(history.AppendFields(nil, e))
		size += len(fields)
		switch e.(type) {
		case history.StepSucceeded, history.StepAttemptFailed:
			at += 250
		}
		events = append(events, stored{uint64(len(events) + 1), at, e.Type(), fields})
	}
	payload := exactjson.Value(`{"order_id":"ord_01HF7ZK3","customer":{"id":"cus_8812","email":"jo@example.org","name":"Jo Example"},` +
		`"items":[{"sku":"A-1","count":2,"price":499.5},{"sku":"B-22","count":1,"price":250.95}],"total":1249.95,` +
		`"address":{"street":"Main Street 1","city":"Springfield","zip":"12345"},"note":"please leave it at the door"}`)
	token := func(i int) string { return fmt.Sprintf("%064x", i) }
	deadline := int64(1790000300000)
	add(history.WorkflowCreated{Workflow: "order", Version: "1.0.0", DefinitionHash: "sha256:" + token(0), Input: payload})
	add(history.WorkflowStarted{})
	for i := range n {
		step := fmt.Sprintf("step-%03d", i)
		add(history.StepScheduled{Step: step, Attempt: 1, Input: payload, IdempotencyKey: "order-4711/" + step})
		add(history.StepDispatched{Step: step, Attempt: 1, Token: token(i), WorkerID: "worker-7", WorkerSession: token(7), DeadlineMS: &deadline})
		if i%10 == 0 {
			add(history.StepAttemptFailed{Step: step, Attempt: 1, Token: token(i), Error: history.TaskError{Code: "UNAVAILABLE", Message: "try again", Retryable: true}})
			add(history.RetryScheduled{Step: step, NextAttempt: 2, DelayMS: 1000, FireAtMS: 1790000001000})
			add(history.StepScheduled{Step: step, Attempt: 2, Input: payload, IdempotencyKey: "order-4711/" + step})
			add(history.StepDispatched{Step: step, Attempt: 2, Token: token(i + n), WorkerID: "worker-7", WorkerSession: token(7), DeadlineMS: &deadline})
		}
		add(history.StepSucceeded{Step: step, Attempt: 1, Output: payload, Token: token(i)})
	}
	return events, size
}

func decodeRun(b *testing.B, events []stored, each func(history.Record)) {
	for _, e := range events {
		event, err := history.DecodeFields(e.typ, e.fields)
		if err != nil {
			b.Fatal(err)
		}
		each(history.Record{Seq: e.seq, TimestampMS: e.at, Event: event})
	}
}

func benchmarkRun(b *testing.B, run func(events []stored)) {
	events, size := storedRun(300)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		run(events)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
}

// BenchmarkDecode and BenchmarkFold read the same bytes; the rule is that the
// fold, decoding included, takes at most 1.3 times as long.
func BenchmarkDecode(b *testing.B) {
	benchmarkRun(b, func(events []stored) {
		records := make([]history.Record, 0, len(events))
		decodeRun(b, events, func(r history.Record) { records = append(records, r) })
	})
}

func BenchmarkFold(b *testing.B) {
	benchmarkRun(b, func(events []stored) {
		records := make([]history.Record, 0, len(events))
		decodeRun(b, events, func(r history.Record) { records = append(records, r) })
		history.Fold("order-4711", records)
	})
}

// BenchmarkApply is one event on a warm state of many units, as a call does it:
// clone, apply, throw away.
func BenchmarkApply(b *testing.B) {
	s := wide(10_000)
	event := history.StepCancelled{Step: history.ElementKey("each", 5000)}
	b.ReportAllocs()
	for b.Loop() {
		s.Clone().Apply(history.Record{Seq: 20_000, TimestampMS: 5, Event: event})
	}
}

func BenchmarkDecodeRecord(b *testing.B) {
	text := history.AppendEvent(nil, history.Record{Seq: 7, TimestampMS: 1790000000000, Event: history.StepSucceeded{
		Step: "charge", Attempt: 1, Output: `{"id":"ch_123","amount":129900}`, Token: fmt.Sprintf("%064x", 1),
	}})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := history.DecodeRecord(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFoldOnly folds records that are decoded already.
func BenchmarkFoldOnly(b *testing.B) {
	var records []history.Record
	events, _ := storedRun(300)
	decodeRun(b, events, func(r history.Record) { records = append(records, r) })
	benchmarkRun(b, func([]stored) { history.Fold("order-4711", records) })
}

// wide is a state with n elements of one step, all succeeded.
func wide(n int) *history.State {
	s := history.New("wide")
	s.Apply(history.Record{Seq: 1, Event: history.StepFanOut{Step: "each", Items: make([]exactjson.Value, n)}})
	for i := range n {
		s.Apply(history.Record{Seq: uint64(i + 2), TimestampMS: 5, Event: history.StepSucceeded{
			Step: history.ElementKey("each", i), Attempt: 1, Output: `{"id":"ch_123","amount":129900}`,
		}})
	}
	return s
}

// BenchmarkReadSnapshot is what a cold call pays beside the tail.
func BenchmarkReadSnapshot(b *testing.B) {
	text := string(wide(10_000).AppendSnapshot(nil))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := history.ReadSnapshot(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendSnapshot(b *testing.B) {
	s := wide(10_000)
	text := s.AppendSnapshot(nil)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		text = s.AppendSnapshot(text[:0])
	}
}

func TestApply_CostsTheSameHoweverManyUnitsThereAre(t *testing.T) {
	for _, n := range []int{1, 10_000} {
		s := wide(n).Clone()
		r := history.Record{Seq: uint64(n + 2), TimestampMS: 9, Event: history.StepCancelled{Step: "each[0]"}}
		s.Apply(r) // copies the way to the unit, once after a Clone
		if got := testing.AllocsPerRun(100, func() { s.Apply(r) }); got > 1 {
			t.Errorf("%d units: expected one allocation, the copy of the unit, got %v", n, got)
		}
	}
}
