package engine_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"perigee/engine"
)

func TestError_ItsCauseReachesTheLogAlone(t *testing.T) {
	err := &engine.Error{Code: engine.Unavailable, Message: "come again", Cause: errors.New("connection refused")}
	if strings.Contains(err.Error(), "refused") {
		t.Errorf("the caller reads %q", err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Error("the tick failed", "error", err)
	for _, part := range []string{"UNAVAILABLE", "come again", "connection refused"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %q: %s", part, log.String())
		}
	}
}

func TestPoll_OfACallerThatHungUpIsNoFaultOfTheServer(t *testing.T) {
	b := newBench(t, engine.Options{})
	session := b.register("a.step")
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, err := b.Poll(ctx, engine.PollRequest{SessionID: session}); err != nil && engine.CodeOf(err) != engine.Unavailable {
		t.Errorf("got %v, want nothing or %s", err, engine.Unavailable)
	}
}
