package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"perigee/sdk/go/client"
)

const (
	defaultConcurrency = 16
	defaultReports     = 32
	defaultDrain       = 30 * time.Second
	pollWait           = 20 * time.Second
	// maxTasks is the most that the server gives in one answer.
	maxTasks = 32
	// maxHeld is the most tokens that the server takes in one heartbeat.
	maxHeld = 1000
	sdkName = "perigee-go"
)

// Handler does one task. Its output is encoded as JSON (nil: {}; a
// json.RawMessage goes as it is). An error is a failed attempt, which the step's
// retry policy may repeat; see Fail, NonRetryable and RetryAfter.
type Handler func(ctx context.Context, t *Task) (output any, err error)

// Options configures a Worker. The zero value works.
type Options struct {
	// WorkerID names this process to people and in histories; "": made of the
	// host's name and the process id.
	WorkerID string
	// Concurrency is how many tasks run at once, up to 1 000; 0: 16.
	Concurrency int
	// Runtime is matched with the language that a task contract asks for; "": "go".
	Runtime string
	// Reports is how many calls report results at once at most, one at a time for
	// each execution. While calls are quick, and to functions, two are enough: what
	// is finished meanwhile travels together in the next. 0: 32.
	Reports int
	// DrainTimeout is how long tasks under way may go on once Run's context has
	// ended, before theirs end too; 0: 30 s.
	DrainTimeout time.Duration
	// Logger gets warnings of the server, panics with their stack, results that were
	// not accepted, and word of a server that is away; nil: slog.Default().
	Logger *slog.Logger
}

// validate names the field and the rule that it breaks.
func (o Options) validate() error {
	switch {
	case o.Concurrency < 0 || o.Concurrency > maxHeld:
		return fmt.Errorf("worker options: Concurrency is %d: expected 0 to %d, which is as many tasks as a heartbeat can name; run several workers for more", o.Concurrency, maxHeld)
	case o.Reports < 0:
		return fmt.Errorf("worker options: Reports is %d: expected 0 or more", o.Reports)
	case o.DrainTimeout < 0:
		return fmt.Errorf("worker options: DrainTimeout is %v: expected 0 or more", o.DrainTimeout)
	}
	return nil
}

// Worker takes tasks from a server and runs their handlers.
type Worker struct {
	opts     Options
	server   server // repeats a call for as long as its context lasts
	once     server // tries once
	handlers map[client.Contract]Handler
	faults   []error
}

// server is what a worker needs of a client.
type server interface {
	Register(ctx context.Context, r client.RegisterRequest) (client.Registration, error)
	Poll(ctx context.Context, r client.PollRequest) (client.Polled, error)
	Heartbeat(ctx context.Context, sessionID string, tokens []string) (cancel []string, err error)
	Unregister(ctx context.Context, sessionID string) error
	Report(ctx context.Context, r client.Result, nextSession string) (client.Reported, error)
	Results(ctx context.Context, results []client.Result, nextSession string, nextMax int) (client.ResultsAnswer, error)
	Progress(ctx context.Context, token string, details json.RawMessage) (accepted, cancel bool, err error)
}

// New makes a worker that takes its tasks from c's server. Where that is away and
// c has no OnRetry, the log says so now and then.
func New(c *client.Client, opts Options) (*Worker, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	c = c.WithOnRetry((&away{log: opts.Logger}).tell)
	return newWorker(c.WithRetryFor(client.Forever), c.WithRetryFor(client.NoRetry), opts)
}

// away tells of calls that are repeated, of all of them together once in a while.
type away struct {
	log  *slog.Logger
	mu   sync.Mutex
	told time.Time
}

// tellEvery is how often at most the log says that calls are repeated.
const tellEvery = 30 * time.Second

func (a *away) tell(err error, pause time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); a.told.IsZero() || now.Sub(a.told) >= tellEvery {
		a.told = now
		a.log.Warn("a call of the server failed and is repeated until it is answered", "error", err, "again_in", pause)
	}
}

func newWorker(forever, once server, opts Options) (*Worker, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if opts.WorkerID == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name the worker: %w (set Options.WorkerID)", err)
		}
		opts.WorkerID = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	if opts.Concurrency == 0 {
		opts.Concurrency = defaultConcurrency
	}
	if opts.Runtime == "" {
		opts.Runtime = "go"
	}
	if opts.Reports == 0 {
		opts.Reports = defaultReports
	}
	if opts.DrainTimeout == 0 {
		opts.DrainTimeout = defaultDrain
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return &Worker{opts: opts, server: forever, once: once, handlers: map[client.Contract]Handler{}}, nil
}

// Handle offers a task at a contract version, such as "inventory.reserve",
// "1.0.0". All handlers are given before Run, which reports mistakes made here.
func (w *Worker) Handle(task, version string, h Handler) {
	contract := client.Contract{TaskName: task, ContractVersion: version}
	switch _, taken := w.handlers[contract]; {
	case task == "" || version == "" || h == nil:
		w.faults = append(w.faults, fmt.Errorf("handle task %q version %q: expected a name, a version and a handler", task, version))
	case taken:
		w.faults = append(w.faults, fmt.Errorf("handle task %q version %q: it has a handler already", task, version))
	default:
		w.handlers[contract] = h
	}
}

// contracts lists what the worker offers, in a fixed order.
func (w *Worker) contracts() []client.Contract {
	list := make([]client.Contract, 0, len(w.handlers))
	for c := range w.handlers {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b client.Contract) int {
		if n := strings.Compare(a.TaskName, b.TaskName); n != 0 {
			return n
		}
		return strings.Compare(a.ContractVersion, b.ContractVersion)
	})
	return list
}

// Run registers and works until ctx ends; then it takes no more tasks, lets
// those under way end (see Options.DrainTimeout), reports their results and
// unregisters. It returns nil when ctx ended, or the server's refusal: of the
// registration, or of a poll (a token that is not valid any more). A server
// that is away is no error: it is asked until it is back.
func (w *Worker) Run(ctx context.Context) error {
	if err := errors.Join(w.faults...); err != nil {
		return err
	}
	if len(w.handlers) == 0 {
		return errors.New("run worker: it handles no task: call Handle first")
	}
	return newRun(w).work(ctx)
}
