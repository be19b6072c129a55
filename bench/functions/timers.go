package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"perigee/local/lambda"
	"perigee/sdk/go/client"
)

const timerDefinition = `
name: timer
version: "1.0.0"
steps: [{ id: nap, sleep: "${input.d}" }]
`

// Timers fire between these moments after their start: when all are started.
const (
	earliest = 30 * time.Second
	latest   = 60 * time.Second
)

// measureTimers starts timers, lets nobody poll, and reads from the histories
// how long after its moment each has fired.
func measureTimers(ctx context.Context, dir, database string, n int) error {
	serving, stop := context.WithCancel(ctx)
	ready := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- lambda.Run(serving, lambda.Options{
			Functions: dir, Listen: "127.0.0.1:0", Environment: []string{"PERIGEE_DATABASE=" + database, "PERIGEE_AUTH=jwt"},
			Open: func(context.Context) (bool, error) { return true, nil },
			Log:  io.Discard, Logger: quiet, Ready: func(r lambda.Running) error { ready <- r.URL; return nil },
		})
	}()
	defer func() { stop(); <-ended }()
	var url string
	select {
	case url = <-ready:
	case err := <-ended:
		ended <- nil
		return err
	}
	c, err := client.New(url, client.Options{RetryFor: time.Minute})
	if err != nil {
		return err
	}
	if _, err := c.RegisterDefinition(ctx, []byte(timerDefinition), client.YAML); err != nil {
		return err
	}
	late, err := timers(ctx, c, n)
	if err != nil {
		return err
	}
	fmt.Printf("\nlateness of %d timers, tick mode precise: p50 %.0f ms, p90 %.0f ms, p99 %.0f ms, most %.0f ms\n", len(late),
		ms(quantile(late, 0.5)), ms(quantile(late, 0.9)), ms(quantile(late, 0.99)), ms(quantile(late, 1)))
	return nil
}

// timers starts n of them at random moments and gives how late each was.
func timers(ctx context.Context, c *client.Client, n int) ([]time.Duration, error) {
	late, errs := make([]time.Duration, n), make([]error, n)
	start := time.Now()
	each(n, func(i int) {
		d := earliest + rand.N(latest-earliest) - time.Since(start)
		_, errs[i] = c.Start(ctx, client.StartRequest{
			Workflow: "timer", ExecutionID: fmt.Sprint("timer-", i), Input: json.RawMessage(fmt.Sprintf(`{"d":"%dms"}`, max(1, d.Milliseconds()))),
		})
	})
	if took := time.Since(start); took > earliest {
		return nil, fmt.Errorf("starting %d timers took %v, longer than the first waits", n, took)
	}
	select {
	case <-time.After(time.Until(start.Add(latest + 5*time.Second))):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	each(n, func(i int) {
		if errs[i] == nil {
			late[i], errs[i] = lateness(ctx, c, fmt.Sprint("timer-", i))
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return late, nil
}

// each calls f for 0 to n-1, 8 at once.
func each(n int, f func(int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range 8 {
		all.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// lateness is how long after its moment a timer has fired. That moment is when
// it was due; the event's time says when the tick saw to it.
func lateness(ctx context.Context, c *client.Client, id string) (time.Duration, error) {
	var due int64
	for e, err := range c.Events(ctx, id, false) {
		switch {
		case err != nil:
			return 0, err
		case e.Type == "TimerStarted":
			due = e.FireAtMS
		case e.Type == "TimerFired" && due != 0:
			return time.Duration(e.TimestampMS-due) * time.Millisecond, nil
		}
	}
	return 0, fmt.Errorf("%s has not fired", id)
}
