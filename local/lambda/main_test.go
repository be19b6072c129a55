package lambda_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"perigee/local/lambda"
	"perigee/local/lambda/lambdatest"
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
	return dir, lambdatest.Functions(context.Background(), dir)
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
