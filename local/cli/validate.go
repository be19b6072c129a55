package cli

import (
	"github.com/spf13/cobra"

	"perigee/engine/definition"
)

func (a *app) validate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE…",
		Short: "Check definitions without a server",
		Long: `Compiles definitions and prints every fault with its file, line, column and what
to do about it. No server is needed; whether child workflows of other files are
registered is seen by deploy. A folder stands for the definitions in it, - for
standard input. Warnings alone leave the exit code 0.`,
		Example: "  perigee validate order.yaml\n  perigee validate workflows/ --json",
		Args:    needArgs(1, "name at least one file or folder"),
		RunE: ran(func(_ *cobra.Command, args []string) error {
			list, err := a.documents(args)
			if err != nil {
				return err
			}
			return a.report(list)
		}),
	}
}

// report prints what compiling found, and fails where there are errors.
func (a *app) report(list []*document) error {
	wrong := 0
	for _, d := range list {
		if d.def == nil {
			wrong++
		}
		a.showFaults(d)
		if len(d.faults) == 0 {
			a.print.Line("%s: %s is valid", d.path, d.name())
		} else if d.def != nil {
			a.print.Line("%s: %s is valid, with %s", d.path, d.name(), plural(len(d.faults), "warning"))
		}
		if err := a.print.Object(struct {
			File   string             `json:"file"`
			Valid  bool               `json:"valid"`
			Faults []definition.Fault `json:"faults"`
		}{d.path, d.def != nil, append([]definition.Fault{}, d.faults...)}); err != nil {
			return err
		}
	}
	if wrong > 0 {
		a.print.Note("%s of %d cannot be deployed", plural(wrong, "file"), len(list))
		return &exit{code: exitRefused}
	}
	return nil
}
