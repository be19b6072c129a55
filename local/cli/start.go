package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"perigee/engine"
	"perigee/engine/words"
	"perigee/sdk/go/client"
)

func (a *app) start() *cobra.Command {
	var (
		r    client.StartRequest
		tags []string
		wait bool
	)
	cmd := &cobra.Command{
		Use:   "start WORKFLOW[@VERSION] [INPUT]",
		Short: "Start an execution",
		Long: `Starts an execution and prints its id. INPUT is JSON: the text itself, @FILE, or -
for standard input. With an --id of your own the command may be repeated: the
same workflow and input start nothing twice.

With --wait it follows the execution to its end, prints the output as JSON, and
exits with 0 completed, 3 failed, 4 cancelled or 5 timed out. Interrupting it
leaves the execution running.`,
		Example: `  perigee start order-fulfilment --id o-1 --wait '{"order_id": "o-1", "total": 80,
    "card": "tok_visa", "items": [{"sku": "teapot", "quantity": 1}]}'
  perigee start order-fulfilment@1.2.0 @order.json --tag customer=c-7`,
		Args:              argsBetween(1, 2),
		ValidArgsFunction: a.completeWorkflows(false),
		RunE: ran(func(cmd *cobra.Command, args []string) (err error) {
			r.Workflow, r.Version = nameVersion(args[0])
			if r.Input, err = a.payload(args, 1, "input"); err != nil {
				return err
			}
			if r.Tags, err = pairs("--tag", tags); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			started, err := c.Start(cmd.Context(), r)
			if err != nil {
				return meant(cmd.Context(), c, r.Workflow, err)
			}
			if wait {
				a.print.Note("%s", started.ExecutionID)
				a.sayRepeated(started, r)
				return a.await(cmd.Context(), started.ExecutionID)
			}
			a.print.Line("%s", started.ExecutionID)
			a.sayRepeated(started, r)
			return a.print.Object(started)
		}),
	}
	cmd.Flags().StringVar(&r.ExecutionID, "id", "", "id of the execution: letters, digits and - _ . : (default: a new one)")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "name=value, to find the execution by; may be repeated")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the end, showing progress on a terminal")
	return cmd
}

// sayRepeated says that a start started nothing, and what it did not change.
func (a *app) sayRepeated(started client.Started, r client.StartRequest) {
	switch {
	case started.Created:
	case len(r.Tags) > 0:
		a.print.Note("It was there already: the same workflow and input; its tags were left as they are.")
	default:
		a.print.Note("It was there already: the same workflow and input.")
	}
}

// meant adds to an error about a workflow that is not registered the name of the
// one that may have been meant. Any other error it leaves as it is.
func meant(ctx context.Context, c *client.Client, name string, err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != string(engine.WorkflowNotFound) {
		return err
	}
	list, listErr := c.Definitions(ctx)
	if listErr != nil {
		return err // which is what the caller asked about
	}
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.Name
	}
	near := words.Nearest(name, names)
	if near == "" || near == name {
		return err
	}
	better := *refused
	better.Message += "; did you mean " + near + "?"
	return &better
}
