package server

import (
	"context"
	"log/slog"
	"time"

	"perigee/engine"
	"perigee/infra/config"
)

const (
	minuteTick = time.Minute
	tickBatch  = 100
)

// tick looks after time until ctx ends, in the mode of the settings: the modes
// of the functions are here so that their delays can be tried out.
func tick(ctx context.Context, eng *engine.Engine, mode string, log *slog.Logger) {
	var err error
	switch mode {
	case config.TickMinute:
		err = everyMinute(ctx, eng, log)
	case config.TickOnDemand:
		<-ctx.Done()
	default:
		err = eng.Run(ctx)
	}
	if err != nil {
		log.Error("the ticks have ended", "error", err)
	}
}

func everyMinute(ctx context.Context, eng *engine.Engine, log *slog.Logger) error {
	timer := time.NewTicker(minuteTick)
	defer timer.Stop()
	for {
		if err := pass(ctx, eng); err != nil && ctx.Err() == nil {
			log.Error("the tick failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}

// pass does all that is due, and then the tasks that the server sees to itself.
func pass(ctx context.Context, eng *engine.Engine) error {
	for more := true; more && ctx.Err() == nil; {
		report, err := eng.Tick(ctx, tickBatch)
		if err != nil {
			return err
		}
		more = report.More
	}
	for ctx.Err() == nil {
		tasks, err := eng.ClaimBuiltins(ctx, 1)
		if err != nil || len(tasks) == 0 {
			return err
		}
		eng.RunBuiltin(ctx, tasks[0])
	}
	return nil
}
