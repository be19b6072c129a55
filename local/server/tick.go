package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"perigee/engine"
	"perigee/functions/ticker"
	"perigee/infra/config"
)

const (
	minuteTick = time.Minute
	// minuteTime is how long a tick may take with the calls that it makes: as long
	// as the tick function of template.yaml.
	minuteTime = 310 * time.Second
)

// tick looks after time until ctx ends: whenever something is due or, so that
// the delays of the functions can be tried out, every minute.
func tick(ctx context.Context, eng *engine.Engine, mode string, log *slog.Logger) {
	if mode == config.TickMinute {
		everyMinute(ctx, eng, log)
		return
	}
	if err := eng.Run(ctx); err != nil {
		log.Error("the ticks have ended", "error", err)
	}
}

// everyMinute makes the calls of the tick function. None waits for the one
// before, which may be at a long call to a worker or service.
func everyMinute(ctx context.Context, eng ticker.Engine, log *slog.Logger) {
	t := ticker.Ticker{Engine: eng, Mode: config.TickMinute, Log: log}
	var ticks sync.WaitGroup
	defer ticks.Wait()
	timer := time.NewTicker(minuteTick)
	defer timer.Stop()
	for {
		ticks.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, minuteTime)
			defer cancel()
			if _, err := t.Run(ctx); err != nil && ctx.Err() == nil {
				log.Error("the tick failed; the next one tries again", "error", err)
			}
		})
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}
