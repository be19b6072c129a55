package cli

import (
	"bytes"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perigee/engine/history"
)

func (a *app) replay() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "replay [FILE]",
		Short: "Fold a history from a file to the state that it gives",
		Long: `Reads a history from a file or standard input and prints the state as JSON: what
the server would serve for it. The history is a JSON array of events, JSON lines
with an event each (perigee history --json), or an object {"id", "history"}.
No server is needed. Events of types that this release does not know are skipped;
standard error says so. A history with a gap is folded as far as it goes, and the
exit code is 1.`,
		Example: "  perigee history order-7 --json | perigee replay --id order-7",
		Args:    argsBetween(0, 1),
		RunE: ran(func(_ *cobra.Command, args []string) error {
			arg := "-"
			if len(args) > 0 && args[0] != "-" {
				arg = "@" + args[0]
			}
			text, from, err := a.read(arg)
			if err != nil {
				return usage("replay: %w", err)
			}
			named, records, err := history.ReadHistory(bytes.NewReader(text))
			if err != nil {
				return usage("replay %s: %w%s", from, err, forPeople(text))
			}
			if id == "" {
				id = named
			}
			whole := a.doubts(records)
			state := history.New(id)
			state.ApplyAll(records)
			if err := a.print.Raw(state.AppendJSON(nil)); err != nil || whole {
				return err
			}
			return &exit{code: exitRefused}
		}),
	}
	cmd.Flags().StringVar(&id, "id", "", "id of the execution, where the history does not tell it")
	return cmd
}

// forPeople is a hint where a text is no JSON, most likely a history as it is
// shown to people.
func forPeople(text []byte) string {
	if start := bytes.TrimSpace(text); len(start) > 0 && start[0] != '{' && start[0] != '[' {
		return "; `perigee history ID --json` prints a history as it is read here"
	}
	return ""
}

// doubts says what keeps a state from being the whole truth: gaps, and events
// of types that are not known. whole is false where there is a gap.
func (a *app) doubts(records []history.Record) (whole bool) {
	var unknown []string
	skipped := 0
	var last uint64
	whole = true
	for _, r := range records {
		if r.Seq != last+1 {
			whole = false
			a.print.Warn("replay: event %d follows event %d: the history has a gap or is out of order", r.Seq, last)
		}
		last = r.Seq
		if u, ok := r.Event.(history.Unknown); ok {
			skipped++
			if name := string(u.Name); !slices.Contains(unknown, name) {
				unknown = append(unknown, name)
			}
		}
	}
	if skipped > 0 {
		a.print.Warn("replay: %s skipped, of types that this release does not know: %s", plural(skipped, "event"), strings.Join(unknown, ", "))
	}
	return whole
}
