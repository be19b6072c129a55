package cli

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perigee/engine/definition"
	"perigee/local/console"
	"perigee/local/view"
	"perigee/sdk/go/client"
)

func (a *app) ls() *cobra.Command {
	var (
		r            client.ListRequest
		status, past string
		tags         []string
		all          bool
	)
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List executions, newest first",
		Example: `  perigee ls --status running --workflow order-fulfilment
  perigee ls --tag customer=c-7 --since 24h --all --json`,
		Args: noArgs,
		RunE: ran(func(cmd *cobra.Command, _ []string) (err error) {
			if r.Status, err = statusOf(status); err != nil {
				return err
			}
			if r.Limit < 1 || r.Limit > maxLimit {
				return usage("--limit: expected a whole number from 1 to %d, got %d", maxLimit, r.Limit)
			}
			if r.Tags, err = pairs("--tag", tags); err != nil {
				return err
			}
			if past != "" {
				ms, err := definition.ParseDuration(past)
				if err != nil {
					return usage("--since: %w", err)
				}
				r.CreatedAfterMS = time.Now().UnixMilli() - ms
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			return a.list(cmd, c, r, all)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&status, "status", "", orList(statuses))
	f.StringVar(&r.Workflow, "workflow", "", "only of this workflow")
	f.StringVar(&r.Version, "version", "", "only of this version")
	f.StringVar(&r.Parent, "parent", "", "only children of this execution")
	f.StringArrayVar(&tags, "tag", nil, "only with this name=value; may be repeated")
	f.StringVar(&past, "since", "", "only what was started in the last so and so much time, such as 2h")
	f.IntVar(&r.Limit, "limit", 50, "at most so many at a time, up to 1000")
	f.BoolVar(&all, "all", false, "all of them, page after page")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(statuses, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// maxLimit is the longest page of the API.
const maxLimit = 1000

// statuses are those of executions, as they are typed.
var statuses = []string{"running", "compensating", "completed", "failed", "cancelled", "timed_out"}

// statusOf reads a status as it is typed; "" stands for any.
func statusOf(typed string) (client.Status, error) {
	word := strings.ToLower(strings.ReplaceAll(typed, "-", "_"))
	if word != "" && !slices.Contains(statuses, word) {
		return "", usage("--status: expected %s, got %q", orList(statuses), typed)
	}
	return client.Status(strings.ToUpper(word)), nil
}

// orList is "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// list prints one page, or all.
func (a *app) list(cmd *cobra.Command, c *client.Client, r client.ListRequest, all bool) error {
	var table console.Table
	table.Head("EXECUTION", "WORKFLOW", "STATUS", "STARTED", "TOOK", "")
	for {
		page, err := c.List(cmd.Context(), r)
		if err != nil {
			return err
		}
		for _, e := range page.Executions {
			a.listed(&table, e)
			if a.print.JSON {
				if err := a.print.Raw(e.Raw); err != nil {
					return err
				}
			}
		}
		r.Cursor = page.NextCursor
		if r.Cursor == "" || !all {
			break
		}
	}
	if table.Len() == 1 {
		a.print.Note("No execution is like that.")
		return nil
	}
	if err := a.table(&table); err != nil {
		return err
	}
	if r.Cursor != "" {
		a.print.Note("There are more: --limit takes up to 1000, --all shows all.")
	}
	return nil
}

// listed adds the line of one execution.
func (a *app) listed(table *console.Table, e client.Execution) {
	end := e.FinishedAtMS
	if end == 0 {
		end = time.Now().UnixMilli()
	}
	var remarks []string
	if e.ErrorCount > 0 {
		remarks = append(remarks, "parked after "+plural(e.ErrorCount, "error")+" (see the server's log)")
	}
	if e.Parent != nil {
		remarks = append(remarks, "child of "+e.Parent.ExecutionID)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Tags)) {
		remarks = append(remarks, name+"="+e.Tags[name])
	}
	table.Cells(
		console.Cell{Text: e.ExecutionID},
		console.Cell{Text: e.Workflow + "@" + e.Version},
		console.Cell{Text: string(e.Status), Style: view.StatusStyle(string(e.Status))},
		console.Cell{Text: console.Moment(e.CreatedAtMS, a.zone)},
		console.Cell{Text: console.Duration(end - e.CreatedAtMS)},
		console.Cell{Text: console.Cut(strings.Join(remarks, " "), 120)},
	)
}
