package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"perigee/engine"
)

// TestRun_LooksWhenSomethingIsDue measures in the time of a bubble, which only
// passes while everybody waits.
func TestRun_LooksWhenSomethingIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, engine.Options{
			SessionTimeout: 400 * time.Millisecond, HeartbeatInterval: 100 * time.Millisecond, HoldPolls: true,
			Clock: func() int64 { return time.Now().UnixMilli() },
		})
		b.deploy(chain(1))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- b.Run(ctx) }()
		time.Sleep(50 * time.Millisecond) // the loop sleeps for a second now, as nothing is due
		b.start("chain", "e", `{}`)
		b.poll(b.register("a.step"))
		begin := time.Now()
		page, err := b.History(t.Context(), engine.HistoryRequest{ExecutionID: "e", AfterSeq: 4, Wait: 10 * time.Second})
		if err != nil || len(page.Events) == 0 || page.Events[0].Type != "StepAttemptUncertain" {
			t.Fatalf("%+v, %v", page, err)
		}
		// Silent for the session's time-out, then suspect for two intervals.
		if got, want := time.Since(begin), 600*time.Millisecond; got < want || got > want+10*time.Millisecond {
			t.Errorf("the worker was found lost after %v, want %v", got, want)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
