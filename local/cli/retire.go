package cli

import "github.com/spf13/cobra"

func (a *app) retire() *cobra.Command {
	return &cobra.Command{
		Use:   "retire WORKFLOW@VERSION",
		Short: "Take a version out of the default choice",
		Long: `Starts that name no version do not take this one any more. That is for good:
nothing takes it back, deploying the same version again neither. A new version
takes its place. A start that names the retired one still works, and executions
that run keep it.`,
		Args:              argsBetween(1, 1),
		ValidArgsFunction: a.completeWorkflows(true),
		RunE: ran(func(cmd *cobra.Command, args []string) error {
			name, version := nameVersion(args[0])
			if name == "" || version == "" {
				return usage("retire %q: expected WORKFLOW@VERSION, such as order-fulfilment@1.2.0", args[0])
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			if err := c.Retire(cmd.Context(), name, version); err != nil {
				return meant(cmd.Context(), c, name, err)
			}
			a.print.Line("retired  %s@%s", name, version)
			return a.print.Object(map[string]any{"name": name, "version": version, "retired": true})
		}),
	}
}
