// Command bench measures Perigee: scenarios through real HTTP with real worker
// processes on SQLite and Postgres, what the machine allows at most in the same
// run, and what single calls cost, counted. It starts everything that it needs
// and leaves nothing behind.
//
//	bench             all figures as JSON lines on standard output, a table on standard error
//	bench profile     CPU and allocation profiles of the server under a scenario
//
// The rest is for itself: `bench worker` is a worker process, `bench serve` the
// server with profiles. docs/performance.md explains the figures. Start reading
// at run, then scenarios.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// options say what to measure.
type options struct {
	stores     []string // "sqlite", "postgres"
	parts      []string // of allParts
	reps       int      // repetitions of the scenarios
	scale      float64  // of the numbers of workflows; 1: as documented
	slots      int      // tasks that a worker runs at once
	processors int      // that a worker process may use; 0: all
	workers    int      // worker processes
	dir        string   // for databases: a real disk
	peers      string   // folder of the peers; "": none
	perigee    string   // the binary to measure; "": built anew
	postgres   string   // further settings of the Postgres server
	serverArgs string   // further flags of the server
}

// allParts are the parts of a run, in order.
var allParts = []string{"scenarios", "calls", "pure", "memory"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	name := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	switch name {
	case "":
		o, err := parse(args)
		if err != nil {
			return err
		}
		return run(ctx, o)
	case "worker":
		return work(ctx, args)
	case "serve":
		return serve(args)
	case "profile":
		return profile(ctx, args)
	}
	return fmt.Errorf("%q is no command: expected none, profile, worker or serve", name)
}

// flags are those that all measuring commands have.
func flags(name string, o *options) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.IntVar(&o.reps, "reps", 3, "repetitions of the scenarios; figures are medians")
	fs.Float64Var(&o.scale, "scale", 1, "share of the documented numbers of workflows")
	// The tasks take no time: more processors would only be woken for nothing.
	fs.IntVar(&o.processors, "worker-processors", 1, "processors that a worker process may use; 0: all")
	// More than any scenario runs at once: what is measured is the server, not how
	// long tasks wait for a slot of the worker's.
	fs.IntVar(&o.slots, "slots", 160, "tasks that a worker process runs at once")
	fs.IntVar(&o.workers, "workers", 1, "worker processes")
	fs.StringVar(&o.dir, "dir", "/var/tmp", "where databases are made: on a real disk")
	fs.StringVar(&o.perigee, "perigee", "", "the binary to measure; \"\": built from this checkout")
	fs.StringVar(&o.postgres, "postgres", "", "further settings of the Postgres server, separated by spaces")
	fs.StringVar(&o.serverArgs, "server-args", "", "further flags of perigee dev, separated by spaces")
	return fs
}

func parse(args []string) (options, error) {
	var o options
	var stores, parts string
	fs := flags("bench", &o)
	fs.StringVar(&stores, "stores", "sqlite,postgres", "which stores")
	fs.StringVar(&parts, "parts", strings.Join(allParts, ","), "which parts")
	fs.StringVar(&o.peers, "peers", "", "folder of other engines to measure beside this one; \"\": none")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	o.stores, o.parts = strings.Split(stores, ","), strings.Split(parts, ",")
	for _, part := range o.parts {
		if !slices.Contains(allParts, part) {
			return o, fmt.Errorf("-parts: %q is none of %s", part, strings.Join(allParts, ", "))
		}
	}
	for _, store := range o.stores {
		if store != "sqlite" && store != "postgres" {
			return o, fmt.Errorf("-stores: %q is neither sqlite nor postgres", store)
		}
	}
	if o.reps < 1 || o.scale <= 0 {
		return o, errors.New("-reps must be at least 1 and -scale above 0")
	}
	return o, nil
}

// run measures what was asked for and prints it.
func run(ctx context.Context, o options) error {
	s, err := setUp(ctx, o)
	if err != nil {
		return err
	}
	defer s.tearDown()
	for _, part := range o.parts {
		var err error
		switch part {
		case "scenarios":
			err = s.scenarios(ctx)
		case "calls":
			err = s.calls(ctx)
		case "pure":
			err = s.pure(ctx)
		case "memory":
			err = s.memory(ctx)
		}
		if err != nil {
			// What was measured so far is worth something.
			return errors.Join(fmt.Errorf("%s: %w", part, err), s.sheet.print(os.Stdout, os.Stderr))
		}
	}
	return s.sheet.print(os.Stdout, os.Stderr)
}
