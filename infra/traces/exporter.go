package traces

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"perigee/engine"
)

const (
	queued      = 2048 // spans that wait at most; what comes then is dropped
	batched     = 256  // spans of one call at most
	tries       = 4    // calls with one batch at most
	callTime    = 5 * time.Second
	firstPause  = time.Second // after a failed call; doubled with each that follows, with jitter
	mostPause   = time.Minute
	answerBytes = 64 << 10 // of an answer that are read
)

// Options say where spans go.
type Options struct {
	// Endpoint is the base URL of a collector, as config checks it: spans are
	// posted to /v1/traces below it.
	Endpoint string
	// Headers go with every call, such as a collector's key. They are secrets:
	// no log and no error shows them.
	Headers map[string]string
	// Namespace is service.namespace, "" for none.
	Namespace string
	// Linger is how long a span waits for others to go with it. 0: it goes at
	// once, which is right where a process may be frozen after its call.
	Linger time.Duration
	Logger *slog.Logger
	// Transport makes the calls; nil: one of its own.
	Transport http.RoundTripper
}

// Exporter sends spans in the background. It is safe for concurrent use.
//
// A call that fails is repeated with the same spans, later and later, however
// many come meanwhile: a collector that is away is asked once a minute.
type Exporter struct {
	opts   Options
	url    string
	client *http.Client

	mu    sync.Mutex
	queue []json.RawMessage
	more  chan struct{} // capacity 1: there is something in the queue

	sent, dropped atomic.Int64

	closing chan struct{}
	close   sync.Once
	done    chan struct{} // closed when the sender has ended

	// The sender's alone.
	failures int   // calls in a row
	told     int64 // of dropped, in the log
}

// Stats counts spans since the exporter was made.
type Stats struct {
	Sent    int64 // taken by the collector
	Dropped int64 // for want of room or after too many failed calls
}

// New makes an exporter and starts its sender, which Close ends.
func New(o Options) *Exporter {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxConnsPerHost: 1, IdleConnTimeout: time.Minute,
		}
	}
	x := &Exporter{
		opts: o, url: strings.TrimSuffix(o.Endpoint, "/") + "/v1/traces",
		// A redirect would take the headers elsewhere.
		client: &http.Client{Transport: o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		more:   make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
	go x.run()
	return x
}

// Ended puts spans into the queue, or drops them where it is full. It is an
// engine.Options.Ended.
func (x *Exporter) Ended(list []engine.Ended) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, e := range list {
		if len(x.queue) >= queued {
			x.dropped.Add(int64(len(list) - i))
			break
		}
		text, err := json.Marshal(spanOf(e))
		if err != nil {
			x.dropped.Add(1)
			continue
		}
		x.queue = append(x.queue, text)
	}
	select {
	case x.more <- struct{}{}:
	default: // it has been told already
	}
}

// take is the front of the queue, up to n spans.
func (x *Exporter) take(n int) []json.RawMessage {
	x.mu.Lock()
	defer x.mu.Unlock()
	n = min(n, len(x.queue))
	front := slices.Clone(x.queue[:n])
	x.queue = slices.Delete(x.queue, 0, n)
	return front
}

// Stats tells what became of the spans so far.
func (x *Exporter) Stats() Stats { return Stats{Sent: x.sent.Load(), Dropped: x.dropped.Load()} }

// Close sends what waits, one call for each batch, and returns when that is
// done or ctx ends. Call it after the last Ended.
func (x *Exporter) Close(ctx context.Context) {
	x.close.Do(func() { close(x.closing) })
	select {
	case <-x.done:
	case <-ctx.Done():
	}
}

// run is the sender.
func (x *Exporter) run() {
	defer close(x.done)
	for closed := false; !closed; {
		select {
		case <-x.more:
			x.pause(x.opts.Linger)
		case <-x.closing:
		}
		closed = x.closed()
		for batch := x.take(batched); len(batch) > 0; batch = x.take(batched) {
			x.deliver(batch)
			if x.failures > 0 && x.closed() {
				// The next call would fail as this one did, and take as long.
				x.dropped.Add(int64(len(x.take(queued))))
			}
		}
	}
}

// deliver sends a batch until it is taken, or drops it.
func (x *Exporter) deliver(batch []json.RawMessage) {
	for try := 1; ; try++ {
		refused, err := x.send(batch)
		if err == nil {
			x.sent.Add(int64(len(batch)) - refused)
			x.dropped.Add(refused)
			x.succeeded()
			return
		}
		x.failed(err)
		again := try < tries && err.again && !x.closed()
		if !again {
			x.dropped.Add(int64(len(batch)))
		}
		x.pause(max(err.after, x.backOff()))
		if !again {
			return
		}
	}
}

// backOff is how long to leave the collector alone: at least half of what
// doubles with each failure, so that processes that failed together part.
func (x *Exporter) backOff() time.Duration {
	d := min(mostPause, firstPause<<min(x.failures-1, 10))
	return d/2 + rand.N(d/2)
}

func (x *Exporter) closed() bool {
	select {
	case <-x.closing:
		return true
	default:
		return false
	}
}

// pause waits, but not once the exporter is closed.
func (x *Exporter) pause(d time.Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.closing:
	}
}

// succeeded tells that a call went through after others that did not, and how
// many spans were lost.
func (x *Exporter) succeeded() {
	lost := x.dropped.Load() - x.told
	switch {
	case x.failures > 0:
		x.opts.Logger.Info("traces are sent again", "dropped", lost)
	case lost > 0:
		x.opts.Logger.Warn("spans were dropped: they came faster than the collector takes them, or it refused them", "dropped", lost)
	}
	x.failures, x.told = 0, x.told+lost
}

// failed tells of the first failure in a row: those that follow are like it.
func (x *Exporter) failed(err *sendError) {
	if x.failures++; x.failures == 1 {
		x.opts.Logger.Warn("traces cannot be sent; spans wait, and are dropped where there are too many", "error", err)
	}
}

// sendError is why a call failed. Its text shows neither the URL nor headers.
type sendError struct {
	cause error
	again bool          // it may work later
	after time.Duration // but not before
}

func (e *sendError) Error() string { return "send traces: " + e.cause.Error() }
func (e *sendError) Unwrap() error { return e.cause }

// send makes one call. refused are the spans that the collector took none of.
func (x *Exporter) send(batch []json.RawMessage) (refused int64, _ *sendError) {
	body, err := request(x.opts.Namespace, batch)
	if err != nil {
		return 0, &sendError{cause: err}
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url, bytes.NewReader(body))
	if err != nil {
		return 0, &sendError{cause: errors.New("the endpoint is no URL")}
	}
	for name, value := range x.opts.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "perigee")
	resp, err := x.client.Do(r)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return 0, &sendError{cause: err, again: true}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
	switch {
	case resp.StatusCode/100 != 2:
		return 0, statusError(resp)
	case err != nil:
		return 0, &sendError{cause: err, again: true}
	}
	return min(int64(len(batch)), refusedIn(answer)), nil
}

// statusError says whether an answer is one to come back after: OTLP has a list.
func statusError(resp *http.Response) *sendError {
	e := &sendError{cause: fmt.Errorf("the collector answered %d", resp.StatusCode)}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.again = true
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
			e.after = min(mostPause, time.Duration(s)*time.Second)
		}
	}
	return e
}

// refusedIn reads how many spans an answer says were not taken.
func refusedIn(answer []byte) int64 {
	var a struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return 0 // the spans were taken, whatever it is that was answered
	}
	n, _ := a.PartialSuccess.RejectedSpans.Int64()
	return max(0, n)
}
