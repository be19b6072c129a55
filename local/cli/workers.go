package cli

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"perigee/local/console"
	"perigee/sdk/go/client"
)

func (a *app) workers() *cobra.Command {
	return &cobra.Command{
		Use:   "workers",
		Short: "List workers, what they offer and whether they live",
		Args:  noArgs,
		RunE: ran(func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			list, err := c.Workers(cmd.Context())
			if err != nil {
				return err
			}
			var table console.Table
			table.Head("WORKER", "RUNTIME", "", "LAST SEEN", "TASKS NOW", "OFFERS")
			for _, w := range list {
				a.worker(&table, w)
				if err := a.print.Object(w); err != nil {
					return err
				}
			}
			if len(list) == 0 {
				a.print.Note("No worker has registered; docs/workers.md shows how to run one.")
				return nil
			}
			return a.table(&table)
		}),
	}
}

// worker adds the lines of one worker: what it offers stands below each other.
func (a *app) worker(table *console.Table, w client.Worker) {
	life := console.Cell{Text: "online", Style: console.Green}
	if !w.Online {
		life = console.Cell{Text: "offline", Style: console.Yellow}
	}
	cells := []console.Cell{
		{Text: w.WorkerID}, {Text: w.Runtime}, life,
		{Text: console.Duration(time.Now().UnixMilli()-w.LastSeenMS) + " ago"}, {Text: strconv.Itoa(w.Inflight)},
	}
	for i, contract := range w.Contracts {
		offer := console.Cell{Text: contract.TaskName + "@" + contract.ContractVersion}
		if i > 0 {
			cells = make([]console.Cell, len(cells))
		}
		table.Cells(append(cells, offer)...)
	}
	if len(w.Contracts) == 0 {
		table.Cells(append(cells, console.Cell{Text: "nothing"})...)
	}
}
