package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perigee/engine"
	"perigee/local/console"
)

func (a *app) token() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and delete API tokens",
		Long: `Tokens say who may call a server. They are kept in its database, as hashes, and
these commands work on that database directly, so that the first token can be
made. A server asks for tokens from its next start on once there is one; without
any it serves its own machine alone, and everybody on it.

Roles: admin; operator (start, signal, cancel, read); reader; worker (the worker
protocol, within --worker-id and --task).`,
	}
	cmd.AddCommand(a.tokenCreate(), a.tokenLs(), a.tokenDelete())
	return group(cmd)
}

func (a *app) tokenCreate() *cobra.Command {
	var id engine.Identity
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token and print it",
		Example: `  perigee token create ops --role admin
  perigee token create payments --role worker --worker-id payments-1 --task 'payment.*'`,
		Args: argsBetween(1, 1),
		RunE: ran(func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(roles, id.Role) {
				return wrongRole(id.Role)
			}
			return a.withEngine(cmd, func(ctx context.Context, eng *engine.Engine) error {
				before, err := eng.Tokens(ctx)
				if err != nil {
					return err
				}
				token, err := eng.CreateToken(ctx, args[0], id)
				if err != nil {
					return err
				}
				a.print.Line("%s", token)
				a.print.Note("This is the only time that the token is shown.")
				if len(before) == 0 {
					a.print.Note("It is the first: a server that runs without tokens asks for them once it is started again.")
				}
				return a.print.Object(map[string]string{"name": args[0], "role": id.Role, "token": token})
			})
		}),
	}
	databaseFlags(cmd)
	cmd.Flags().StringVar(&id.Role, "role", "", "admin, operator, reader or worker")
	cmd.Flags().StringArrayVar(&id.WorkerIDs, "worker-id", nil, "id that a worker may register with; may be repeated (default: any)")
	cmd.Flags().StringArrayVar(&id.Tasks, "task", nil, "task or pattern such as payment.* that a worker may offer; may be repeated (default: any)")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(roles, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

var roles = []string{engine.RoleAdmin, engine.RoleOperator, engine.RoleReader, engine.RoleWorker}

func wrongRole(role string) error {
	const expected = "expected one of admin (everything), operator (start, signal, cancel, read), reader, worker (the worker protocol)"
	if role == "" {
		return usage("--role is missing: %s", expected)
	}
	return usage("--role: %s; got %q", expected, role)
}

func (a *app) tokenLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the tokens",
		Args:  noArgs,
		RunE: ran(func(cmd *cobra.Command, _ []string) error {
			return a.withEngine(cmd, func(ctx context.Context, eng *engine.Engine) error {
				list, err := eng.Tokens(ctx)
				if err != nil {
					return err
				}
				var table console.Table
				table.Head("NAME", "ROLE", "MADE", "WORKERS", "TASKS")
				for _, t := range list {
					table.Row(t.Name, t.Role, console.Moment(t.CreatedAtMS, a.zone), strings.Join(t.WorkerIDs, " "), strings.Join(t.Tasks, " "))
					if err := a.print.Object(struct {
						Name        string   `json:"name"`
						Role        string   `json:"role"`
						CreatedAtMS int64    `json:"created_at_ms"`
						WorkerIDs   []string `json:"worker_ids,omitempty"`
						Tasks       []string `json:"tasks,omitempty"`
					}{t.Name, t.Role, t.CreatedAtMS, t.WorkerIDs, t.Tasks}); err != nil {
						return err
					}
				}
				if len(list) == 0 {
					a.print.Note("There are no tokens: a server serves this machine alone, and everyone on it.")
					return nil
				}
				return a.table(&table)
			})
		}),
	}
	databaseFlags(cmd)
	return cmd
}

func (a *app) tokenDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a token; servers notice within a minute",
		Args:  argsBetween(1, 1),
		RunE: ran(func(cmd *cobra.Command, args []string) error {
			return a.withEngine(cmd, func(ctx context.Context, eng *engine.Engine) error {
				if err := eng.DeleteToken(ctx, args[0]); err != nil {
					return err
				}
				left, err := eng.Tokens(ctx)
				if err != nil {
					return err
				}
				a.print.Line("deleted  %s", args[0])
				if len(left) == 0 {
					a.print.Note("It was the last: from its next start a server on loopback serves everybody on that machine, and refuses any other address.")
				}
				return a.print.Object(map[string]any{"name": args[0], "deleted": true})
			})
		}),
	}
	databaseFlags(cmd)
	return cmd
}
