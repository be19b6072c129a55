package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"perigee/local/console"
)

// Process is what a command has of the process that it runs in.
type Process struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(name string) (value string, set bool)
}

// env is a variable's value, "" where it is not set.
func (p Process) env(name string) string {
	value, _ := p.Env(name)
	return value
}

// app is what the commands share.
type app struct {
	Process
	print  *console.Printer
	remote remote
	zone   *time.Location
}

// impatience is after how long a second signal kills, as it would without us.
// Before, it may be the same one that came twice: from the terminal and from
// whoever passes it on.
const impatience = time.Second

// Main runs a command line and returns the exit code. An interrupt or SIGTERM
// ends the command gracefully, a later one at once.
func Main(args []string, p Process) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { time.AfterFunc(impatience, stop) })
	a := &app{Process: p, print: console.New(p.Out, p.Err, p.env("NO_COLOR")), zone: time.Local}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	return a.finish(ctx, root.ExecuteContext(ctx))
}

const about = `Perigee runs durable workflows: definitions in YAML, workers that poll for tasks,
executions that survive crashes.

On one machine:  perigee dev            and in another terminal
                 perigee deploy examples/order/order.yaml
                 perigee start order-fulfilment --wait '{"order_id": "o-1", "total": 80,
                   "card": "tok_visa", "items": [{"sku": "teapot", "quantity": 1}]}'

The server is found by --server or PERIGEE_URL, else at http://127.0.0.1:7474;
a token by --token-file or PERIGEE_TOKEN. Output is for people; with --json it
is JSON lines, one for each item. docs/cli.md tells more.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "perigee",
		Short:         "Durable workflows",
		Long:          about + "\n\n" + exitCodes,
		Version:       release(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("perigee {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage("%v; see `%s --help`", err, cmd.CommandPath()) })
	root.PersistentFlags().BoolVar(&a.print.JSON, "json", false, "JSON lines instead of words")
	a.remote.flags(root.PersistentFlags())
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"run", "Run a server:", []*cobra.Command{a.dev(), a.lambda(), a.migrate(), a.doctor(), a.token()}},
		{"define", "Definitions:", []*cobra.Command{a.validate(), a.deploy(), a.workflows(), a.retire()}},
		{"executions", "Executions:", []*cobra.Command{
			a.start(), a.ls(), a.show(), a.history(), a.signal(), a.cancel(), a.query(), a.replay(), a.workers(),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	strictHelp(root)
	return root
}

// release is the version that the binary was built from.
func release() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}
