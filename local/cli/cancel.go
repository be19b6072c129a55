package cli

import (
	"github.com/spf13/cobra"

	"perigee/sdk/go/client"
)

func (a *app) cancel() *cobra.Command {
	var (
		reason string
		wait   bool
	)
	cmd := &cobra.Command{
		Use:   "cancel EXECUTION",
		Short: "Wind an execution down",
		Long: `Asks an execution to stop: nothing new starts, workers are asked to stop, and what
was done is undone. It is no error to ask twice, but one where the execution
ended otherwise. --wait waits for the end, and then exits with 4.`,
		Args:              argsBetween(1, 1),
		ValidArgsFunction: a.completeExecutions(),
		RunE: ran(func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			state, err := c.Cancel(cmd.Context(), args[0], reason)
			if err != nil {
				return err
			}
			if wait {
				return a.await(cmd.Context(), args[0])
			}
			if state.Status == client.Cancelled {
				a.print.Line("cancelled")
			} else {
				a.print.Line("winding down (%s)", state.Status)
			}
			return a.print.Object(ended{args[0], state.Status, nil, state.Error})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the end, showing progress on a terminal")
	return cmd
}
