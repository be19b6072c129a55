package cli

import (
	"context"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/sdk/go/client"
)

func (a *app) deploy() *cobra.Command {
	return &cobra.Command{
		Use:   "deploy FILE…",
		Short: "Register definitions with the server",
		Long: `Compiles all files first and registers nothing if one of them has an error.
Child workflows are registered before those that start them, whatever the order
of the files. The same content again changes nothing, also where that version was
retired; other content needs another version. A folder stands for the definitions
in it, - for standard input.`,
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
			retired := sync.OnceValues(func() (map[string]bool, error) { return retiredVersions(cmd.Context(), c) })
			for _, d := range list {
				if err := a.register(cmd.Context(), c, d, retired); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

// register registers one definition. retired is asked only where nothing was
// registered: deploying a retired version again does not bring it back.
func (a *app) register(ctx context.Context, c *client.Client, d *document, retired func() (map[string]bool, error)) error {
	r, err := c.RegisterDefinition(ctx, d.text, d.mediaType())
	if client.CodeOf(err) == string(engine.InvalidDefinition) {
		d.faults = nil
		for _, f := range client.Faults(err) {
			d.faults = append(d.faults, definition.Fault(f))
		}
		d.def = nil
		return a.report([]*document{d})
	}
	if err != nil {
		return err
	}
	for _, f := range r.Warnings {
		if f.Line == 0 { // of the server, and not of the text
			d.faults = append(d.faults, definition.Fault(f))
		}
	}
	a.showFaults(d)
	answer := struct {
		client.Registered
		Retired bool `json:"retired,omitempty"`
	}{Registered: r}
	word, remark := "registered", ""
	if !r.Created {
		gone, err := retired()
		if err != nil {
			return err
		}
		word = "unchanged "
		if answer.Retired = gone[r.Name+"@"+r.Version]; answer.Retired {
			remark = " (retired)"
		}
	}
	a.print.Line("%s  %s@%s%s", word, r.Name, r.Version, remark)
	if answer.Retired {
		a.print.Note("A retired version stays so: starts that name no version take another one. Deploy it under a new version.")
	}
	return a.print.Object(answer)
}

// retiredVersions are those of the server, as name@version.
func retiredVersions(ctx context.Context, c *client.Client) (map[string]bool, error) {
	list, err := c.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	retired := map[string]bool{}
	for _, d := range list {
		if d.Retired {
			retired[d.Name+"@"+d.Version] = true
		}
	}
	return retired, nil
}
