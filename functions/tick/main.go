// Command tick is the Lambda function that looks after time. EventBridge calls
// it every minute or, in tick mode on-demand, at the next wake-up and every hour.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"perigee/functions/ticker"
	"perigee/infra/instance"
)

func main() {
	i := instance.Start()
	t := ticker.Ticker{Engine: i.Engine, Mode: i.Settings.TickMode, WakeUps: i.WakeUps, Log: i.Log}
	// What the event says does not matter: what is due stands in the database.
	lambda.Start(func(ctx context.Context) (ticker.Done, error) {
		defer i.After(ctx)
		if err := i.Ready(ctx); err != nil {
			return ticker.Done{}, i.Failed(ctx, err)
		}
		done, err := t.Run(ctx)
		return done, i.Failed(ctx, err)
	})
}
