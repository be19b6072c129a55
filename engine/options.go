package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"perigee/engine/decide"
	"perigee/engine/exactjson"
)

// Options configure an engine. The zero value works, with the defaults named
// here. A negative bound means "none".
type Options struct {
	SessionTimeout        time.Duration // silence after which a worker is suspect; 30 s
	HeartbeatInterval     time.Duration // 5 s
	CancelGrace           time.Duration // how long a worker may go on after an abort; 10 min
	DefaultAttemptTimeout time.Duration // of a task without a timeout; 24 h
	MaxIdlePoll           time.Duration // between an idle worker's polls, where they are not held; 15 s
	MaxRedeliveries       int           // counted losses of one attempt; 3, negative: 0
	MaxActiveExecutions   int           // 0: no bound
	MaxFanOut             int           // elements of one `for`; 10 000
	MaxHistoryEvents      int           // 50 000
	MaxPayloadBytes       int           // 1 MiB
	MaxJoinBytes          int           // a fan-out's items or joined outputs; 16 MiB
	CacheBytes            int           // of states kept warm; 64 MiB, negative: none

	// HTTPRequest runs the built-in task http.request; nil: it is disabled.
	HTTPRequest func(ctx context.Context, input exactjson.Value) (exactjson.Value, *Failure)
	// Push calls workers that do not poll; nil: all poll.
	Push Push
	// HoldPolls lets polls and waits be held open; false on functions that are
	// billed by the time they hold.
	HoldPolls bool

	// Ended is told what each commit has ended, after it and while its caller
	// waits: it must not block. nil: nobody is. What a commit of unknown outcome
	// ended is told to nobody.
	Ended func([]Ended)

	Logger *slog.Logger
	// Clock gives the moment in epoch milliseconds; nil: the database's clock.
	Clock func() int64
	// NewID makes ids of executions, sessions and polls; nil: random UUIDs.
	NewID func() string
	// Random is where secrets come from; nil: crypto/rand.
	Random io.Reader
}

func (o Options) withDefaults() Options {
	setDefault(&o.SessionTimeout, 30*time.Second)
	setDefault(&o.HeartbeatInterval, 5*time.Second)
	setDefault(&o.CancelGrace, 10*time.Minute)
	setDefault(&o.DefaultAttemptTimeout, 24*time.Hour)
	setDefault(&o.MaxIdlePoll, 15*time.Second)
	setDefault(&o.MaxRedeliveries, 3)
	setDefault(&o.MaxFanOut, 10_000)
	setDefault(&o.MaxHistoryEvents, 50_000)
	setDefault(&o.MaxPayloadBytes, 1<<20)
	setDefault(&o.MaxJoinBytes, 16<<20)
	setDefault(&o.CacheBytes, 64<<20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	return o
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Validate names the first option that cannot work, and the rule it breaks.
func (o Options) Validate() error {
	o = o.withDefaults()
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"session-timeout", o.SessionTimeout},
		{"heartbeat-interval", o.HeartbeatInterval},
		{"cancel-grace", o.CancelGrace},
		{"default-attempt-timeout", o.DefaultAttemptTimeout},
		{"max-idle-poll", o.MaxIdlePoll},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("%s must be at least 1ms; it is %s", d.name, d.value)
		}
	}
	if o.HeartbeatInterval >= o.SessionTimeout {
		return fmt.Errorf("heartbeat-interval (%s) must be below session-timeout (%s), or every worker looks lost",
			o.HeartbeatInterval, o.SessionTimeout)
	}
	return nil
}

func (o Options) limits() decide.Limits {
	return decide.Limits{
		MaxFanOut:               max(0, o.MaxFanOut),
		MaxHistoryEvents:        uint64(max(0, o.MaxHistoryEvents)),
		MaxPayloadBytes:         max(0, o.MaxPayloadBytes),
		MaxJoinBytes:            max(0, o.MaxJoinBytes),
		MaxRedeliveries:         max(0, o.MaxRedeliveries),
		CancelGraceMS:           o.CancelGrace.Milliseconds(),
		DefaultAttemptTimeoutMS: o.DefaultAttemptTimeout.Milliseconds(),
		HTTPRequest:             o.HTTPRequest != nil,
	}
}
