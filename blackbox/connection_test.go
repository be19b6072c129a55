package blackbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"perigee/sdk/go/client"
)

// TestHangUp_IsNoFailure: newEnv asserts that nothing is logged as an error.
func TestHangUp_IsNoFailure(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(oneStep)
		id := e.start("one", "", "")
		session := e.register("w", "a.other")
		calls := map[string]func(context.Context) error{
			"poll": func(ctx context.Context) error {
				_, err := e.api.Poll(ctx, client.PollRequest{SessionID: session, Wait: 20 * time.Second})
				return err
			},
			"state": func(ctx context.Context) error {
				_, err := e.api.Execution(ctx, client.ExecutionRequest{ExecutionID: id, Wait: 20 * time.Second})
				return err
			},
			"history": func(ctx context.Context) error {
				_, err := e.api.History(ctx, client.HistoryRequest{ExecutionID: id, AfterSeq: 3, Wait: 20 * time.Second})
				return err
			},
		}
		for name, call := range calls {
			for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 100 * time.Millisecond} {
				ctx, cancel := context.WithTimeout(e.Context(), after)
				// Functions answer at once, so that there may be nothing to hang up.
				if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) && (err != nil || *targetName != "lambda") {
					e.Errorf("%s: %v", name, err)
				}
				cancel()
			}
		}
		e.done(e.poll(e.register("v", "a.step")), `{}`)
		e.end(id, client.Completed)
	})
}
