package cli

import "github.com/spf13/cobra"

func (a *app) signal() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "signal EXECUTION NAME [PAYLOAD]",
		Short: "Send a signal to an execution",
		Long: `Sends a signal. PAYLOAD is JSON: the text itself, @FILE, or - for standard input.
With an --id of your own the command may be repeated: the signal is taken once.`,
		Example:           `  perigee signal order-7 approval '{"approved": true}'`,
		Args:              argsBetween(2, 3),
		ValidArgsFunction: a.completeExecutions(),
		RunE: ran(func(cmd *cobra.Command, args []string) error {
			payload, err := a.payload(args, 2, "payload")
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			seq, err := c.Signal(cmd.Context(), args[0], args[1], payload, id)
			if err != nil {
				return err
			}
			a.print.Line("received as event %d", seq)
			return a.print.Object(map[string]uint64{"seq": seq})
		}),
	}
	cmd.Flags().StringVar(&id, "id", "", "id of the signal (default: a new one)")
	return cmd
}
