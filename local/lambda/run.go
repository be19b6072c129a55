package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"perigee/functions/httpapi"
)

// Options say what to run.
type Options struct {
	// Functions is a folder with NAME/bootstrap for each function.
	Functions string
	// Listen is the address of the HTTP API; port 0 takes a free one.
	Listen string
	// Environment are the functions' own variables, NAME=value.
	Environment []string
	// OnDemand says that the tick function runs in mode on-demand: it is called
	// when it has asked for that, and every hour.
	OnDemand bool
	// Migrate calls the migrate function before anything else.
	Migrate bool
	// Open reports whether every caller may do everything; see openTo.
	Open func(context.Context) (bool, error)
	// Concurrency bounds the calls at once of one function. 0: 10.
	Concurrency int
	Unrest      *Unrest // nil: all goes well
	// Log gets what the functions write, and Logger what we have to say.
	Log    io.Writer
	Logger *slog.Logger
	// Ready is told once calls are served. An error ends the run.
	Ready func(Running) error
}

// Running says where the HTTP API is.
type Running struct {
	URL      string
	Open     bool            // without tokens
	Migrated json.RawMessage // what the migrate function answered; nil: it was not called
}

// Time limits and memory as in template.yaml.
const (
	callTimeout    = 29 * time.Second
	tickTimeout    = 62 * time.Second
	migrateTimeout = 15 * time.Minute
	defaultAtOnce  = 10
	ticksAtOnce    = 2

	// Of a tick that calls workers and services.
	callingTickTimeout = 310 * time.Second
	callingTicksAtOnce = 7
)

// names are the functions there are.
var names = []string{"api", "worker", "tick", "migrate"}

// Run serves until ctx ends; then all processes end at once, as nothing is lost
// by that.
func Run(ctx context.Context, o Options) error {
	if o.Concurrency == 0 {
		o.Concurrency = defaultAtOnce
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(o.Functions, name, "bootstrap")); err != nil {
			return fmt.Errorf("function %s: there is no %s; build the functions with `make lambda`, or name their folder with --functions",
				name, filepath.Join(o.Functions, name, "bootstrap"))
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with --listen (port 0 takes a free one)", o.Listen, err)
	}
	defer listener.Close()
	schedules, err := newSchedules(ctx)
	if err != nil {
		return err
	}
	defer schedules.Close()
	environment := append(o.Environment, schedules.environment()...)
	functions := map[string]*Function{}
	output := &lines{w: o.Log}
	for _, name := range names {
		f := &Function{
			Name: name, Bootstrap: filepath.Join(o.Functions, name, "bootstrap"), Environment: environment,
			Timeout: callTimeout, Concurrency: o.Concurrency, MemoryMB: 512, Log: output,
		}
		switch name {
		case "api", "worker":
			f.Unrest = o.Unrest
		case "tick":
			f.Timeout, f.Concurrency, f.MemoryMB, f.Unrest = tickTimeout, ticksAtOnce, 256, o.Unrest
			if makesCalls(environment) {
				f.Timeout, f.Concurrency = callingTickTimeout, callingTicksAtOnce
			}
		case "migrate":
			f.Timeout, f.Concurrency, f.MemoryMB = migrateTimeout, 1, 256
		}
		functions[name] = f
		defer f.Close()
	}
	return serve(ctx, o, functions, schedules, listener)
}

// makesCalls reports whether pushes or http.request are switched on.
func makesCalls(environment []string) bool {
	return slices.ContainsFunc(environment, func(variable string) bool {
		name, value, _ := strings.Cut(variable, "=")
		return name == "PERIGEE_ROUTES" && value != "" || name == "PERIGEE_ENABLE_HTTP_ADAPTER" && value == "true"
	})
}

func serve(ctx context.Context, o Options, functions map[string]*Function, schedules *schedules, listener net.Listener) error {
	where := Running{URL: "http://" + listener.Addr().String()}
	if o.Migrate {
		done := functions["migrate"].invoke(ctx, []byte("{}"))
		if done.err != nil || done.failed {
			return fmt.Errorf("the migrate function failed: %w", errors.Join(done.err, errors.New(string(done.payload))))
		}
		where.Migrated = done.payload
	}
	g := &gateway{api: functions["api"], worker: functions["worker"], log: o.Logger}
	var err error
	if where.Open, err = o.Open(ctx); err != nil {
		return err
	}
	if where.Open {
		g.authorize = openTo
	}
	srv := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn)}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	defer srv.Close()

	ticking, stop := context.WithCancel(ctx)
	var ticks sync.WaitGroup
	ticks.Go(func() { schedules.run(ticking, functions["tick"], o.OnDemand, o.Logger) })
	defer ticks.Wait()
	defer stop()
	if err := o.Ready(where); err != nil {
		return err
	}
	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", where.URL, err)
	case <-ctx.Done():
		return nil
	}
}

// openTo is the authorizer of an installation without tokens: it lets programs
// of this machine do everything, and web pages nothing. Who brings a token is
// left to the API.
func openTo(r *http.Request) (*events.APIGatewayV2HTTPRequestContextAuthorizerDescription, error) {
	if err := httpapi.CheckLocal(r); err != nil {
		return nil, err
	}
	if r.Header.Get("Authorization") != "" {
		return nil, nil
	}
	return &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"sub": "local", "perigee_role": "admin"}},
	}, nil
}

// lines joins the output of many processes without mixing their lines: each
// writes whole ones, at once.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
