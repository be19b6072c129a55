package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	_ "net/http/pprof" // for `bench serve`
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"perigee/local/cli"
	"perigee/sdk/go/client"
	"perigee/sdk/go/worker"
)

// stopTime is how long a process may take to end before it is killed.
const stopTime = 20 * time.Second

// process is a program that this one started.
type process struct {
	cmd   *exec.Cmd
	out   *bufio.Reader // its standard output
	ended chan error
}

// startProcess starts a program and waits for the lines on its standard output
// that say that it is ready; each is decoded into one of lines.
func startProcess(program string, args []string, lines ...any) (*process, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "PERIGEE_LOG_LEVEL=warn")
	// A worker ends when its input does: when this program is gone.
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd, bufio.NewReader(out), make(chan error, 1)}
	for _, into := range lines {
		text, err := p.out.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			_ = cmd.Process.Kill()
			return nil, errors.Join(fmt.Errorf("start %s: expected a line of JSON, got %q: %w", filepath.Base(program), text, err), cmd.Wait())
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, p.out) // until the program ends
		p.ended <- cmd.Wait()
	}()
	return p, nil
}

// stop ends the program gracefully, or kills it.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(stopTime):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// residentMiB is the program's memory.
func (p *process) residentMiB() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024, err
		}
	}
	return 0, errors.New("no VmRSS in the process's status")
}

// cpuTime is what a process has used of the processors, 0 for one that is gone.
func cpuTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The fields after the name, which stands in parentheses: 11 and 12 are user
	// and system time in hundredths of a second.
	_, rest, _ := strings.Cut(string(text), ") ")
	var ticks int64
	if fields := strings.Fields(rest); len(fields) > 12 {
		for _, field := range fields[11:13] {
			n, _ := strconv.ParseInt(field, 10, 64) // the kernel's own figures
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// server is a running `perigee dev`.
type server struct {
	*process
	client   *client.Client
	database string
	debug    string // URL of its profiles; "" for the real binary
}

// startServer starts the real binary on a database or, with profiles, this
// program in its place.
func (s *suite) startServer(database string, profiles bool) (*server, error) {
	var debug, ready struct{ URL string }
	program, args, lines := s.perigee, []string{"dev"}, []any{&ready}
	if profiles {
		program, args, lines = s.self, []string{"serve"}, []any{&debug, &ready}
	}
	args = append(args, "--json", "--listen", "127.0.0.1:0", "--database", database, "--migrate")
	args = append(args, strings.Fields(s.options.serverArgs)...)
	p, err := startProcess(program, args, lines...)
	if err != nil {
		return nil, err
	}
	c, err := client.New(ready.URL, client.Options{RetryFor: client.NoRetry})
	if err != nil {
		p.stop()
		return nil, err
	}
	return &server{p, c, database, debug.URL}, nil
}

// startWorkers starts the worker processes of a server.
func (s *suite) startWorkers(srv *server) (workers []*process, err error) {
	for range s.options.workers {
		p, err := startProcess(s.self, []string{"worker", "-url", srv.client.URL(),
			"-slots", strconv.Itoa(s.options.slots), "-processors", strconv.Itoa(s.options.processors)})
		if err != nil {
			stopAll(workers)
			return nil, err
		}
		workers = append(workers, p)
	}
	return workers, nil
}

func stopAll(list []*process) {
	for _, p := range list {
		p.stop()
	}
}

// work is `bench worker`.
func work(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("bench worker", flag.ContinueOnError)
	url := fs.String("url", "", "the server's")
	slots := fs.Int("slots", 16, "tasks at once")
	processors := fs.Int("processors", 0, "to use; 0: all")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *processors > 0 {
		runtime.GOMAXPROCS(*processors)
	}
	w, err := newWorker(*url, *slots)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent does
		stop()
	}()
	return w.Run(ctx)
}

func newWorker(url string, slots int) (*worker.Worker, error) {
	c, err := client.New(url, client.Options{})
	if err != nil {
		return nil, err
	}
	w, err := worker.New(c, worker.Options{
		Concurrency: slots, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return nil, err
	}
	w.Handle(taskName, taskVersion, func(_ context.Context, t *worker.Task) (any, error) { return step(t.Input) })
	return w, nil
}

// serve is `bench serve`: perigee dev with profiles on a port of their own, of
// which the first line on standard output tells.
func serve(args []string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, nil) }() // as long as the process lives
	fmt.Printf("{\"url\":\"http://%s\"}\n", listener.Addr())
	code := cli.Main(append([]string{"dev"}, args...), cli.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv})
	if code != 0 {
		return fmt.Errorf("the server ended with exit code %d", code)
	}
	return nil
}
