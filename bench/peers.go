package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// peer is another engine that a folder beside the project holds a program for.
// Each prints a line of JSON for each scenario. They are not needed: -peers "".
type peer struct {
	name     string // as figures are called
	folder   string // of its program
	mode     string // its -store
	database string // that it expects on the Postgres server; "": none
	only     string // its -scenarios
}

var peersOf = map[string][]peer{
	"postgres": {
		{"dbos", "dbos", "postgres", "peers_dbos", "S1,S2,S3,S4"},
		{"floor", "floor", "pg-snap", "peers_floor", "S1,S2,S4"},
	},
	"sqlite": {
		{"dbos", "dbos", "sqlite", "", "S1,S2,S3,S4"},
		{"floor", "floor", "sqlite-full", "", "S1,S2,S4"},
	},
}

// peers measures the other engines once on the same server and disk.
func (s *suite) peers(ctx context.Context, store string) error {
	if s.options.peers == "" {
		return nil
	}
	for _, p := range peersOf[store] {
		s.say("%s: %s", store, p.name)
		if err := s.peer(ctx, store, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (s *suite) peer(ctx context.Context, store string, p peer) error {
	program, err := s.buildPeer(ctx, p)
	if err != nil {
		return err
	}
	args := []string{"-store", p.mode, "-reps", "1", "-scenarios", p.only,
		"-n1", fmt.Sprint(s.count(1000)), "-n2", fmt.Sprint(s.count(200)), "-n3", fmt.Sprint(s.count(20))}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "PEERS_TMP="+s.dir)
	if p.database != "" {
		prefix, err := s.peerDatabase(ctx, p.database)
		if err != nil {
			return err
		}
		cmd.Env = append(cmd.Env, "PEERS_PG="+prefix)
	}
	if err := s.checkpoint(ctx, store); err != nil {
		return err
	}
	out, err := cmd.Output()
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if e := s.addPeer(store, p, lines.Bytes()); e != nil {
			return errors.Join(e, err)
		}
	}
	return err
}

// buildPeer builds a peer's program, once a run.
func (s *suite) buildPeer(ctx context.Context, p peer) (string, error) {
	program := filepath.Join(s.dir, "peer-"+p.folder)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program, ".")
	build.Dir = filepath.Join(s.options.peers, p.folder)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return program, nil
}

// peerDatabase makes the database that a peer expects anew, and gives the
// server's URL up to its name.
func (s *suite) peerDatabase(ctx context.Context, name string) (prefix string, err error) {
	if s.cluster != nil {
		err := s.onServer(ctx, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	if _, err := s.createDatabase(ctx, name); err != nil {
		return "", err
	}
	u := *s.cluster
	u.Path, u.RawQuery = "/", ""
	return u.String(), nil
}

// addPeer notes one line of a peer.
func (s *suite) addPeer(store string, p peer, text []byte) error {
	var l struct {
		Scenario string
		Note     string
		Seconds  float64
		PerS     float64            `json:"per_s"`
		P50      float64            `json:"p50_ms"`
		Extra    map[string]float64 `json:"extra"`
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("expected a line of JSON, got %q: %w", text, err)
	}
	if strings.Contains(l.Note, "FAILED") {
		return fmt.Errorf("%s: %s", l.Scenario, l.Note)
	}
	add := func(name string, value float64, unit string) { s.sheet.add(p.name+" "+name, store, value, unit) }
	switch scenario, _, _ := strings.Cut(l.Scenario, " "); scenario {
	case "S1":
		add(s1, l.PerS, "workflows/s")
	case "S2":
		add(s2, l.P50, "ms p50")
	case "S3":
		add(s3, l.P50, "ms p50")
	case "S4":
		add(s4, l.Seconds, "s")
		add(s4First, l.Extra["first100_s"], "s")
		add(s4Last, l.Extra["last100_s"], "s")
	}
	return nil
}
