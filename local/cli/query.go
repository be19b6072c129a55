package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"
)

func (a *app) query() *cobra.Command {
	return &cobra.Command{
		Use:               "query EXECUTION NAME",
		Short:             "Ask an execution a query of its definition",
		Long:              "Evaluates a query that the definition declares, and prints its result as JSON.",
		Args:              argsBetween(2, 2),
		ValidArgsFunction: a.completeExecutions(),
		RunE: ran(func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			result, err := c.Query(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			a.print.Line("%s", orNull(result))
			return a.print.Object(map[string]json.RawMessage{"result": result})
		}),
	}
}
