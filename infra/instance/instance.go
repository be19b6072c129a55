package instance

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"perigee/engine"
	"perigee/engine/decide"
	"perigee/infra/calls"
	"perigee/infra/cloud"
	"perigee/infra/config"
	"perigee/infra/database"
	"perigee/infra/logs"
	"perigee/infra/metrics"
	"perigee/infra/outbound"
	"perigee/infra/traces"
	"perigee/infra/wake"
	"perigee/infra/watch"
	"perigee/store"
)

// Instance is what calls share. It is safe for concurrent use.
type Instance struct {
	Settings config.Settings
	Log      *slog.Logger
	Store    store.Store
	Engine   *engine.Engine

	// WakeUps are nil but in tick mode on-demand.
	WakeUps *wake.Keeper

	cloud   *cloud.Cloud
	metrics *metrics.Recorder
	mu      sync.Mutex
	checked bool // the schema is this release's
}

// Start makes the instance of this process. Where that cannot be, it writes why
// to the log and ends the process, which fails the function's start.
func Start() *Instance {
	i, err := New(context.Background(), os.LookupEnv, os.Stdout)
	if err != nil {
		os.Exit(1)
	}
	return i
}

// New makes an instance of an environment. What it logs goes to w, its own
// failure included. It connects to nothing.
func New(ctx context.Context, environment config.Source, w io.Writer) (*Instance, error) {
	settings, err := config.LoadFunction(environment)
	if err != nil {
		log := logs.New(w, config.Settings{LogFormat: config.LogJSON})
		for fault := range strings.SplitSeq(err.Error(), "\n") {
			log.ErrorContext(ctx, "the function cannot start: a setting is wrong", "fault", fault)
		}
		return nil, err
	}
	i := &Instance{
		Settings: settings, Log: logs.New(w, settings),
		cloud: cloud.New(settings.Region, environment), metrics: metrics.New(w, settings.Stack, nil),
	}
	if err := i.build(ctx, environment); err != nil {
		i.Log.ErrorContext(ctx, "the function cannot start", "error", err)
		return nil, err
	}
	return i, nil
}

func (i *Instance) build(ctx context.Context, environment config.Source) error {
	opened, err := database.Open(ctx, i.Settings, i.cloud)
	if err != nil {
		return err
	}
	watchers := []watch.Watcher{i.metrics}
	if i.Settings.TickMode == config.TickOnDemand {
		schedule := cloud.Schedule{Cloud: i.cloud, Group: i.Settings.WakeGroup, Target: i.Settings.WakeTarget, Role: i.Settings.WakeRole}
		i.WakeUps = &wake.Keeper{Store: opened, Arm: schedule.Arm}
		watchers = append(watchers, i.WakeUps)
	}
	st := watch.Store(opened, watchers...)
	options := i.Settings.Engine
	options.HoldPolls, options.Logger = false, i.Log
	if i.Settings.OTLPEndpoint != "" {
		// Spans leave at once, and nothing waits for them: what a frozen process
		// has left goes with its next call.
		options.Ended = traces.New(traces.Options{
			Endpoint: i.Settings.OTLPEndpoint, Headers: i.Settings.OTLPHeaders, Namespace: i.Settings.Stack, Logger: i.Log,
		}).Ended
	}
	if _, err := calls.Enable(&options, i.Settings, i.secrets(environment), i.cloud); err != nil {
		return errors.Join(err, st.Close())
	}
	if i.WakeUps != nil {
		i.WakeUps.Ours = ours(options)
	}
	eng, err := engine.New(st, options)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	i.Store, i.Engine = st, eng
	return nil
}

// secrets are those of http.request and pushes.
func (i *Instance) secrets(environment config.Source) outbound.Secrets {
	if i.Settings.CallSecrets == "" {
		return outbound.Environment(environment)
	}
	return outbound.Document(func(ctx context.Context) (string, error) { return i.cloud.Secret(ctx, i.Settings.CallSecrets) }, nil)
}

// ours tells the tasks that the tick function sees to itself.
func ours(o engine.Options) func(store.Task) bool {
	return func(t store.Task) bool {
		return o.HTTPRequest != nil && t.Queue == decide.HTTPQueue || o.Push != nil && o.Push.Takes(t.TaskName)
	}
}

// Ready makes sure, once, that the database can be reached and has the schema
// of this release. Its error is a caller's answer, engine.Unavailable; it is
// looked at again by the next call.
func (i *Instance) Ready(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.checked {
		return nil
	}
	err := i.Store.CheckSchema(ctx)
	switch {
	case err == nil:
		i.checked = true
		return nil
	case errors.Is(err, store.ErrSchema):
		return &engine.Error{Code: engine.Unavailable, Message: err.Error(), RetryAfter: retryAfter, Cause: err}
	}
	return &engine.Error{
		Code: engine.Unavailable, Message: "the database cannot be reached; repeat the call with the same ids", RetryAfter: retryAfter, Cause: err,
	}
}

// retryAfter is when a caller may come again: a database that was paused takes
// longer to come back, but its callers need not all wait for that.
const retryAfter = 2 * time.Second

// After is called when a call has been answered, within its time: it writes the
// metrics and, in tick mode on-demand, sets the wake-up. What fails here fails
// no call.
func (i *Instance) After(ctx context.Context) {
	if i.WakeUps != nil {
		if err := i.WakeUps.Settle(ctx); err != nil {
			i.Log.WarnContext(ctx, "the next wake-up could not be set; polls or the hourly tick see to what is due", "error", err)
		}
	}
	i.metrics.Flush()
}
