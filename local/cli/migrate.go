package cli

import (
	"github.com/spf13/cobra"

	"perigee/infra/config"
	"perigee/local/database"
)

// databaseFlags gives a command the flags by which it finds a database.
func databaseFlags(cmd *cobra.Command) {
	for _, name := range []string{"database", "database-mode"} {
		addSetting(cmd, config.Find(name))
	}
}

func (a *app) migrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring a database's schema to this release",
		Long: `Upgrades the schema of a database, or makes it. It may run while servers work on
the database, and twice at once. There is no way back: keep a backup.`,
		Example: "  perigee migrate --database postgres://perigee@db.example.com/perigee",
		Args:    noArgs,
		RunE: ran(func(cmd *cobra.Command, _ []string) error {
			settings, err := a.settings(cmd)
			if err != nil {
				return err
			}
			st, err := database.Open(cmd.Context(), database.OptionsOf(settings))
			if err != nil {
				return unusable(err)
			}
			defer st.Close()
			from, to, err := st.Migrate(cmd.Context())
			if err != nil {
				return unusable(database.Explain(settings.Database, err))
			}
			where := database.Describe(settings.Database)
			if from == to {
				a.print.Line("%s is at version %d already", where, to)
			} else {
				a.print.Line("%s: version %d → %d", where, from, to)
			}
			return a.print.Object(map[string]any{"database": where, "from": from, "to": to})
		}),
	}
	databaseFlags(cmd)
	return cmd
}
