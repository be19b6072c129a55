package lambdahttp

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// simplified is an event of which the proxy can get nothing wrong: it joins
// the parts of the URL and parses the result, so that what API Gateway has
// decoded already would be decoded again, and `?` or `#` would cut it. The real
// parts are put into the request by repaired.
func simplified(event events.APIGatewayV2HTTPRequest) events.APIGatewayV2HTTPRequest {
	event.RawPath = "/"
	event.RawQueryString, event.QueryStringParameters = "", nil
	event.Headers, event.Cookies = nil, nil
	event.RequestContext.DomainName = "function"
	event.RequestContext.HTTP.Method = http.MethodPost
	return event
}

type eventKey struct{}

func withEvent(ctx context.Context, event *events.APIGatewayV2HTTPRequest) context.Context {
	return context.WithValue(ctx, eventKey{}, event)
}

// Event is the event that a request was made from: the place of the
// authorizer's word. False where the request came another way.
func Event(ctx context.Context) (events.APIGatewayV2HTTPRequest, bool) {
	event, ok := ctx.Value(eventKey{}).(*events.APIGatewayV2HTTPRequest)
	if !ok {
		return events.APIGatewayV2HTTPRequest{}, false
	}
	return *event, true
}

// repaired calls a handler as a server of net/http would.
type repaired struct{ handler http.Handler }

func (h repaired) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event, _ := r.Context().Value(eventKey{}).(*events.APIGatewayV2HTTPRequest)
	r.Method = event.RequestContext.HTTP.Method
	r.URL = address(event)
	r.RequestURI = r.URL.RequestURI()
	r.Header, r.Host = header(event)
	r.RemoteAddr = net.JoinHostPort(event.RequestContext.HTTP.SourceIP, "0")
	nameRequest(r)
	once := &writer{ResponseWriter: w}
	h.handler.ServeHTTP(once, r)
	// Who writes nothing has said 200, which the proxy takes for a failure.
	once.WriteHeader(http.StatusOK)
}

// address is the URL. The path came decoded: it is not parsed, but encoded
// again by URL.String where somebody wants it so. The query came as it was sent.
func address(event *events.APIGatewayV2HTTPRequest) *url.URL {
	path := event.RawPath
	if path == "" {
		path = event.RequestContext.HTTP.Path
	}
	path = withoutStage(path, event.RequestContext.Stage)
	return &url.URL{Path: path, RawQuery: event.RawQueryString}
}

// withoutStage cuts the name of a stage off a path, as a whole segment: the
// stage v1 is no part of /v10.
func withoutStage(path, stage string) string {
	if stage != "" && stage != "$default" {
		if rest, ok := strings.CutPrefix(path, "/"+stage); ok && (rest == "" || rest[0] == '/') {
			path = rest
		}
	}
	if !strings.HasPrefix(path, "/") {
		return "/" + path
	}
	return path
}

// header gives each header the one value that came: API Gateway has joined
// repeated ones, and whether a comma separates or belongs to a value (a date, a
// quoted text) only the reader of that header knows. Cookies come apart and
// belong into one header. As in net/http the host is not among them.
func header(event *events.APIGatewayV2HTTPRequest) (h http.Header, host string) {
	h, host = make(http.Header, len(event.Headers)+1), event.RequestContext.DomainName
	for name, value := range event.Headers {
		if strings.EqualFold(name, "Host") {
			host = value
			continue
		}
		h.Set(name, value)
	}
	if len(event.Cookies) > 0 {
		h.Set("Cookie", strings.Join(event.Cookies, "; "))
	}
	return h, host
}

// requestID is the header by which callers name their requests.
const requestID = "X-Request-Id"

// nameRequest gives a request without a name that of its invocation, under
// which the platform's own log lines stand.
func nameRequest(r *http.Request) {
	if call, ok := lambdacontext.FromContext(r.Context()); ok && r.Header.Get(requestID) == "" {
		r.Header.Set(requestID, call.AwsRequestID)
	}
}

// writer keeps the first status: the proxy would take the last.
type writer struct {
	http.ResponseWriter
	wrote bool
}

func (w *writer) WriteHeader(status int) {
	// 1xx are no answers yet, and API Gateway has no place for them.
	if w.wrote || status < http.StatusOK {
		return
	}
	w.wrote = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(body []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.ResponseWriter.Write(body)
}
