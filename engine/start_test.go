package engine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
)

func TestStart_RepetitionIsAnsweredAlsoWhereThereIsNoRoomForOneMore(t *testing.T) {
	b := newBench(t, engine.Options{MaxActiveExecutions: 1})
	b.deploy(chain(1))
	b.start("chain", "e", `{}`)
	again, err := b.Start(t.Context(), engine.StartRequest{Workflow: "chain", ExecutionID: "e"})
	if err != nil || again.Created {
		t.Errorf("the same start again: %+v, %v", again, err)
	}
	if _, err := b.Start(t.Context(), engine.StartRequest{Workflow: "chain", ExecutionID: "f"}); engine.CodeOf(err) != engine.ResourceExhausted {
		t.Errorf("one more: %v, want %s", err, engine.ResourceExhausted)
	}
	b.healthy()
}

const parcel = `
name: parcel
version: "1.0.0"
timeout: 1d
input: { type: object, required: [fragile], properties: { to: { type: string }, fragile: { type: boolean } } }
signals: { weighed: { type: object, properties: { grams: { type: number }, by: { type: string } } } }
queries: { price: "1 / 0" }
steps:
  - { id: weigh, await: weighed }
`

// One name for what is wrong with an input, a signal or a definition, so that a
// program reads it in one way.
func TestRefusals_ListEveryFaultInTheirDetails(t *testing.T) {
	b := newBench(t, engine.Options{})
	b.deploy(parcel)
	b.start("parcel", "p", `{"fragile":true}`)
	_, start := b.Start(t.Context(), engine.StartRequest{Workflow: "parcel", Input: `{"to":1}`})
	_, signal := b.Signal(t.Context(), "p", "weighed", `{"grams":"x","by":1}`, "")
	for _, tt := range []struct {
		err  error
		code engine.Code
		want string
	}{
		{start, engine.InvalidInput, `{"faults":[{"path":"","message":"expected the property \"fragile\", which is missing"},{"path":"/to","message":"expected string, got number"}]}`},
		{signal, engine.SignalPayloadInvalid, `{"faults":[{"path":"/by","message":"expected string, got number"},{"path":"/grams","message":"expected number, got string"}]}`},
	} {
		var refused *engine.Error
		if !errors.As(tt.err, &refused) || refused.Code != tt.code {
			t.Errorf("got %v, want %s", tt.err, tt.code)
			continue
		}
		got, err := json.Marshal(refused.Details)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.code, diff)
		}
	}
}

func TestStart_NamesWhatAnIDMayNotHave(t *testing.T) {
	b := newBench(t, engine.Options{})
	b.deploy(parcel)
	for id, want := range map[string]string{
		"a b": "this one has ' ' at byte 1", "a/b": "this one has '/' at byte 1", "tür": "this one has 'ü' at byte 1",
		strings.Repeat("a", 201): "this one has 201 bytes",
	} {
		_, err := b.Start(t.Context(), engine.StartRequest{Workflow: "parcel", ExecutionID: id, Input: `{"fragile":true}`})
		if engine.CodeOf(err) != engine.InvalidExecutionID || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%.10q: got %v, want %s: … %s", id, err, engine.InvalidExecutionID, want)
		}
	}
}

func TestQuery_ThatFailsNamesItselfOnce(t *testing.T) {
	b := newBench(t, engine.Options{})
	b.deploy(parcel)
	b.start("parcel", "p", `{"fragile":true}`)
	_, err := b.Query(t.Context(), "p", "price")
	if want := "QUERY_FAILED: query price: "; err == nil || !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "price") != 1 {
		t.Errorf("got %v, want %s…", err, want)
	}
}
