package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"perigee/engine/definition"
	"perigee/sdk/go/client"
)

func (a *app) deploy() *cobra.Command {
	return &cobra.Command{
		Use:   "deploy FILE…",
		Short: "Register definitions with the server",
		Long: `Compiles all files first and registers nothing if one of them has an error.
Child workflows are registered before those that start them, whatever the order
of the files. The same content again changes nothing; other content needs
another version. A folder stands for the definitions in it, - for standard
input.`,
		Example: "  perigee deploy order.yaml invoice.yaml\n  perigee deploy workflows/",
		Args:    needArgs(1, "name at least one file or folder"),
		RunE: ran(func(cmd *cobra.Command, args []string) error {
			list, err := a.documents(args)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(list, func(d *document) bool { return d.def == nil }) {
				return a.report(list)
			}
			if list, err = childrenFirst(list); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			for _, d := range list {
				if err := a.register(cmd, c, d); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

func (a *app) register(cmd *cobra.Command, c *client.Client, d *document) error {
	r, err := c.RegisterDefinition(cmd.Context(), d.text, d.mediaType())
	if faults := client.Faults(err); faults != nil {
		d.faults = nil
		for _, f := range faults {
			d.faults = append(d.faults, definition.Fault(f))
		}
		d.def = nil
		return a.report([]*document{d})
	}
	if err != nil {
		return err
	}
	a.showFaults(d)
	word := "unchanged "
	if r.Created {
		word = "registered"
	}
	a.print.Line("%s  %s@%s", word, r.Name, r.Version)
	return a.print.Object(r)
}
