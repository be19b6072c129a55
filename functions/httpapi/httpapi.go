package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"time"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// Engine is what the handlers ask of the engine. *engine.Engine implements it;
// its documentation says what each method does.
type Engine interface {
	RegisterDefinition(ctx context.Context, source []byte, format definition.Format) (engine.Registered, error)
	ValidateDefinition(ctx context.Context, source []byte, format definition.Format) ([]definition.Fault, error)
	Definitions(ctx context.Context) ([]engine.DefinitionInfo, error)
	Definition(ctx context.Context, name, version string) (engine.DefinitionInfo, error)
	Graph(ctx context.Context, name, version string) (definition.Graph, error)
	Retire(ctx context.Context, name, version string) error

	Start(ctx context.Context, req engine.StartRequest) (engine.Started, error)
	Execution(ctx context.Context, id string, wait time.Duration) (*history.State, error)
	List(ctx context.Context, req engine.ListRequest) (engine.ListPage, error)
	History(ctx context.Context, req engine.HistoryRequest) (engine.HistoryPage, error)
	Signal(ctx context.Context, id, name string, payload exactjson.Value, signalID string) (seq uint64, err error)
	Cancel(ctx context.Context, id, reason string) (*history.State, error)
	Query(ctx context.Context, id, name string) (exactjson.Value, error)

	RegisterWorker(ctx context.Context, req engine.RegisterRequest) (engine.WorkerRegistered, error)
	Poll(ctx context.Context, req engine.PollRequest) (engine.Polled, error)
	Heartbeat(ctx context.Context, sessionID string, tokens []string) (cancel []string, err error)
	Unregister(ctx context.Context, sessionID string) error
	Results(ctx context.Context, req engine.ResultsRequest) (engine.ResultsAnswer, error)
	Progress(ctx context.Context, token string, details exactjson.Value) (accepted, cancel bool, err error)
	Workers(ctx context.Context) ([]engine.WorkerInfo, error)

	Authenticate(ctx context.Context, token string) (engine.Identity, error)
	SessionWorker(ctx context.Context, sessionID string) (workerID string, err error)
	TokenWorker(token string) (workerID string, ok bool)
}

var _ Engine = (*engine.Engine)(nil)

// Options say how the API is served. Only Engine is required.
type Options struct {
	Engine Engine

	// Open serves everybody who reaches the address, as admin: for a server on
	// loopback that has no tokens. A request must then name a loopback host and
	// carry no foreign Origin, so that no web page can reach for it.
	Open bool
	// HoldPolls lets calls wait (wait_ms). Without it every call answers at
	// once, as on Lambda, where waiting is paid for.
	HoldPolls bool
	// MaxPayloadBytes is the engine's limit of one input, output or signal;
	// limits of whole bodies follow from it. 0: 1 MiB; negative: 64 MiB, which is
	// what a server without a limit takes into its memory.
	MaxPayloadBytes int
	// Ready tells /readyz whether calls would be served; nil: they would.
	Ready func(ctx context.Context) error
	// Before is asked ahead of every call that is not for everybody: its error
	// is the answer. nil: nothing is asked.
	Before func(ctx context.Context) error
	// Logger gets the access log and the causes of internal errors; nil: none.
	Logger *slog.Logger
	// NewRequestID names requests that bring no id; nil: 128 random bits.
	NewRequestID func() string
}

// Limits that are the protocol's and not an installation's.
const (
	maxWait          = 25 * time.Second // below the 30 s of an API Gateway integration
	defaultPollWait  = 20 * time.Second
	envelopeBytes    = 64 << 10 // what a body may have beside its payload
	resultsBytes     = 6 << 20  // what Lambda takes
	maxJSONBytes     = 1 << 20  // a definition as JSON
	maxYAMLBytes     = 256 << 10
	maxAnswerBytes   = 4 << 20 // where pages end
	defaultPayload   = 1 << 20
	unlimitedPayload = 64 << 20
	maxBatch         = 100 // results in one call
	maxTasks         = 32  // tasks in one poll
	maxContracts     = 500 // of one worker
	maxPageLimit     = 1000
	defaultListLimit = 50
)

// New makes the handler. It panics without an engine.
func New(opts Options) http.Handler {
	if opts.Engine == nil {
		panic("httpapi.New: Options.Engine is nil")
	}
	switch {
	case opts.MaxPayloadBytes == 0:
		opts.MaxPayloadBytes = defaultPayload
	case opts.MaxPayloadBytes < 0:
		opts.MaxPayloadBytes = unlimitedPayload
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.NewRequestID == nil {
		opts.NewRequestID = newRequestID
	}
	s := &server{Options: opts, mux: http.NewServeMux()}
	s.mux.HandleFunc("/", s.noRoute)
	for i := range routes {
		rt := &routes[i]
		s.mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
			s.route(rt, w.(*exchange), r)
		})
	}
	return s
}

// server serves one set of options. It keeps nothing between requests.
type server struct {
	Options
	mux *http.ServeMux
}

// wait bounds how long a call asks the engine to wait.
func (s *server) wait(asked time.Duration) time.Duration {
	if !s.HoldPolls {
		return 0
	}
	return min(asked, maxWait)
}

func newRequestID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
