package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"perigee/store/postgres/pgtest"
)

// suite is one run: its processes, folders and figures.
type suite struct {
	options options
	sheet   *sheet
	dir     string   // of this run, removed at its end
	self    string   // this program
	perigee string   // the real binary
	cluster *url.URL // of a Postgres server, without a database; nil until asked for
	setting []string // of that server, beside the usual ones
	stop    []func()
	made    int // databases
}

// setUp makes the run's folder and builds the binary.
func setUp(ctx context.Context, o options) (*suite, error) {
	// Postgres, too, makes its files there.
	if err := os.Setenv("TMPDIR", o.dir); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.dir, "perigee-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for databases: %w (choose another with -dir)", err)
	}
	s := &suite{options: o, sheet: newSheet(), dir: dir, perigee: filepath.Join(dir, "perigee"), setting: strings.Fields(o.postgres)}
	s.stop = append(s.stop, func() { _ = os.RemoveAll(dir) })
	if s.self, err = os.Executable(); err != nil {
		s.tearDown()
		return nil, err
	}
	if o.perigee != "" {
		s.perigee = o.perigee
		return s, nil
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", s.perigee, "perigee/local/perigee")
	if out, err := build.CombinedOutput(); err != nil {
		s.tearDown()
		return nil, fmt.Errorf("build perigee: %w\n%s", err, out)
	}
	return s, nil
}

func (s *suite) tearDown() {
	for i := len(s.stop) - 1; i >= 0; i-- {
		s.stop[i]()
	}
}

// say tells a person how far the run is.
func (s *suite) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// database makes a fresh database of a store: a file, or a URL.
func (s *suite) database(ctx context.Context, store string) (string, error) {
	s.made++
	name := fmt.Sprintf("bench_%d", s.made)
	if store == "sqlite" {
		return filepath.Join(s.dir, name+".db"), nil
	}
	return s.createDatabase(ctx, name)
}

// createDatabase makes a database on a Postgres server that this run starts
// when it is first needed.
func (s *suite) createDatabase(ctx context.Context, name string) (string, error) {
	if s.cluster == nil {
		base, stop, err := pgtest.Start(s.setting...)
		if err != nil {
			return "", err
		}
		s.cluster, s.stop = base, append(s.stop, stop)
	}
	if err := s.onServer(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `CREATE DATABASE `+name)
		return err
	}); err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	return s.urlOf(name), nil
}

func (s *suite) urlOf(database string) string {
	u := *s.cluster
	u.Path = "/" + database
	return u.String()
}

// onServer runs f on the Postgres server's own database.
func (s *suite) onServer(ctx context.Context, f func(conn *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.urlOf("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return f(conn)
}

// traffic is what a Postgres server wrote.
type traffic struct {
	transactions int64 // that wrote or locked, committed or not
	walBytes     int64
}

// A transaction gets a number when it first writes; this statement takes none.
const trafficSQL = `
SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint`

func (s *suite) traffic(ctx context.Context) (traffic, error) {
	var t traffic
	err := s.onServer(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, trafficSQL).Scan(&t.transactions, &t.walBytes)
	})
	return t, err
}

// checkpoint makes everybody who is compared begin alike: none is pending, and the
// log takes each page as a whole that is changed for the first time.
func (s *suite) checkpoint(ctx context.Context, store string) error {
	if store != "postgres" {
		return nil
	}
	return s.onServer(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `CHECKPOINT`)
		return err
	})
}

// isTmpfs would make every commit look free.
func isTmpfs(dir string) bool {
	out, err := exec.Command("stat", "-f", "-c", "%T", dir).Output()
	return err == nil && strings.TrimSpace(string(out)) == "tmpfs"
}
