// The warehouse worker of the order example, on sdk/go/worker: it takes
// inventory.reserve, inventory.release, shipping.label, shipping.void and
// shipping.ship. Payments and alerts are taken by worker.py.
//
//	PERIGEE_URL=http://127.0.0.1:7474 go run ./examples/order --id warehouse-1 --ledger warehouse.jsonl
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"perigee/sdk/go/client"
	"perigee/sdk/go/worker"
)

func main() {
	log.SetFlags(log.Ltime)
	server := flag.String("server", envOr("PERIGEE_URL", "http://127.0.0.1:7474"), "URL of the Perigee server")
	id := flag.String("id", "warehouse-1", "the worker's name in histories")
	path := flag.String("ledger", "warehouse.jsonl", "what the warehouse did, a file of JSON lines")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *server, *id, *path); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, server, id, path string) error {
	book, err := openLedger(path)
	if err != nil {
		return err
	}
	defer book.close()
	c, err := client.New(server, client.Options{
		Token: os.Getenv("PERIGEE_TOKEN"),
		OnRetry: func(err error, pause time.Duration) {
			log.Printf("server away (%v); again in %.1f s", err, pause.Seconds())
		},
	})
	if err != nil {
		return err
	}
	w, err := worker.New(c, worker.Options{WorkerID: id, Concurrency: 4})
	if err != nil {
		return err
	}
	house := warehouse{book}
	w.Handle("inventory.reserve", "1.0.0", house.reserve)
	w.Handle("inventory.release", "1.0.0", house.release)
	w.Handle("shipping.label", "1.0.0", house.label)
	w.Handle("shipping.void", "1.0.0", house.void)
	w.Handle("shipping.ship", "1.0.0", house.ship)
	return w.Run(ctx)
}

func envOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}
