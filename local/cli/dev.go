package cli

import (
	"log/slog"
	"runtime/debug"

	"github.com/spf13/cobra"

	"perigee/infra/config"
	"perigee/local/console"
	"perigee/local/server"
)

func (a *app) dev() *cobra.Command {
	var migrate bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a server on this machine",
		Long: `Runs a server: the API, the worker protocol and everything that time brings.
Executions are kept in a file of SQLite, which is made and upgraded as needed,
or in a Postgres database, whose schema is only changed with --migrate.

Without API tokens it listens on loopback alone and serves every caller there.
Once there is a token (perigee token create) every call needs one, from the
server's next start on.

SIGTERM or Ctrl-C stops it gracefully. With --json it prints one line
{"url", "database"} once it is ready. The log goes to standard error.`,
		Example: `  perigee dev
  perigee dev --listen 127.0.0.1:0 --database /tmp/try.db --json
  perigee dev --database postgres://perigee@localhost/perigee --migrate`,
		Args: noArgs,
		RunE: ran(func(cmd *cobra.Command, _ []string) error {
			settings, err := a.settings(cmd)
			if err != nil {
				return err
			}
			if settings.TickMode == config.TickOnDemand {
				return usage("tick mode on-demand (--tick-mode or %s): no timer would fire here, since nothing calls this server when one is due; "+
					"use precise or minute, or `perigee lambda --tick-mode on-demand`, which behaves as AWS does", config.Find("tick-mode").Variable())
			}
			if err := server.CheckRoutes(settings); err != nil {
				return usage("%w", err)
			}
			if _, set := a.Env("GOGC"); !set {
				// A server makes much garbage on a small heap: a fifth of its
				// processor time for some tens of megabytes.
				debug.SetGCPercent(300)
			}
			return unusable(server.Run(cmd.Context(), server.Options{
				Settings: settings, Migrate: migrate, Logger: a.logger(settings), Environment: a.Env, Ready: a.ready,
			}))
		}),
	}
	cmd.Flags().SortFlags = false
	for _, s := range config.Table() {
		addSetting(cmd, s)
	}
	cmd.Flags().BoolVar(&migrate, "migrate", false, "upgrade the schema of a Postgres database first")
	return cmd
}

// addSetting gives a command the flag of a setting.
func addSetting(cmd *cobra.Command, s config.Setting) {
	meaning := s.Meaning + " (" + s.Variable() + ")"
	if s.Default != "false" {
		cmd.Flags().String(s.Name, s.Default, meaning)
		return
	}
	text := switchText(s.Default)
	cmd.Flags().Var(&text, s.Name, meaning)
	cmd.Flags().Lookup(s.Name).NoOptDefVal = "true"
}

// switchText is a flag that may stand without a value. It takes any text, so that
// a wrong one is told with the other faults of the settings.
type switchText string

func (t *switchText) Set(text string) error { *t = switchText(text); return nil }
func (t *switchText) String() string        { return string(*t) }

// Type is what the help goes by.
func (t *switchText) Type() string { return "bool" }

// settings reads the settings of a command and of the environment.
func (a *app) settings(cmd *cobra.Command) (config.Settings, error) {
	given := func(name string) (string, bool) {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			return "", false
		}
		return f.Value.String(), true
	}
	settings, err := config.Load(given, a.Env)
	if err != nil {
		return settings, &exit{exitUsage, err}
	}
	return settings, nil
}

func (a *app) logger(s config.Settings) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == config.LogJSON {
		return slog.New(slog.NewJSONHandler(a.Err, options))
	}
	return slog.New(slog.NewTextHandler(a.Err, options))
}

// ready says where the server is and what to do next.
func (a *app) ready(r server.Running) error {
	if a.print.JSON {
		return a.print.Object(struct {
			URL      string `json:"url"`
			Database string `json:"database"`
		}{r.URL, r.Database})
	}
	p := a.print
	p.Line("Perigee listens on %s (API: %s/docs)", p.Paint.Text(console.Bold, r.URL), r.URL)
	database := r.Database
	if r.Migrated != "" {
		database += " (" + r.Migrated + ")"
	}
	p.Line("Executions are kept in %s", database)
	if !r.Open {
		p.Line("Every call needs a token: --token-file FILE or PERIGEE_TOKEN")
	}
	server := ""
	if r.URL != defaultServer {
		server = " --server " + r.URL
	}
	p.Line("\nNext, in another terminal:")
	p.Line("  perigee deploy%s FILE.yaml", server)
	p.Line("  perigee start%s WORKFLOW '{\"some\": \"input\"}'", server)
	p.Line("  perigee ls%s", server)
	p.Line("\nCtrl-C stops the server; executions go on when it starts again.")
	return nil
}
