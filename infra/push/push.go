package push

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"perigee/engine"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/infra/outbound"
)

// CodeFailed is the code of an attempt whose worker could not be called.
const CodeFailed = "PUSH_FAILED"

// maxLambdaBytes is what an asynchronous invocation of a Lambda function takes.
const maxLambdaBytes = 1 << 20

// shownBytes is how much of an answer's body a failure keeps.
const shownBytes = 1024

// Invoker calls Lambda functions.
type Invoker interface {
	// InvokeAsync hands a payload to a function and does not wait for its end.
	// The function may run all the same after an error, but for one with
	// NotRun() true in its chain.
	InvokeAsync(ctx context.Context, function string, payload []byte) error
}

// notRun is an error that knows whether the function runs.
type notRun interface {
	error
	NotRun() bool
}

// Options make a Pusher.
type Options struct {
	Routes Routes
	// Client makes the calls and knows the secrets.
	Client *outbound.Client
	// Invoker calls Lambda functions; nil: routes to such are refused.
	Invoker Invoker
	// Now tells the time of signatures; nil: time.Now.
	Now func() time.Time
}

// Pusher calls workers. It is an engine.Push.
type Pusher struct{ opts Options }

var _ engine.Push = (*Pusher)(nil)

// New makes a Pusher. It calls nobody yet.
func New(o Options) (*Pusher, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	for _, r := range o.Routes {
		if r.Function != "" && o.Invoker == nil {
			return nil, fmt.Errorf("routes: %q: this server cannot call the Lambda function %s; give the route a url, such as one of the function's own", r.Pattern, r.Function)
		}
	}
	return &Pusher{o}, nil
}

// Takes reports whether a task has a route.
func (p *Pusher) Takes(task string) bool {
	_, ok := p.opts.Routes.Find(task)
	return ok
}

// Bound is the longest time-out of a route.
func (p *Pusher) Bound() time.Duration {
	var longest time.Duration
	for _, r := range p.opts.Routes {
		longest = max(longest, r.Timeout)
	}
	return longest
}

// Deliver calls the worker of a task. Nil: the worker has it, and reports on its
// token.
func (p *Pusher) Deliver(ctx context.Context, a engine.Assignment) *engine.Failure {
	route, ok := p.opts.Routes.Find(a.TaskName)
	if !ok {
		return failed("no route leads to a worker of %s any more", a.TaskName)
	}
	ctx, cancel := context.WithTimeout(ctx, route.Timeout)
	defer cancel()
	body := a.AppendJSON(nil)
	if route.Function != "" {
		return p.invoke(ctx, route, body)
	}
	return p.post(ctx, route, body)
}

func (p *Pusher) invoke(ctx context.Context, route Route, body []byte) *engine.Failure {
	if len(body) > maxLambdaBytes {
		fail := failed("Lambda function %s: the assignment has %d bytes, and Lambda takes at most %d: send a reference to the data in its place", route.Function, len(body), maxLambdaBytes)
		fail.Retryable = false
		return fail
	}
	if err := p.opts.Invoker.InvokeAsync(ctx, route.Function, body); err != nil {
		var known notRun
		fail := failed("Lambda function %s: %v", route.Function, err)
		fail.Unknown = !errors.As(err, &known) || !known.NotRun()
		return fail
	}
	return nil
}

// post makes a signed call. Redirects are not followed: the signature is for
// the route's own host.
func (p *Pusher) post(ctx context.Context, route Route, body []byte) *engine.Failure {
	secret, err := p.opts.Client.Secret(ctx, route.Secret)
	if err != nil {
		return failed("the call cannot be signed: %v", err)
	}
	timestamp, signature := Sign(secret, p.opts.Now(), body)
	resp, err := p.opts.Client.Send(ctx, outbound.Request{
		Method: http.MethodPost, URL: route.URL, Body: body, Keep: shownBytes,
		Header: http.Header{
			"Content-Type": {"application/json"}, TimestampHeader: {timestamp}, SignatureHeader: {signature},
		},
	})
	switch {
	case err != nil:
		var e *outbound.Error
		fail := failed("%v", err)
		fail.Unknown = errors.As(err, &e) && e.Sent
		return fail
	case resp.Status >= 200 && resp.Status < 300:
		return nil
	}
	fail := failed("POST %s answered %s", where(route), outbound.StatusText(resp.Status))
	// A gateway says 5xx of a worker that is slow or gone and may be at it. Any
	// other status is the worker's own, or of one who did not let the call in.
	fail.Unknown = resp.Status >= 500
	fail.RetryAfter = outbound.RetryAfter(resp.Header, p.opts.Now())
	details := []exactjson.Member{{Key: "status", Value: exactjson.FromInt(int64(resp.Status))}}
	if text := strings.ToValidUTF8(string(resp.Body), ""); text != "" {
		details = append(details, exactjson.Member{Key: "body", Value: exactjson.FromString(text)})
	}
	fail.Details = exactjson.Object(details)
	return fail
}

// where is a route's URL without its query, which may hold what is secret.
func where(r Route) string {
	bare, _, _ := strings.Cut(r.URL.String(), "?")
	return bare
}

// failed is a delivery that another try may better.
func failed(format string, args ...any) *engine.Failure {
	return &engine.Failure{TaskError: history.TaskError{Code: CodeFailed, Message: fmt.Sprintf(format, args...), Retryable: true}}
}
