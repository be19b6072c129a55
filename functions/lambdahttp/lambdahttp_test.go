package lambdahttp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"perigee/functions/lambdahttp"
)

// event is a GET as API Gateway sends it, changed by the test.
func event(change func(*events.APIGatewayV2HTTPRequest)) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "$default", RawPath: "/v1/executions",
		Headers: map[string]string{"host": "abc.execute-api.us-east-1.amazonaws.com", "accept": "application/json"},
	}
	e.RequestContext.DomainName = "abc.execute-api.us-east-1.amazonaws.com"
	e.RequestContext.Stage = "$default"
	e.RequestContext.HTTP = events.APIGatewayV2HTTPRequestContextHTTPDescription{
		Method: "GET", Path: "/v1/executions", Protocol: "HTTP/1.1", SourceIP: "203.0.113.7",
	}
	if change != nil {
		change(&e)
	}
	return e
}

// call gives an event to a handler.
func call(t *testing.T, e events.APIGatewayV2HTTPRequest, h http.HandlerFunc) events.APIGatewayV2HTTPResponse {
	t.Helper()
	answer, err := lambdahttp.Handler(h, slog.New(slog.DiscardHandler))(t.Context(), e)
	if err != nil {
		t.Fatalf("the function failed: %v", err)
	}
	return answer
}

// seen is the request that a handler gets for an event.
func seen(t *testing.T, e events.APIGatewayV2HTTPRequest) *http.Request {
	t.Helper()
	var got *http.Request
	call(t, e, func(_ http.ResponseWriter, r *http.Request) { got = r })
	if got == nil {
		t.Fatal("the handler was not called")
	}
	return got
}

func TestHandler_PathsAreNotDecodedTwice(t *testing.T) {
	for _, test := range []struct{ raw, path, escaped string }{
		{"/v1/executions/o-1", "/v1/executions/o-1", "/v1/executions/o-1"},
		{"/100%", "/100%", "/100%25"},
		{"/a%41", "/a%41", "/a%2541"},
		{"/a?b", "/a?b", "/a%3Fb"},
		{"/a#b", "/a#b", "/a%23b"},
		{"/Größe ", "/Größe ", "/Gr%C3%B6%C3%9Fe%20"},
		{"//twice", "//twice", "//twice"},
		{"/\x7f\n", "/\x7f\n", "/%7F%0A"},
		{"/a:b@c", "/a:b@c", "/a:b@c"},
	} {
		r := seen(t, event(func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = test.raw }))
		if r.URL.Path != test.path || r.URL.EscapedPath() != test.escaped || r.URL.RawQuery != "" || r.URL.Fragment != "" {
			t.Errorf("%q: path %q, escaped %q, query %q, fragment %q", test.raw, r.URL.Path, r.URL.EscapedPath(), r.URL.RawQuery, r.URL.Fragment)
		}
	}
}

func TestHandler_QueriesComeAsTheyWereSent(t *testing.T) {
	r := seen(t, event(func(e *events.APIGatewayV2HTTPRequest) {
		e.RawQueryString = "tag.a%20b=1%2C2&tag.c=#x&limit=1"
		e.QueryStringParameters = map[string]string{"limit": "9"}
	}))
	want := map[string][]string{"tag.a b": {"1,2"}, "tag.c": {"#x"}, "limit": {"1"}}
	if diff := cmp.Diff(want, map[string][]string(r.URL.Query())); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
	if r.RequestURI != "/v1/executions?tag.a%20b=1%2C2&tag.c=#x&limit=1" {
		t.Errorf("RequestURI: %q", r.RequestURI)
	}
}

func TestHandler_HeadersAreNotSplit(t *testing.T) {
	r := seen(t, event(func(e *events.APIGatewayV2HTTPRequest) {
		e.Headers["if-match"] = `"a,b", "c"`
		e.Headers["date"] = "Sun, 29 Nov 2026 15:00:00 GMT"
		e.Headers["x-empty"] = ""
	}))
	want := http.Header{
		"Accept": {"application/json"}, "If-Match": {`"a,b", "c"`}, "Date": {"Sun, 29 Nov 2026 15:00:00 GMT"}, "X-Empty": {""},
	}
	if diff := cmp.Diff(want, r.Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestHandler_TheHostIsNoHeader(t *testing.T) {
	r := seen(t, event(func(e *events.APIGatewayV2HTTPRequest) {
		e.Headers["Host"] = "api.example.com"
		delete(e.Headers, "host")
	}))
	if r.Host != "api.example.com" || r.Header.Get("Host") != "" {
		t.Errorf("host %q, header %q", r.Host, r.Header.Get("Host"))
	}
	r = seen(t, event(func(e *events.APIGatewayV2HTTPRequest) { delete(e.Headers, "host") }))
	if r.Host != "abc.execute-api.us-east-1.amazonaws.com" {
		t.Errorf("host %q without a header, want the gateway's", r.Host)
	}
}

func TestHandler_TheCallersAddressHasAPort(t *testing.T) {
	for ip, want := range map[string]string{"203.0.113.7": "203.0.113.7:0", "2001:db8::1": "[2001:db8::1]:0"} {
		r := seen(t, event(func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.SourceIP = ip }))
		if r.RemoteAddr != want {
			t.Errorf("RemoteAddr %q, want %q", r.RemoteAddr, want)
		}
	}
}

func TestHandler_SeveralCookiesAreOneHeader(t *testing.T) {
	r := seen(t, event(func(e *events.APIGatewayV2HTTPRequest) { e.Cookies = []string{"a=1", "b=2,3"} }))
	if diff := cmp.Diff([]string{"a=1; b=2,3"}, r.Header.Values("Cookie")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	answer := call(t, event(nil), func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
		http.SetCookie(w, &http.Cookie{Name: "b", Value: "2"})
	})
	if diff := cmp.Diff([]string{"a=1", "b=2"}, answer.Cookies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHandler_AStageIsCutAsAWholeSegment(t *testing.T) {
	for _, test := range []struct{ stage, raw, want string }{
		{"$default", "/v1/x", "/v1/x"},
		{"prod", "/prod/v1/x", "/v1/x"},
		{"prod", "/prod", "/"},
		{"prod", "/production/x", "/production/x"},
		{"v1", "/v10/x", "/v10/x"},
		{"prod", "/v1/prod/x", "/v1/prod/x"},
		{"", "", "/v1/executions"},
	} {
		r := seen(t, event(func(e *events.APIGatewayV2HTTPRequest) {
			e.RequestContext.Stage, e.RawPath = test.stage, test.raw
		}))
		if r.URL.Path != test.want {
			t.Errorf("stage %q, path %q: got %q, want %q", test.stage, test.raw, r.URL.Path, test.want)
		}
	}
}

func TestHandler_BodiesComeWhole(t *testing.T) {
	for _, test := range []struct {
		body   string
		base64 bool
		want   string
	}{
		{`{"a":"ü"}`, false, `{"a":"ü"}`},
		{base64.StdEncoding.EncodeToString([]byte{0, 0xff, '\n'}), true, "\x00\xff\n"},
		{"", false, ""},
	} {
		var got string
		var length int64
		call(t, event(func(e *events.APIGatewayV2HTTPRequest) {
			e.RequestContext.HTTP.Method, e.Body, e.IsBase64Encoded = "POST", test.body, test.base64
		}), func(_ http.ResponseWriter, r *http.Request) {
			raw, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			got, length = string(raw), r.ContentLength
		})
		if got != test.want || length != int64(len(test.want)) {
			t.Errorf("got %q (length %d), want %q", got, length, test.want)
		}
	}
}

func TestHandler_ABodyThatIsNoBase64IsTheCallersFault(t *testing.T) {
	answer := call(t, event(func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = "%%%", true }),
		func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
	if answer.StatusCode != 400 || !strings.Contains(answer.Body, "INVALID_REQUEST") {
		t.Errorf("got %d %s", answer.StatusCode, answer.Body)
	}
}

func TestHandler_WhoWritesNothingHasSaidOK(t *testing.T) {
	if got := call(t, event(nil), func(http.ResponseWriter, *http.Request) {}); got.StatusCode != 200 || got.Body != "" {
		t.Errorf("got %d %q", got.StatusCode, got.Body)
	}
}

func TestHandler_TheFirstStatusCounts(t *testing.T) {
	got := call(t, event(nil), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusNotFound)
		w.WriteHeader(http.StatusOK)
		io.WriteString(w, "gone")
	})
	if got.StatusCode != 404 || got.Body != "gone" {
		t.Errorf("got %d %q", got.StatusCode, got.Body)
	}
}

func TestHandler_APanicIsAnAnswer(t *testing.T) {
	var log strings.Builder
	function := lambdahttp.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken invariant") }),
		slog.New(slog.NewJSONHandler(&log, nil)))
	answer, err := function(t.Context(), event(nil))
	if err != nil || answer.StatusCode != 500 || !strings.Contains(answer.Body, `"code":"INTERNAL"`) || strings.Contains(answer.Body, "invariant") {
		t.Errorf("got %d %s, %v", answer.StatusCode, answer.Body, err)
	}
	if !strings.Contains(log.String(), "broken invariant") {
		t.Errorf("the log does not tell it: %s", log.String())
	}
}

func TestHandler_AnOddMethodReachesTheHandler(t *testing.T) {
	r := seen(t, event(func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = "gEt /" }))
	if r.Method != "gEt /" {
		t.Errorf("got %q", r.Method)
	}
}

func TestHandler_BinaryAnswersAreBase64(t *testing.T) {
	got := call(t, event(nil), func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte{0xff, 0}) })
	if !got.IsBase64Encoded || got.Body != "/wA=" {
		t.Errorf("got %q, base64 %t", got.Body, got.IsBase64Encoded)
	}
}

// A page of 4 MiB of JSON is full of quotes, each of which takes two bytes in
// the answer's own JSON.
func TestHandler_LargeAnswersFitLambda(t *testing.T) {
	const limit = 6 << 20
	for name, test := range map[string]struct {
		body   string
		status int
	}{
		"text":                {strings.Repeat("a", 5<<20), 200},
		"quotes":              {strings.Repeat(`"`, 4<<20), 200},
		"more than there is":  {strings.Repeat("a", limit), 500},
		"quotes, no way left": {strings.Repeat(`"`, 5<<20), 500},
	} {
		answer := call(t, event(nil), func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, test.body) })
		raw, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != test.status || len(raw) > limit {
			t.Errorf("%s: status %d, want %d; %d bytes, limit %d", name, answer.StatusCode, test.status, len(raw), limit)
		}
		body := answer.Body
		if answer.IsBase64Encoded {
			decoded, err := base64.StdEncoding.DecodeString(body)
			if err != nil {
				t.Fatal(err)
			}
			body = string(decoded)
		}
		if test.status == 200 && body != test.body {
			t.Errorf("%s: the body changed", name)
		}
	}
}

func TestHandler_TheContextEndsWhileThereIsTimeToAnswer(t *testing.T) {
	for _, test := range []struct {
		left     time.Duration // 0: no deadline
		from, to time.Duration
	}{
		{10 * time.Second, 8 * time.Second, 9 * time.Second},
		{5 * time.Minute, 28 * time.Second, 29 * time.Second},
		{0, 28 * time.Second, 29 * time.Second},
	} {
		ctx := t.Context()
		if test.left > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, test.left)
			defer cancel()
		}
		_, err := lambdahttp.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			end, ok := r.Context().Deadline()
			if left := time.Until(end); !ok || left < test.from || left > test.to {
				t.Errorf("with %v left for the function the handler has %v", test.left, left)
			}
		}), slog.New(slog.DiscardHandler))(ctx, event(nil))
		if err != nil {
			t.Error(err)
		}
	}
}

func TestHandler_ARequestIsNamedAfterItsInvocation(t *testing.T) {
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "8476a536"})
	for _, brought := range []string{"", "mine"} {
		e := event(func(e *events.APIGatewayV2HTTPRequest) {
			if brought != "" {
				e.Headers["x-request-id"] = brought
			}
		})
		var got string
		lambdahttp.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("X-Request-Id") }),
			slog.New(slog.DiscardHandler))(ctx, e)
		if want := map[string]string{"": "8476a536", "mine": "mine"}[brought]; got != want {
			t.Errorf("brought %q: got %q, want %q", brought, got, want)
		}
	}
}

// The authorizer's word comes with the event, never from a header.
func TestHandler_ACallerCannotSpeakForTheAuthorizer(t *testing.T) {
	r := seen(t, event(func(e *events.APIGatewayV2HTTPRequest) {
		e.Headers["x-golambdaproxy-apigw-context"] = `{"authorizer":{"jwt":{"claims":{"perigee_role":"admin"}}}}`
	}))
	got, ok := lambdahttp.Event(r.Context())
	if !ok || got.RequestContext.Authorizer != nil {
		t.Errorf("got %v, %+v", ok, got.RequestContext.Authorizer)
	}
}
