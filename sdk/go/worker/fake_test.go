package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"perigee/sdk/go/client"
)

// fakeServer speaks the protocol in memory, so that tests run under a clock of
// their own (testing/synctest).
type fakeServer struct {
	mu         sync.Mutex
	changed    chan struct{} // closed and replaced at each change
	session    int           // number of the present session
	known      bool          // false: the present session is unknown
	ready      []*client.Task
	results    []client.Result
	beats      [][]string // the tokens of each heartbeat
	cancel     []string   // tokens that the next heartbeat tells to stop
	polls      int
	asked      int // the tasks that all polls asked for
	batches    int // calls of Results
	registered []client.RegisterRequest
	goodbyes   []string
	nextPollMS int64
	maxWaitMS  int64
	holdPolls  bool
	noNext     bool

	onReport   func(r client.Result) (client.Reported, error) // nil: accepted
	onPoll     func() error
	onRegister func(context.Context) error
	reportTime time.Duration
	undecided  string // the token of a result that is not looked at among others
}

func newFake() *fakeServer {
	return &fakeServer{changed: make(chan struct{}), holdPolls: true}
}

// update changes the fake under its lock and wakes who waits for a change.
func (f *fakeServer) update(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeServer) add(tasks ...*client.Task) {
	f.update(func() { f.ready = append(f.ready, tasks...) })
}

// until waits for a condition on the fake.
func (f *fakeServer) until(ctx context.Context, met func() bool) bool {
	for {
		f.mu.Lock()
		ok, changed := met(), f.changed
		f.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (f *fakeServer) sessionID() string { return fmt.Sprintf("session-%d", f.session) }

func (f *fakeServer) check(session string) error {
	if !f.known || session != f.sessionID() {
		return &client.Error{Code: client.CodeUnknownSession, Status: 404, Message: "register again"}
	}
	return nil
}

func (f *fakeServer) Register(ctx context.Context, r client.RegisterRequest) (client.Registration, error) {
	if f.onRegister != nil {
		if err := f.onRegister(ctx); err != nil {
			return client.Registration{}, err
		}
	}
	var reg client.Registration
	f.update(func() {
		f.session++
		f.known = true
		f.registered = append(f.registered, r)
		reg = client.Registration{Accepted: true, WorkerSessionID: f.sessionID(), HeartbeatIntervalMS: 10_000, SessionTimeoutMS: 30_000, MaxWaitMS: f.maxWaitMS}
	})
	return reg, nil
}

func (f *fakeServer) Poll(ctx context.Context, r client.PollRequest) (client.Polled, error) {
	var err error
	f.update(func() {
		f.polls++
		f.asked += r.MaxTasks
		if err = f.check(r.SessionID); err == nil && f.onPoll != nil {
			err = f.onPoll()
		}
	})
	if err != nil {
		return client.Polled{}, err
	}
	if f.holdPolls {
		wait, cancel := context.WithTimeout(ctx, r.Wait)
		defer cancel()
		f.until(wait, func() bool { return len(f.ready) > 0 })
	}
	if ctx.Err() != nil {
		return client.Polled{}, ctx.Err()
	}
	var out client.Polled
	f.update(func() {
		out.Tasks = f.take(r.MaxTasks)
		if len(out.Tasks) == 0 {
			out.NextPollMS = f.nextPollMS
		}
	})
	return out, nil
}

func (f *fakeServer) take(n int) []*client.Task {
	n = min(n, len(f.ready))
	tasks := slices.Clone(f.ready[:n])
	f.ready = f.ready[n:]
	return tasks
}

func (f *fakeServer) Heartbeat(_ context.Context, session string, tokens []string) ([]string, error) {
	var (
		err  error
		stop []string
	)
	f.update(func() {
		f.beats = append(f.beats, tokens)
		err = f.check(session)
		stop, f.cancel = f.cancel, nil
	})
	return stop, err
}

func (f *fakeServer) Unregister(_ context.Context, session string) error {
	f.update(func() { f.goodbyes = append(f.goodbyes, session) })
	return nil
}

func (f *fakeServer) Report(ctx context.Context, r client.Result, session string) (client.Reported, error) {
	if f.reportTime > 0 && !sleep(ctx, f.reportTime) {
		return client.Reported{}, ctx.Err()
	}
	out := client.Reported{Accepted: true}
	if f.onReport != nil {
		var err error
		if out, err = f.onReport(r); err != nil {
			return out, err
		}
	}
	f.update(func() {
		f.results = append(f.results, r)
		if session == "" || f.noNext {
			return
		}
		if f.check(session) != nil {
			out.NextError = client.CodeUnknownSession
			return
		}
		if next := f.take(1); len(next) > 0 {
			out.Next = next[0]
		}
	})
	return out, nil
}

func (f *fakeServer) Results(ctx context.Context, results []client.Result, session string, nextMax int) (client.ResultsAnswer, error) {
	if f.reportTime > 0 && !sleep(ctx, f.reportTime) {
		return client.ResultsAnswer{}, ctx.Err()
	}
	var out client.ResultsAnswer
	f.update(func() {
		f.batches++
		for _, r := range results {
			if r.Token == f.undecided {
				out.Acks = append(out.Acks, client.Ack{Token: r.Token, Error: client.CodeInternal})
				continue
			}
			f.results = append(f.results, r)
			out.Acks = append(out.Acks, client.Ack{Token: r.Token, Accepted: true})
		}
		if session != "" {
			out.Tasks = f.take(nextMax)
		}
	})
	return out, nil
}

func (f *fakeServer) Progress(context.Context, string, json.RawMessage) (accepted, cancel bool, err error) {
	return true, true, nil
}

// task makes a task of the contract echo@1.0.0.
func task(token string) *client.Task {
	return &client.Task{Token: token, ExecutionID: "x", StepID: token, TaskName: "echo", ContractVersion: "1.0.0",
		Input: json.RawMessage(`{"n":1}`), IdempotencyKey: "x/" + token, Attempt: 1}
}

// start runs a worker over the fake and gives a function that ends it and
// waits for Run's answer.
func start(t *testing.T, f *fakeServer, opts Options, h Handler) (stop func() error) {
	t.Helper()
	opts.WorkerID = "w-1"
	opts.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	w, err := newWorker(f, f, opts)
	if err != nil {
		t.Fatal(err)
	}
	w.Handle("echo", "1.0.0", h)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}
