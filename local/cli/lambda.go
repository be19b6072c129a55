package cli

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perigee/infra/config"
	"perigee/infra/push"
	"perigee/local/database"
	"perigee/local/lambda"
	"perigee/local/server"
)

func (a *app) lambda() *cobra.Command {
	var (
		o               lambda.Options
		churn, failures float64
		seed            uint64
	)
	cmd := &cobra.Command{
		Use:   "lambda",
		Short: "Run the functions on this machine as AWS Lambda would",
		Long: `Runs the functions as processes of their own, behind the front of an HTTP API and
with a schedule for the tick function: as on AWS, a process serves one call at a
time and stands still between calls. Executions are kept in a Postgres database.
The functions are built by ` + "`make lambda`" + `.

--churn and --failures make it as unreliable as a provider may be: processes are
replaced between calls, and calls are throttled, cut off, delayed or left
without an answer. Workers and clients must get through.

Without API tokens it listens on loopback alone and serves every caller there.`,
		Example: `  perigee lambda --database postgres://perigee@localhost/perigee --migrate
  perigee lambda --database postgres://perigee@localhost:6432/perigee --database-mode pooled --churn 0.2 --failures 0.1`,
		Args: noArgs,
		RunE: ran(func(cmd *cobra.Command, _ []string) error {
			settings, err := a.settings(cmd)
			if err != nil {
				return err
			}
			if !database.IsPostgres(settings.Database) {
				return usage("--database: the functions need Postgres, such as postgres://perigee@localhost/perigee; this is %q", settings.Database)
			}
			if _, err := push.Load(settings.Routes); err != nil {
				return usage("%w", err)
			}
			if churn < 0 || churn > 1 || failures < 0 || failures > 1 {
				return usage("--churn and --failures are chances from 0 to 1")
			}
			if churn > 0 || failures > 0 {
				o.Unrest = lambda.NewUnrest(churn, failures, seed)
			}
			o.Listen, o.OnDemand = settings.Listen, settings.TickMode == config.TickOnDemand
			o.Environment = a.functionEnvironment(cmd)
			o.Open = func(ctx context.Context) (bool, error) { return openFunctions(ctx, settings) }
			o.Log, o.Logger = a.Err, a.logger(settings)
			o.Ready = func(r lambda.Running) error {
				migrated := ""
				if r.Migrated != nil {
					migrated = "migrated: " + string(r.Migrated)
				}
				return a.ready(server.Running{URL: r.URL, Database: database.Describe(settings.Database), Open: r.Open, Migrated: migrated})
			}
			return unusable(lambda.Run(cmd.Context(), o))
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	for _, s := range config.Table() {
		if s.Name != "log-format" { // theirs is JSON
			addSetting(cmd, s)
		}
	}
	f.StringVar(&o.Functions, "functions", "bin/lambda", "folder with NAME/bootstrap for each function")
	f.BoolVar(&o.Migrate, "migrate", false, "call the migrate function first")
	f.IntVar(&o.Concurrency, "concurrency", 10, "calls at once of each function; more are throttled")
	f.Float64Var(&churn, "churn", 0, "chance that a call meets a new process")
	f.Float64Var(&failures, "failures", 0, "chance that a call fails as at a provider")
	f.Uint64Var(&seed, "seed", 1, "of the chances")
	return cmd
}

// functionEnvironment hands this command's settings on to the functions: what
// a flag says and what the environment has.
func (a *app) functionEnvironment(cmd *cobra.Command) []string {
	var env []string
	for _, s := range config.Table() {
		if s.Name == "listen" || s.Name == "log-format" || s.Name == "database-connections" {
			continue
		}
		if f := cmd.Flags().Lookup(s.Name); f != nil && f.Changed {
			env = append(env, s.Variable()+"="+f.Value.String())
		} else if text := a.env(s.Variable()); text != "" {
			env = append(env, s.Variable()+"="+text)
		}
	}
	for _, variable := range os.Environ() { // of http.request and pushes
		if strings.HasPrefix(variable, "PERIGEE_SECRET_") {
			env = append(env, variable)
		}
	}
	// The front is the authorizer where there are no tokens.
	return slices.Concat(env, []string{"PERIGEE_AUTH=jwt", "PERIGEE_STACK=local"})
}

// openFunctions decides as the local server does whether tokens are asked for.
func openFunctions(ctx context.Context, s config.Settings) (open bool, err error) {
	st, err := database.Open(ctx, database.OptionsOf(s))
	if err != nil {
		return false, err
	}
	defer st.Close()
	return server.MayListen(ctx, st, s)
}
