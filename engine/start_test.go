package engine_test

import (
	"testing"

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
