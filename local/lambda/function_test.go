package lambda_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"perigee/local/lambda"
)

// probeMark makes the test binary a function that does as it is told.
const probeMark = "PERIGEE_LAMBDA_PROBE"

// probe tells one what to do.
type probe struct {
	Sleep  time.Duration
	Exit   bool
	Fail   string
	Answer int // bytes
}

// told is a probe's answer.
type told struct {
	PID    int
	Ticks  int // of a goroutine that runs every 10 ms
	Padded string
}

func beProbe() {
	if os.Getenv(probeMark) == "broken" {
		fmt.Println("no such setting")
		os.Exit(1)
	}
	var mu sync.Mutex
	ticks := 0
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			mu.Lock()
			ticks++
			mu.Unlock()
		}
	}()
	awslambda.Start(func(_ context.Context, p probe) (told, error) {
		time.Sleep(p.Sleep)
		if p.Exit {
			os.Exit(3)
		}
		if p.Fail != "" {
			return told{}, errors.New(p.Fail)
		}
		mu.Lock()
		defer mu.Unlock()
		return told{os.Getpid(), ticks, strings.Repeat("x", p.Answer)}, nil
	})
}

func newProbe(t *testing.T, change func(*lambda.Function)) *lambda.Function {
	t.Helper()
	f := &lambda.Function{
		Name: "probe", Bootstrap: os.Args[0], Environment: []string{probeMark + "=1"},
		Timeout: 20 * time.Second, Concurrency: 2, MemoryMB: 128, Log: io.Discard,
	}
	if change != nil {
		change(f)
	}
	t.Cleanup(f.Close)
	return f
}

func ask(t *testing.T, f *lambda.Function, p string) told {
	t.Helper()
	answer, err := f.Call(t.Context(), []byte(p))
	if err != nil {
		t.Fatal(err)
	}
	var got told
	if err := unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	rest(t, f)
	return got
}

// rest waits until the function's processes stand still.
func rest(t *testing.T, f *lambda.Function) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f.Resting(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a process does not come to rest")
		}
	}
}

func TestCall_AProcessServesManyCallsAndStandsStillBetween(t *testing.T) {
	f := newProbe(t, nil)
	first := ask(t, f, `{}`)
	time.Sleep(300 * time.Millisecond) // in which it would tick 30 times
	second := ask(t, f, `{}`)
	if first.PID != second.PID {
		t.Errorf("two processes, %d and %d, for two calls in turn", first.PID, second.PID)
	}
	if n := second.Ticks - first.Ticks; n > 15 {
		t.Errorf("it ran on between the calls: %d ticks", n)
	}
}

func TestCall_CallsAtOnceHaveProcessesOfTheirOwn(t *testing.T) {
	f := newProbe(t, nil)
	pids := make(chan int, 2)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			answer, err := f.Call(t.Context(), []byte(`{"Sleep":1000000000}`))
			var got told
			if err == nil {
				err = unmarshal(answer, &got)
			}
			if err != nil {
				t.Error(err)
			}
			pids <- got.PID
		})
	}
	waitBusy(t, f, 2)
	if _, err := f.Call(t.Context(), []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "throttled") {
		t.Errorf("a third call at once: %v", err)
	}
	all.Wait()
	if a, b := <-pids, <-pids; a == b {
		t.Errorf("both ran in process %d", a)
	}
}

func waitBusy(t *testing.T, f *lambda.Function, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); f.Busy() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d processes are busy, want %d", f.Busy(), n)
		}
	}
}

func TestCall_FailsAsAtTheProvider(t *testing.T) {
	for _, c := range []struct {
		name, payload, want string
		change              func(*lambda.Function)
		same                bool // the process goes on
	}{
		{"an error of the function", `{"Fail":"out of stock"}`, "out of stock", nil, true},
		{"a process that ends", `{"Exit":true}`, "the process ended during the call", nil, false},
		{"a call that takes too long", `{"Sleep":10000000000}`, "longer than the function's time limit", func(f *lambda.Function) { f.Timeout = 300 * time.Millisecond }, false},
		{"an answer that is too large", `{"Answer":6300000}`, "more than 6 MB", nil, false},
		{"a request that is too large", `{"Fail":"` + strings.Repeat("x", 6<<20) + `"}`, "more than 6 MB", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newProbe(t, c.change)
			before := ask(t, f, `{}`)
			if _, err := f.Call(t.Context(), []byte(c.payload)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			rest(t, f)
			if after := ask(t, f, `{}`); (after.PID == before.PID) != c.same {
				t.Errorf("process %d before, %d after; the same: want %t", before.PID, after.PID, c.same)
			}
		})
	}
}

func TestCall_AProcessThatCannotStartIsTold(t *testing.T) {
	var log strings.Builder
	f := newProbe(t, func(f *lambda.Function) { f.Environment, f.Log = []string{probeMark + "=broken"}, &log })
	if _, err := f.Call(t.Context(), []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "ended while it started") || !strings.Contains(log.String(), "no such setting") {
		t.Errorf("got %v, and the log %q", err, log.String())
	}
}

func TestRun_AFolderWithoutFunctionsSaysHowToBuildThem(t *testing.T) {
	err := lambda.Run(t.Context(), lambda.Options{Functions: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "make lambda") {
		t.Errorf("got %v", err)
	}
}

// The functions' binaries are what Lambda reads at each start.
func TestFunctions_BinariesAreSmall(t *testing.T) {
	const limit = 25_000_000
	for _, name := range []string{"api", "worker", "tick", "migrate"} {
		info, err := os.Stat(filepath.Join(built(t), name, "bootstrap"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > limit {
			t.Errorf("%s has %d bytes, more than %d: see what it imports with `go tool nm -size -sort size`", name, info.Size(), limit)
		}
	}
}
