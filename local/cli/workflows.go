package cli

import (
	"github.com/spf13/cobra"

	"perigee/local/console"
)

func (a *app) workflows() *cobra.Command {
	return &cobra.Command{
		Use:   "workflows",
		Short: "List the registered definitions",
		Args:  noArgs,
		RunE: ran(func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			list, err := c.Definitions(cmd.Context())
			if err != nil {
				return err
			}
			var table console.Table
			table.Head("WORKFLOW", "VERSION", "REGISTERED", "")
			for _, d := range list {
				note := console.Cut(d.Description, 80)
				if d.Retired {
					note = "retired"
				}
				table.Row(d.Name, d.Version, console.Moment(d.CreatedAtMS, a.zone), note)
				if err := a.print.Object(d); err != nil {
					return err
				}
			}
			if len(list) == 0 {
				a.print.Note("No workflow is registered; `perigee deploy FILE` registers one.")
				return nil
			}
			return a.table(&table)
		}),
	}
}

// table writes a table for people.
func (a *app) table(t *console.Table) error {
	if a.print.JSON {
		return nil
	}
	return t.Write(a.Out, a.print.Paint, "")
}
