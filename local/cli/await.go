package cli

import (
	"context"
	"encoding/json"

	"perigee/engine/history"
	"perigee/local/console"
	"perigee/local/view"
	"perigee/sdk/go/client"
)

// ended is what waiting for an execution prints in JSON mode.
type ended struct {
	ExecutionID string            `json:"execution_id"`
	Status      client.Status     `json:"status"`
	Output      json.RawMessage   `json:"output,omitempty"`
	Error       *client.TaskError `json:"error,omitempty"`
}

// await follows an execution to its end and says how it ended, also by the
// exit code.
func (a *app) await(ctx context.Context, id string) error {
	c, err := a.following()
	if err != nil {
		return err
	}
	for event, err := range c.Events(ctx, id, true) {
		if err != nil {
			if ctx.Err() != nil {
				a.print.Note("The execution goes on: perigee show %s", id)
			}
			return err
		}
		if a.print.Terminal {
			a.progress(event)
		}
		if event.Terminal() {
			return a.ending(ctx, c, id)
		}
	}
	return nil
}

// progress shows an event that a person who waits cares for.
func (a *app) progress(event client.Event) {
	r, err := history.DecodeRecord(event.Raw)
	if err != nil {
		return // the history is the server's; waiting needs none of it
	}
	switch r.Event.(type) {
	case history.StepScheduled, history.WorkflowStarted, history.StaleResultIgnored:
		return
	}
	a.print.Note("%s  %-24s %-20s %s", console.Clock(r.TimestampMS, a.zone), event.Type, r.Event.Unit(), view.Event(r.Event, a.zone))
}

// ending prints how an execution ended.
func (a *app) ending(ctx context.Context, c *client.Client, id string) error {
	state, err := c.Execution(ctx, client.ExecutionRequest{ExecutionID: id, Limit: 1})
	if err != nil {
		return err
	}
	if err := a.print.Object(ended{id, state.Status, state.Output, state.Error}); err != nil {
		return err
	}
	if state.Status == client.Completed {
		a.print.Line("%s", orNull(state.Output))
		return nil
	}
	line := string(state.Status)
	if state.Error != nil {
		line += "  " + state.Error.Code + ": " + console.Printable(state.Error.Message)
	}
	a.print.Note("%s\nperigee show %s tells more", line, id)
	return &exit{code: exitOf(state.Status)}
}

func exitOf(s client.Status) int {
	switch s {
	case client.Failed:
		return exitFailed
	case client.Cancelled:
		return exitCancelled
	case client.TimedOut:
		return exitTimedOut
	}
	return exitOK
}

func orNull(v json.RawMessage) string {
	if v == nil {
		return "null"
	}
	return string(v)
}
