package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"perigee/engine/history"
	"perigee/local/console"
	"perigee/local/view"
	"perigee/sdk/go/client"
)

func (a *app) history() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "history EXECUTION",
		Short: "Print an execution's history, event by event",
		Long: `Prints every event of an execution. With --follow it goes on as events come,
until the execution has ended. With --json the events are as the API serves
them, a line each: what perigee replay reads.`,
		Args:              argsBetween(1, 1),
		ValidArgsFunction: a.completeExecutions(),
		RunE: ran(func(cmd *cobra.Command, args []string) error {
			connect := a.client
			if follow {
				connect = a.following
			}
			c, err := connect()
			if err != nil {
				return err
			}
			for event, err := range c.Events(cmd.Context(), args[0], follow) {
				if err != nil {
					return err
				}
				if err := a.event(event); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "go on until the execution has ended")
	return cmd
}

// event prints one event.
func (a *app) event(event client.Event) error {
	if a.print.JSON {
		return a.print.Raw(event.Raw)
	}
	r, err := history.DecodeRecord(event.Raw)
	if err != nil {
		return fmt.Errorf("event %d: %w", event.Seq, err)
	}
	paint := a.print.Paint
	_, err = fmt.Fprintf(a.Out, "%6d  %s  %s %-20s %s\n", r.Seq, paint.Text(console.Dim, console.Clock(r.TimestampMS, a.zone)),
		paint.Text(view.EventStyle(r.Event.Type()), fmt.Sprintf("%-22s", event.Type)), console.Printable(r.Event.Unit()),
		console.Printable(view.Event(r.Event, a.zone)))
	return err
}
