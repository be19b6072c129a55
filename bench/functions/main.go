// Command functions measures what is the functions' own: the size of their
// binaries, their start beside that of a function which does nothing, and how
// late timers fire in tick mode precise. Everything runs under `perigee lambda`
// on this machine, on a Postgres that it starts for itself.
//
//	go run ./bench/functions
//	go run ./bench/functions -timers 0    starts only
//
// docs/performance.md shows its figures.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"perigee/local/lambda"
	"perigee/local/lambda/lambdatest"
	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
)

func main() {
	timers := flag.Int("timers", 1000, "timers whose lateness is measured; 0: none")
	starts := flag.Int("starts", 20, "starts of each function")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *starts, *timers); err != nil {
		fmt.Fprintln(os.Stderr, "functions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, starts, timers int) error {
	dir, err := os.MkdirTemp("", "perigee-bench-functions-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := lambdatest.Functions(ctx, dir); err != nil {
		return err
	}
	if err := lambdatest.Bootstrap(ctx, filepath.Join(dir, "hello", "bootstrap"), "perigee/bench/functions/hello"); err != nil {
		return err
	}
	base, stop, err := pgtest.Start()
	if err != nil {
		return err
	}
	defer stop()
	database, err := migrated(ctx, base)
	if err != nil {
		return err
	}
	if err := measureStarts(ctx, dir, database, starts); err != nil {
		return err
	}
	if timers > 0 {
		return measureTimers(ctx, dir, database, timers)
	}
	return nil
}

func migrated(ctx context.Context, base *url.URL) (database string, err error) {
	u := *base
	u.Path = "/postgres"
	st, err := postgres.Open(ctx, postgres.Options{URL: u.String()})
	if err != nil {
		return "", err
	}
	defer st.Close()
	_, _, err = st.Migrate(ctx)
	return u.String(), err
}

// calls are what each function is started with: the api reads, the worker
// registers, the tick makes one pass, migrate finds nothing to do.
var calls = []struct{ name, payload string }{
	{"hello", `{}`},
	{"api", event("GET", "/v1/executions", "")},
	{"worker", event("POST", "/v1/workers/register", `{\"worker_id\":\"w\",\"runtime\":\"go\",\"contracts\":[{\"task_name\":\"a\",\"contract_version\":\"1\"}]}`)},
	{"tick", `{}`},
	{"migrate", `{}`},
}

func event(method, path, body string) string {
	return fmt.Sprintf(`{"version":"2.0","rawPath":%q,"headers":{"host":"h","content-type":"application/json"},"body":"%s","requestContext":{"stage":"$default",`+
		`"authorizer":{"jwt":{"claims":{"perigee_role":"admin"}}},"http":{"method":%q,"path":%q}}}`, path, body, method, path)
}

// measureStarts starts each function some times, in turn, so that what else the
// machine does falls on all alike.
func measureStarts(ctx context.Context, dir, database string, n int) error {
	type times struct{ init, first, warm []time.Duration }
	measured := map[string]*times{}
	var log bytes.Buffer
	for range n {
		for _, c := range calls {
			m := measured[c.name]
			if m == nil {
				m = &times{}
				measured[c.name] = m
			}
			f := &lambda.Function{
				Name: c.name, Bootstrap: filepath.Join(dir, c.name, "bootstrap"), Timeout: 10 * time.Second, Concurrency: 1, MemoryMB: 512, Log: &log,
				Environment: []string{"PERIGEE_DATABASE=" + database, "PERIGEE_AUTH=jwt", "PERIGEE_TICK_MODE=minute"},
				Started:     func(d time.Duration) { m.init = append(m.init, d) },
			}
			if err := startAndCall(ctx, f, c.payload, &m.first, &m.warm); err != nil {
				return fmt.Errorf("%s: %w\n%s", c.name, err, log.String())
			}
		}
	}
	fmt.Printf("%-8s %9s %10s %10s %12s %10s\n", "", "size", "init p50", "init p90", "first call", "warm call")
	for _, c := range calls {
		info, err := os.Stat(filepath.Join(dir, c.name, "bootstrap"))
		if err != nil {
			return err
		}
		m := measured[c.name]
		fmt.Printf("%-8s %6.1f MB %7.1f ms %7.1f ms %9.1f ms %7.1f ms\n", c.name, float64(info.Size())/1e6,
			ms(quantile(m.init, 0.5)), ms(quantile(m.init, 0.9)), ms(quantile(m.first, 0.5)-quantile(m.init, 0.5)), ms(quantile(m.warm, 0.5)))
	}
	return nil
}

// startAndCall makes a call that starts a process, and one that does not.
func startAndCall(ctx context.Context, f *lambda.Function, payload string, first, warm *[]time.Duration) error {
	defer f.Close()
	for _, into := range []*[]time.Duration{first, warm} {
		start := time.Now()
		answer, err := f.Call(ctx, []byte(payload))
		if err != nil {
			return err
		}
		*into = append(*into, time.Since(start))
		if strings.Contains(string(answer), `"statusCode":5`) || strings.Contains(string(answer), `"statusCode":4`) {
			return fmt.Errorf("it answered %s", answer)
		}
		for !f.Resting() {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// quantile of unsorted values.
func quantile(values []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// quiet is a log that nobody reads.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))
