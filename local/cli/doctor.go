package cli

import (
	"context"

	"github.com/spf13/cobra"

	"perigee/engine"
	"perigee/infra/config"
	"perigee/local/console"
	"perigee/local/database"
)

func (a *app) doctor() *cobra.Command {
	var rebuild bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Compare a database with the histories in it",
		Long: `Replays the history of every execution and compares it with what is kept beside
it for speed: the list of executions and the queue of tasks. Every difference is
a line; with --rebuild they are mended from the history, and parked executions
are looked at again. It may run while servers work. Exit code 1 says that
differences are left.`,
		Args: noArgs,
		RunE: ran(func(cmd *cobra.Command, _ []string) error {
			left, found := 0, 0
			return a.withEngine(cmd, func(ctx context.Context, eng *engine.Engine) error {
				checked, err := eng.Doctor(ctx, rebuild, func(f engine.Finding) {
					found++
					if !f.Repaired {
						left++
					}
					a.finding(f)
				})
				if err != nil {
					return err
				}
				a.print.Line("%s looked at, %s, %d left", plural(checked, "execution"), plural(found, "difference"), left)
				if err := a.print.Object(map[string]int{"checked": checked, "found": found, "left": left}); err != nil {
					return err
				}
				if left > 0 {
					return &exit{code: exitRefused}
				}
				return nil
			})
		}),
	}
	databaseFlags(cmd)
	addSetting(cmd, config.Find("session-timeout"))
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "mend what differs")
	return cmd
}

func (a *app) finding(f engine.Finding) {
	state := "differs"
	if f.Repaired {
		state = "mended"
	}
	a.print.Line("%s  %s  %s", state, f.ExecutionID, console.Printable(f.What))
	_ = a.print.Object(struct { // a closed pipe shows itself at the last line
		ExecutionID string `json:"execution_id"`
		What        string `json:"what"`
		Repaired    bool   `json:"repaired"`
	}{f.ExecutionID, f.What, f.Repaired})
}

// withEngine opens the database of a command's flags, which must be of this
// release, and runs use on it.
func (a *app) withEngine(cmd *cobra.Command, use func(context.Context, *engine.Engine) error) error {
	settings, err := a.settings(cmd)
	if err != nil {
		return err
	}
	st, err := database.OpenChecked(cmd.Context(), database.OptionsOf(settings))
	if err != nil {
		return unusable(err)
	}
	defer st.Close()
	options := settings.Engine
	options.Logger = a.logger(settings)
	eng, err := engine.New(st, options)
	if err != nil {
		return err
	}
	defer eng.Close()
	return use(cmd.Context(), eng)
}
