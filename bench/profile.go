package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// profile is `bench profile`: what the server spends its time and its memory on
// while a scenario runs again and again.
func profile(ctx context.Context, args []string) error {
	var o options
	fs := flags("bench profile", &o)
	store := fs.String("store", "postgres", "sqlite or postgres")
	scenario := fs.String("scenario", "S1", "S1, S2, S3, S4, many, wide or writers")
	seconds := fs.Int("seconds", 20, "how long")
	out := fs.String("out", ".build/profile", "folder for the profiles")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	s, err := setUp(ctx, o)
	if err != nil {
		return err
	}
	defer s.tearDown()
	s.setting = append(s.setting, "shared_preload_libraries=pg_stat_statements", "track_io_timing=on")
	d, done, err := s.deploy(ctx, *store, true)
	if err != nil {
		return err
	}
	defer done()
	run, ok := map[string]func(context.Context) error{
		"S1": d.throughput, "S2": d.latency, "S3": d.fanOut, "S4": d.long, "many": d.many, "wide": d.wide, "writers": d.writers,
	}[*scenario]
	if !ok {
		return fmt.Errorf("-scenario: %q is none of S1, S2, S3, S4, many, wide and writers", *scenario)
	}
	if err := d.resetStatements(ctx); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		for running.Err() == nil {
			if err := run(running); err != nil && running.Err() == nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	err = d.fetchProfiles(ctx, *out, *store+"-"+*scenario, time.Duration(*seconds)*time.Second)
	stop()
	return errors.Join(err, <-ended, d.printStatements(ctx), s.sheet.print(io.Discard, os.Stderr))
}

// fetchProfiles writes a CPU profile and what was allocated meanwhile, and
// prints the top of both.
func (d *deployment) fetchProfiles(ctx context.Context, folder, name string, last time.Duration) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, p := range []struct{ kind, sample, query string }{
		{"cpu", "cpu", fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", last.Seconds())},
		{"allocs", "alloc_space", fmt.Sprintf("/debug/pprof/allocs?seconds=%.0f", min(last, 10*time.Second).Seconds())},
	} {
		path := filepath.Join(folder, name+"-"+p.kind+".pprof")
		if err := fetch(ctx, d.server.debug+p.query, path); err != nil {
			return fmt.Errorf("%s profile: %w", p.kind, err)
		}
		top := exec.CommandContext(ctx, "go", "tool", "pprof", "-sample_index="+p.sample, "-top", "-cum", "-nodecount=70", path)
		top.Stdout, top.Stderr = os.Stdout, os.Stderr
		if err := top.Run(); err != nil {
			return err
		}
	}
	return nil
}

func fetch(ctx context.Context, url, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, resp.Body)
	return errors.Join(err, file.Close())
}

// onDatabase runs f on the deployment's own database, where that is Postgres.
func (d *deployment) onDatabase(ctx context.Context, f func(conn *pgx.Conn) error) error {
	if d.store != "postgres" {
		return nil
	}
	conn, err := pgx.Connect(ctx, d.server.database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return f(conn)
}

func (d *deployment) resetStatements(ctx context.Context) error {
	return d.onDatabase(ctx, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS pg_stat_statements`); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, `SELECT pg_stat_statements_reset()`)
		return err
	})
}

const statementsSQL = `
SELECT calls, total_exec_time, mean_exec_time, shared_blks_hit / calls, wal_bytes::bigint / calls, left(regexp_replace(query, '\s+', ' ', 'g'), 100)
FROM pg_stat_statements
ORDER BY total_exec_time DESC
LIMIT 16`

// printStatements shows what the database spent its time on.
func (d *deployment) printStatements(ctx context.Context) error {
	return d.onDatabase(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, statementsSQL)
		if err != nil {
			return err
		}
		fmt.Println("\n   calls  total ms   mean ms   pages  WAL B  statement")
		var calls, pages, wal int64
		var total, mean float64
		var text string
		_, err = pgx.ForEachRow(rows, []any{&calls, &total, &mean, &pages, &wal, &text}, func() error {
			fmt.Printf("%8d  %8.0f  %8.3f  %6d  %5d  %s\n", calls, total, mean, pages, wal, text)
			return nil
		})
		return err
	})
}
