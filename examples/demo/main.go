// Command demo shows Perigee at work: it starts a server with a temporary
// SQLite file and the two workers of the order example, all real processes that
// talk over HTTP, and runs five orders:
//
//  1. one where all goes well;
//  2. one whose card is declined, so that everything is undone in reverse order;
//  3. one that needs an approval, which comes as a signal;
//  4. one whose worker is killed with -9 in the middle of a charge;
//  5. one whose server is killed with -9 in the middle of a charge.
//
// It prints the timeline of each from its history, checks what really happened
// against the books of the bank and the warehouse, and exits 0 only if each
// order ended as it should. Run it with `make demo`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// patience bounds the whole demo.
const patience = 3 * time.Minute

func main() {
	var with programs
	flag.StringVar(&with.perigee, "perigee", "bin/perigee", "the server's `binary`")
	flag.StringVar(&with.warehouse, "warehouse", "bin/order-worker", "the Go worker's `binary`, built from examples/order")
	flag.StringVar(&with.python, "python", "python3", "the Python `interpreter`")
	flag.StringVar(&with.payments, "payments", "examples/order/worker.py", "the Python worker's `file`")
	flag.StringVar(&with.definition, "definition", "examples/order/order.yaml", "the workflow's `file`")
	keep := flag.Bool("keep", false, "keep the temporary folder with the database, the books and the logs")
	flag.Parse()

	signalled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(signalled, patience, fmt.Errorf("the demo took longer than %v", patience))
	defer cancel()
	err := run(ctx, with, *keep)
	switch {
	case err == nil:
		return
	case signalled.Err() != nil:
		fmt.Fprintln(os.Stderr, "demo: interrupted; its processes have ended")
	default:
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	os.Exit(1)
}

// run sets the stage, plays the orders and clears up, also after a failure.
func run(ctx context.Context, with programs, keep bool) (err error) {
	began := time.Now()
	s, err := newStage(with)
	if err != nil {
		return err
	}
	defer func() {
		s.close()
		switch {
		case keep:
			fmt.Println("\nKept:", s.dir)
		default:
			err = firstOf(err, os.RemoveAll(s.dir))
		}
	}()
	if err := s.open(ctx); err != nil {
		return s.withLogs(err)
	}
	fmt.Printf("Server %s, database %s\nWorkers warehouse-1 (Go) and payments-1 (Python)\n", s.client.URL(), s.database())
	wrong := 0
	for i, o := range orders() {
		ok, err := s.play(ctx, i+1, o)
		if err != nil {
			return s.withLogs(fmt.Errorf("%s: %w", o.id, err))
		}
		if !ok {
			wrong++
		}
	}
	if wrong > 0 {
		return s.withLogs(fmt.Errorf("%d of %d orders did not end as they should", wrong, len(orders())))
	}
	fmt.Printf("\nAll %d orders ended as they should, in %.0f s.\n", len(orders()), time.Since(began).Seconds())
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
