package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/local/view"
	"perigee/sdk/go/client"
)

func (a *app) show() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "show EXECUTION",
		Short: "Show an execution: its steps, attempts, errors and what it waits for",
		Long: `Shows how an execution stands: each step with its attempts, how long they took
and their errors, and of those under way what they wait for and since when.
Elements of a wide "for" are folded: --all shows every one. With --json it
prints the state as the API serves it.`,
		Args:              argsBetween(1, 1),
		ValidArgsFunction: a.completeExecutions(),
		RunE: ran(func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			source, err := sourceOf(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			e := view.Of(source)
			if a.print.JSON {
				return a.print.Raw(e.State.AppendJSON(nil))
			}
			return view.Write(a.Out, e, view.Options{Paint: a.print.Paint, Zone: a.zone, All: all})
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "every element of every \"for\", and the whole output")
	return cmd
}

// sourceOf reads all that an execution is shown from.
func sourceOf(ctx context.Context, c *client.Client, id string) (view.Source, error) {
	records, err := readHistory(ctx, c, id)
	if err != nil {
		return view.Source{}, err
	}
	s := view.Source{ID: id, Records: records, NowMS: time.Now().UnixMilli()}
	if len(records) == 0 {
		return s, nil
	}
	if created, ok := records[0].Event.(history.WorkflowCreated); ok {
		s.Definition, err = definitionOf(ctx, c, created)
		if err != nil {
			return view.Source{}, err
		}
	}
	workers, err := c.Workers(ctx)
	if err != nil {
		return view.Source{}, err
	}
	s.Workers = []view.Worker{}
	for _, w := range workers {
		known := view.Worker{ID: w.WorkerID, Online: w.Online, LastSeenMS: w.LastSeenMS, Runtime: strings.ToLower(w.Runtime)}
		for _, contract := range w.Contracts {
			known.Tasks = append(known.Tasks, contract.TaskName+"@"+contract.ContractVersion)
		}
		s.Workers = append(s.Workers, known)
	}
	return s, nil
}

// readHistory reads a whole history.
func readHistory(ctx context.Context, c *client.Client, id string) ([]history.Record, error) {
	var records []history.Record
	for event, err := range c.Events(ctx, id, false) {
		if err != nil {
			return nil, err
		}
		r, err := history.DecodeRecord(event.Raw)
		if err != nil {
			return nil, fmt.Errorf("history of %s: %w", id, err)
		}
		records = append(records, r)
	}
	return records, nil
}

// definitionOf reads the definition that an execution follows.
func definitionOf(ctx context.Context, c *client.Client, created history.WorkflowCreated) (*definition.Definition, error) {
	d, err := c.Definition(ctx, created.Workflow, created.Version)
	if err != nil {
		return nil, err
	}
	canonical, err := exactjson.Parse(d.Definition)
	if err != nil {
		return nil, fmt.Errorf("definition of %s@%s: %w", created.Workflow, created.Version, err)
	}
	return definition.Load(canonical)
}
