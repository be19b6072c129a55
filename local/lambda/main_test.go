package lambda_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"perigee/local/lambda"
	"perigee/store/postgres/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(probeMark) != "" {
		beProbe()
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	defer func() {
		if functionsDir != "" {
			os.RemoveAll(functionsDir)
		}
	}()
	return pgtest.Main(m)
}

var functionsDir string

// functions builds the functions as for Lambda, once for all tests.
var functions = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "perigee-functions-")
	if err != nil {
		return "", err
	}
	functionsDir = dir
	for _, name := range []string{"api", "worker", "tick", "migrate"} {
		build := exec.Command("go", "build", "-tags", "lambda.norpc", "-ldflags", "-s -w -buildid=",
			"-o", filepath.Join(dir, name, "bootstrap"), "perigee/functions/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build function %s: %w\n%s", name, err, out)
		}
	}
	return dir, nil
})

func built(t *testing.T) string {
	t.Helper()
	dir, err := functions()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// output is what functions have written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// serve runs an installation until the test ends.
func serve(t *testing.T, o lambda.Options) (url string, out *output) {
	t.Helper()
	out = &output{}
	o.Functions, o.Listen = built(t), "127.0.0.1:0"
	o.Log, o.Logger = out, slog.New(slog.NewJSONHandler(out, nil))
	o.Environment = append(o.Environment, "PERIGEE_AUTH=jwt", "PERIGEE_STACK=test")
	if o.Open == nil {
		o.Open = func(context.Context) (bool, error) { return true, nil }
	}
	ready := make(chan string, 1)
	o.Ready = func(r lambda.Running) error { ready <- r.URL; return nil }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- lambda.Run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the installation: %v", err)
		}
		if t.Failed() {
			t.Logf("the functions wrote:\n%.20000s", out)
		}
	})
	select {
	case url = <-ready:
		return url, out
	case err := <-done:
		done <- nil
		t.Fatalf("the installation did not start: %v\n%s", err, out)
	case <-time.After(time.Minute):
		t.Fatalf("the installation did not start\n%s", out)
	}
	return "", nil
}
