package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"perigee/local/cli"
	"perigee/sdk/go/client"
)

// TestMain lets this test binary be `perigee` for the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"perigee": func() {
			os.Exit(cli.Main(os.Args[1:], cli.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv}))
		},
	})
}

// The scripts in testdata read like sessions at a terminal. Beside the commands
// of testscript they have
//
//	serve [FLAG…]               starts `perigee dev` on a free port and sets PERIGEE_URL
//	stop                        stops it gracefully, which must succeed
//	work WORKER TASK@VERSION OUTPUT     takes one task and completes it with OUTPUT
//	! work WORKER TASK@VERSION CODE     takes one task and fails the attempt with CODE
//	status CODE COMMAND ARG…    runs a command that must end with exit code CODE
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("NO_COLOR", "1")
			e.Setenv("TZ", "UTC")
			// Nothing listens there: a command that forgets its server must not find one.
			e.Setenv("PERIGEE_URL", "http://127.0.0.1:1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": serve, "stop": stop, "work": work, "status": status,
		},
	})
}

const patience = 20 * time.Second

// serving are the servers by the folder of their script: a script has one.
type serving struct {
	cmd   *exec.Cmd
	ended chan error
}

var (
	lock    sync.Mutex
	servers = map[string]*serving{}
)

func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("serve takes no !; use: status CODE perigee dev …")
	}
	perigee, err := exec.LookPath("perigee")
	ts.Check(err)
	cmd := exec.Command(perigee, append([]string{"dev", "--json", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "PERIGEE_LOG_LEVEL=warn")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	s := &serving{cmd, make(chan error, 1)}
	line, _ := bufio.NewReader(out).ReadBytes('\n')
	go func() { s.ended <- cmd.Wait() }()
	ts.Defer(func() { _ = s.cmd.Process.Kill() }) // it may have ended already
	var ready struct{ URL, Database string }
	if err := json.Unmarshal(line, &ready); err != nil || ready.URL == "" {
		ts.Fatalf("serve: expected a line with url and database, got %q", line)
	}
	ts.Setenv("PERIGEE_URL", ready.URL)
	lock.Lock()
	defer lock.Unlock()
	servers[ts.Getenv("WORK")] = s
}

func stop(ts *testscript.TestScript, _ bool, _ []string) {
	lock.Lock()
	s := servers[ts.Getenv("WORK")]
	lock.Unlock()
	if s == nil {
		ts.Fatalf("stop: nothing was started by serve")
	}
	ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-s.ended:
		ts.Check(err)
	case <-time.After(patience):
		ts.Fatalf("stop: the server did not end within %v", patience)
	}
}

// work is a worker that takes one task and goes away.
func work(ts *testscript.TestScript, fails bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: work WORKER TASK@VERSION OUTPUT, or ! work WORKER TASK@VERSION CODE")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := client.New(ts.Getenv("PERIGEE_URL"), client.Options{Token: ts.Getenv("PERIGEE_TOKEN")})
	ts.Check(err)
	name, version, _ := strings.Cut(args[1], "@")
	session, err := c.Register(ctx, client.RegisterRequest{
		WorkerID: args[0], Runtime: "go", Contracts: []client.Contract{{TaskName: name, ContractVersion: version}},
	})
	ts.Check(err)
	polled, err := c.Poll(ctx, client.PollRequest{SessionID: session.WorkerSessionID, Wait: 10 * time.Second})
	ts.Check(err)
	if len(polled.Tasks) != 1 {
		ts.Fatalf("work: no task came")
	}
	result := client.Result{Token: polled.Tasks[0].Token, Output: json.RawMessage(args[2])}
	if fails {
		result = client.Result{Token: result.Token, Error: &client.TaskError{Code: args[2], Message: "the worker says no", Retryable: true}}
	}
	reported, err := c.Report(ctx, result, "")
	ts.Check(err)
	if !reported.Accepted {
		ts.Fatalf("work: the result was not accepted: %s", reported.Reason)
	}
	ts.Check(c.Unregister(ctx, session.WorkerSessionID))
}

// status runs a command that must end with the exit code that is its first
// argument.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE COMMAND ARG…")
	}
	code := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ended, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%s: %v", args[1], err)
		}
		code = fmt.Sprint(ended.ExitCode())
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}
