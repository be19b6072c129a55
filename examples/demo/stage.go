package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"perigee/sdk/go/client"
)

const (
	// Short, so that a worker that was killed is missed within seconds. A server
	// in earnest waits 30 s.
	sessionTimeout    = "2s"
	heartbeatInterval = "500ms"

	startTimeout = 30 * time.Second
)

// programs are what the demo starts.
type programs struct{ perigee, warehouse, python, payments, definition string }

// check says what is missing, and what to do.
func (p programs) check() error {
	for _, file := range []string{p.perigee, p.warehouse, p.payments, p.definition} {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%w: run `make demo` in the top folder, which builds what is needed", err)
		}
	}
	if _, err := exec.LookPath(p.python); err != nil {
		return fmt.Errorf("the demo needs Python 3: %w (name another interpreter with --python)", err)
	}
	return nil
}

// stage is the server, the workers and what they write.
type stage struct {
	programs
	dir      string
	client   *client.Client
	server   *process
	payments *process
	all      []*process
	notes    []note
}

// note is something that the demo did to an order's world.
type note struct {
	at   time.Time
	text string
}

func newStage(with programs) (*stage, error) {
	if err := with.check(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "perigee-demo-")
	if err != nil {
		return nil, err
	}
	return &stage{programs: with, dir: dir}, nil
}

func (s *stage) database() string      { return filepath.Join(s.dir, "perigee.db") }
func (s *stage) bankBook() string      { return filepath.Join(s.dir, "bank.jsonl") }
func (s *stage) warehouseBook() string { return filepath.Join(s.dir, "warehouse.jsonl") }

func (s *stage) note(format string, args ...any) {
	s.notes = append(s.notes, note{time.Now(), fmt.Sprintf(format, args...)})
}

// open starts everything and registers the workflow.
func (s *stage) open(ctx context.Context) error {
	if err := s.startServer(ctx, "127.0.0.1:0"); err != nil {
		return err
	}
	source, err := os.ReadFile(s.definition)
	if err != nil {
		return err
	}
	if _, err := s.client.RegisterDefinition(ctx, source, client.YAML); err != nil {
		for _, f := range client.Faults(err) {
			err = fmt.Errorf("%w\n  line %d: %s", err, f.Line, f.Message)
		}
		return err
	}
	p, err := start("warehouse-1", s.dir, false, s.warehouse, "--server", s.client.URL(), "--id", "warehouse-1", "--ledger", s.warehouseBook())
	if err != nil {
		return err
	}
	s.all = append(s.all, p)
	if err := s.startPayments("payments-1"); err != nil {
		return err
	}
	return s.workersOnline(ctx, 2)
}

// startServer starts `perigee dev` and reads where it listens from the line
// that it prints when it is ready.
func (s *stage) startServer(ctx context.Context, listen string) error {
	p, err := start("server", s.dir, true, s.perigee, "dev", "--listen", listen, "--database", s.database(), "--json",
		"--session-timeout", sessionTimeout, "--heartbeat-interval", heartbeatInterval)
	if err != nil {
		return err
	}
	s.server = p
	s.all = append(s.all, p)
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(p.stdout)
		line, _ := lines.ReadString('\n')
		ready <- line
		_, _ = io.Copy(io.Discard, lines)
		p.wait() // only after all is read, as exec asks
	}()
	var line string
	select {
	case line = <-ready:
	case <-time.After(startTimeout):
		return fmt.Errorf("the server was not ready within %v", startTimeout)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var where struct{ URL string }
	if err := json.Unmarshal([]byte(line), &where); err != nil || where.URL == "" {
		return fmt.Errorf(`the server did not start: expected a line like {"url":"http://…"}, got %q`, line)
	}
	s.client, err = client.New(where.URL, client.Options{})
	return err
}

// restartServer starts the server again on its database and address.
func (s *stage) restartServer(ctx context.Context) error {
	u, err := url.Parse(s.client.URL())
	if err != nil {
		return err
	}
	return s.startServer(ctx, u.Host)
}

func (s *stage) startPayments(id string) error {
	p, err := start(id, s.dir, false, s.python, s.programs.payments, "--server", s.client.URL(), "--id", id, "--ledger", s.bankBook())
	if err != nil {
		return err
	}
	s.payments = p
	s.all = append(s.all, p)
	return nil
}

// workersOnline waits until n workers are registered.
func (s *stage) workersOnline(ctx context.Context, n int) error {
	return s.until(ctx, fmt.Sprintf("%d workers are online", n), func() (bool, error) {
		workers, err := s.client.Workers(ctx)
		online := 0
		for _, w := range workers {
			if w.Online {
				online++
			}
		}
		return online >= n, err
	})
}

// until looks every few milliseconds until something is so.
func (s *stage) until(ctx context.Context, what string, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("waited %v until %s", startTimeout, what))
	defer cancel()
	for {
		ok, err := so()
		if ok || err != nil {
			return err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// close ends all processes, the workers before the server so that they can
// say goodbye.
func (s *stage) close() {
	for i := len(s.all) - 1; i >= 0; i-- {
		if p := s.all[i]; p != s.server && p.running() {
			p.stop()
		}
	}
	if s.server != nil && s.server.running() {
		s.server.stop()
	}
}

// withLogs adds the ends of the logs to an error.
func (s *stage) withLogs(err error) error {
	var text strings.Builder
	seen := map[string]bool{}
	for _, p := range s.all {
		if !seen[p.log] {
			seen[p.log] = true
			fmt.Fprintf(&text, "\n--- log of %s\n%s", p.name, p.tail(20))
		}
	}
	return fmt.Errorf("%w%s", err, text.String())
}
