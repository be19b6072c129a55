package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"perigee/engine/decide"
	"perigee/store"
)

// Engine runs the use cases on a store. It is safe for concurrent use, and any
// number of engines may work on one database at once.
type Engine struct {
	store    store.Store
	opts     Options
	limits   decide.Limits
	log      *slog.Logger
	instance string // names this process to the tasks that it runs itself

	programs *programCache
	states   *stateCache
	sessions *sessionCache
	tokens   *tokenCache
	pushed   pushedQueues
	lines    lineup
	hub      hub
	clock    dbClock
	guesses  guesses
	lulls    lulls

	failedWork, failedMessages asides

	swept atomic.Int64 // when Sweep last removed sessions; 0: never

	stop sync.Once
}

// New makes an engine. It does not touch the store.
func New(st store.Store, opts Options) (*Engine, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	return &Engine{
		store:    st,
		opts:     opts,
		limits:   opts.limits(),
		log:      opts.Logger,
		instance: opts.NewID(),
		programs: newProgramCache(),
		states:   newStateCache(opts.CacheBytes),
		sessions: newSessionCache(),
		tokens:   newTokenCache(),
		lulls:    lulls{length: lullLength},
	}, nil
}

// Close wakes everything that waits in this process. The store stays open.
func (e *Engine) Close() { e.stop.Do(e.hub.close) }

// nowMS is what requests to the store carry: zero for the database's clock.
func (e *Engine) nowMS() int64 {
	if e.opts.Clock == nil {
		return 0
	}
	return e.opts.Clock()
}

// localMS is this process's idea of the time, for caches and waiting only.
func (e *Engine) localMS() int64 {
	if e.opts.Clock != nil {
		return e.opts.Clock()
	}
	return time.Now().UnixMilli()
}

// storeMS is the moment on the clock that due moments are read by, as far as this
// process knows it.
func (e *Engine) storeMS() int64 {
	if ms, ok := e.clock.now(e); ok {
		return ms
	}
	return e.localMS()
}

// retryAfter is when a caller may come again after the database was away.
const retryAfter = time.Second

// fromStore turns a store's error into one for the caller.
func fromStore(err error, what string) error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, store.ErrBusy):
		return &Error{Code: Unavailable, Message: "others kept what the call needs; repeat it with the same ids", RetryAfter: retryAfter, Cause: err}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrUnknownOutcome):
		return &Error{Code: Unavailable, Message: "the database cannot be reached; repeat the call with the same ids", RetryAfter: retryAfter, Cause: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: Unavailable, Message: "the call ran out of time; repeat it with the same ids", RetryAfter: retryAfter, Cause: err}
	case errors.Is(err, store.ErrSchema):
		return &Error{Code: Unavailable, Message: err.Error(), RetryAfter: retryAfter, Cause: err}
	case errors.Is(err, store.ErrTooLarge):
		return &Error{Code: PayloadTooLarge, Message: "the change is larger than the database takes in one transaction", Cause: err}
	case errors.Is(err, store.ErrNotFound):
		return &Error{Code: NotFound, Message: what + " not found", Cause: err}
	}
	return &Error{Code: Internal, Message: "the server failed; its log says why", Cause: err}
}
