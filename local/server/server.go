package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"perigee/engine"
	"perigee/functions/httpapi"
	"perigee/infra/calls"
	"perigee/infra/config"
	"perigee/infra/outbound"
	"perigee/infra/traces"
	"perigee/local/database"
	"perigee/store"
)

// Options say what to serve.
type Options struct {
	Settings config.Settings
	// Migrate brings an older Postgres schema up to date; a SQLite file always is.
	Migrate bool
	Logger  *slog.Logger
	// Environment holds the secrets of http.request and of pushes; nil: there
	// are none.
	Environment func(name string) (value string, set bool)
	// Ready is told once calls are served. An error ends the server.
	Ready func(Running) error
}

// Running says where a server is.
type Running struct {
	URL      string // such as http://127.0.0.1:7474
	Database string // without a password
	Open     bool   // serves without tokens
	Migrated string // what was done to the schema, "" for nothing
}

const (
	// stopGrace is how long calls under way may take to end.
	stopGrace = 10 * time.Second
	// headerTime and bodyTime bound how slowly a request may come, answerTime
	// how long a call may take: above the 25 s that polls are held.
	headerTime = 10 * time.Second
	bodyTime   = time.Minute
	answerTime = 2 * time.Minute
	idleTime   = 2 * time.Minute

	headerBytes = 64 << 10
	// unboundedPayload is the limit of a body where payloads have none.
	unboundedPayload = 64 << 20
)

// Run serves until ctx ends, then stops gracefully: nothing new is accepted,
// held polls are answered, calls under way end or are cut off after 10 s.
// Errors are one line that says what to do.
func Run(ctx context.Context, o Options) (err error) {
	st, migrated, err := openStore(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()

	options := o.Settings.Engine
	options.HoldPolls, options.Logger = true, o.Logger
	defer sendTraces(&options, o)()
	client, err := calls.Enable(&options, o.Settings, secrets(o), nil)
	if err != nil {
		return err
	}
	defer client.Close()
	eng, err := engine.New(st, options)
	if err != nil {
		return err
	}
	defer eng.Close()

	open, err := MayListen(ctx, eng, o.Settings)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, o.Settings.Listen)
	if err != nil {
		return err
	}
	handler := httpapi.New(httpapi.Options{
		Engine: eng, Open: open, HoldPolls: true, MaxPayloadBytes: bodyLimit(options.MaxPayloadBytes),
		Ready: st.Ping, Logger: o.Logger,
	})
	return serve(ctx, o, eng, handler, listener, Running{
		URL: "http://" + listener.Addr().String(), Database: database.Describe(o.Settings.Database), Open: open, Migrated: migrated,
	})
}

// CheckRoutes refuses routes by which this server cannot push. Run does the same,
// but only once its database is there.
func CheckRoutes(s config.Settings) error {
	client, err := calls.Enable(new(engine.Options), s, nil, nil)
	client.Close()
	return err
}

// Spans wait for others to go with them for spansLinger. The last ones have
// lastSpans to get away.
const (
	spansLinger = time.Second
	lastSpans   = 2 * time.Second
)

// sendTraces has the engine's traces sent where the settings say so. end sends
// what is left.
func sendTraces(options *engine.Options, o Options) (end func()) {
	if o.Settings.OTLPEndpoint == "" {
		return func() {}
	}
	exporter := traces.New(traces.Options{
		Endpoint: o.Settings.OTLPEndpoint, Headers: o.Settings.OTLPHeaders, Linger: spansLinger, Logger: o.Logger,
	})
	options.Ended = exporter.Ended
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), lastSpans)
		defer cancel()
		exporter.Close(ctx)
	}
}

// secrets are those of the environment, if there is one.
func secrets(o Options) outbound.Secrets {
	if o.Environment == nil {
		return nil
	}
	return outbound.Environment(o.Environment)
}

// serve runs the HTTP server and the ticks side by side.
func serve(ctx context.Context, o Options, eng *engine.Engine, handler http.Handler, listener net.Listener, where Running) error {
	srv := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: headerBytes,
		ErrorLog:       slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
	}
	ticking, stopTicking := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { tick(ticking, eng, o.Settings.TickMode, o.Logger) })
	defer running.Wait()
	defer stopTicking()

	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	if err := o.Ready(where); err != nil {
		return errors.Join(err, srv.Close())
	}
	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", where.URL, err)
	case <-ctx.Done():
	}
	o.Logger.Info("stopping: calls under way may end", "grace", stopGrace)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- srv.Shutdown(grace) }()
	eng.Close() // answers the polls that are held, so that the rest is short
	if err := <-stopped; err != nil {
		o.Logger.Warn("calls under way were cut off", "error", err)
		return srv.Close()
	}
	return nil
}

// openStore opens the database and sees to its schema. Somebody's Postgres is
// only changed when asked for.
func openStore(ctx context.Context, o Options) (st store.Store, migrated string, err error) {
	where := o.Settings.Database
	st, err = database.Open(ctx, database.OptionsOf(o.Settings))
	if err != nil {
		return nil, "", err
	}
	if database.IsPostgres(where) && !o.Migrate {
		if err := st.CheckSchema(ctx); err != nil {
			return nil, "", errors.Join(database.Explain(where, err), st.Close())
		}
		return st, "", nil
	}
	from, to, err := st.Migrate(ctx)
	if err != nil {
		return nil, "", errors.Join(database.Explain(where, err), st.Close())
	}
	switch {
	case from == to:
	case from == 0:
		migrated = fmt.Sprintf("schema made, version %d", to)
	default:
		migrated = fmt.Sprintf("schema upgraded from version %d to %d", from, to)
	}
	return st, migrated, nil
}

// Tokens are the API tokens that there are.
type Tokens interface {
	Tokens(ctx context.Context) ([]store.Token, error)
}

// MayListen decides whether a server serves without tokens, which it does where
// there are none when it starts. Then it serves nobody but this machine.
func MayListen(ctx context.Context, known Tokens, s config.Settings) (open bool, err error) {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return false, fmt.Errorf("listen on %q: expected host:port, such as 127.0.0.1:7474", s.Listen)
	}
	tokens, err := known.Tokens(ctx)
	if err != nil {
		return false, err
	}
	if len(tokens) > 0 {
		return false, nil
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return true, nil
	}
	return false, fmt.Errorf("listen on %s: others than this machine could reach it, and there are no tokens: "+
		"make the first with `perigee token create NAME --role admin --database %s`, or listen on 127.0.0.1", s.Listen, shellWord(database.Describe(s.Database)))
}

// shellWord is a text as it is typed into a shell.
func shellWord(text string) string {
	if !strings.ContainsAny(text, " \t\n\"'`$&?*;<>()|\\!#~[]{}") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err == nil {
		return listener, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %s: another program has this port; stop it, or choose another with --listen (port 0 takes a free one)", address)
	}
	return nil, fmt.Errorf("listen on %s: %w", address, err)
}

// bodyLimit is what the handler needs to know of the engine's limit.
func bodyLimit(maxPayload int) int {
	if maxPayload < 0 {
		return unboundedPayload
	}
	return min(maxPayload, math.MaxInt32)
}
