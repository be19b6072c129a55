package push_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/infra/cloud"
	"perigee/infra/outbound"
	"perigee/infra/push"
)

const secret = "shared between two"

var assignment = engine.Assignment{
	Token: "place.secret", ExecutionID: "order-1", Workflow: "order", WorkflowVersion: "1.0.0", StepID: "charge",
	TaskName: "payment.charge", ContractVersion: "1.2.0", Input: `{"amount":80.00}`, IdempotencyKey: "order-1/charge",
	Attempt: 2, Redelivery: true, DeadlineMS: 1_800_000_060_000, TimeoutMS: 60_000,
}

const assignmentJSON = `{"token":"place.secret","execution_id":"order-1","workflow":"order","workflow_version":"1.0.0","step_id":"charge",` +
	`"task_name":"payment.charge","contract_version":"1.2.0","input":{"amount":80.00},"idempotency_key":"order-1/charge",` +
	`"attempt":2,"redelivery":true,"deadline_ms":1800000060000,"timeout_ms":60000}`

func moment() time.Time { return time.Unix(1_800_000_000, 0) }

func newPusher(t *testing.T, routes string, invoker push.Invoker) *push.Pusher {
	t.Helper()
	client := outbound.New(outbound.Options{
		Allow:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Secrets: outbound.Environment(func(name string) (string, bool) { return secret, name == "PERIGEE_SECRET_PUSH" }),
	})
	t.Cleanup(client.Close)
	parsed, err := push.Parse([]byte(routes))
	if err != nil {
		t.Fatal(err)
	}
	p, err := push.New(push.Options{Routes: parsed, Client: client, Invoker: invoker, Now: moment})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// target serves a worker and gives the routes that lead to it.
func target(t *testing.T, h http.HandlerFunc) (url, routes string) {
	t.Helper()
	url = serve(t, h)
	return url, `{"payment.*": {"url": "` + url + `/tasks?key=confidential", "secret": "PUSH", "timeout": "5s"}}`
}

func TestDeliver_SendsTheAssignmentSigned(t *testing.T) {
	var method, path, contentType, timestamp, signature string
	var body []byte
	_, routes := target(t, func(w http.ResponseWriter, r *http.Request) {
		method, path, contentType = r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type")
		timestamp, signature = r.Header.Get("perigee-timestamp"), r.Header.Get("perigee-signature")
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
	})
	if fail := newPusher(t, routes, nil).Deliver(t.Context(), assignment); fail != nil {
		t.Fatal(fail.Message)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("1800000000." + assignmentJSON))
	want := []string{"POST", "/tasks?key=confidential", "application/json", "1800000000", "v1=" + hex.EncodeToString(mac.Sum(nil)), assignmentJSON}
	if diff := cmp.Diff(want, []string{method, path, contentType, timestamp, signature, string(body)}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDeliver_AnyOtherAnswerIsAFailure(t *testing.T) {
	for status, header := range map[int]http.Header{
		302: {"Location": {"https://elsewhere.example/"}}, // not followed
		401: nil,
		404: nil,
		429: {"Retry-After": {"7"}},
		500: nil,
		504: nil, // of a gateway whose worker goes on
	} {
		url, routes := target(t, func(w http.ResponseWriter, _ *http.Request) {
			for name, values := range header {
				w.Header()[name] = values
			}
			w.WriteHeader(status)
			fmt.Fprint(w, "because", strings.Repeat(".", 5000))
		})
		want := &engine.Failure{TaskError: history.TaskError{
			Code: "PUSH_FAILED", Message: "POST " + url + "/tasks answered " + outbound.StatusText(status), Retryable: true,
			Details: exactjson.Value(fmt.Sprintf(`{"status":%d,"body":"because%s"}`, status, strings.Repeat(".", 1024-7))),
		}, Unknown: status >= 500}
		if status == 429 {
			want.RetryAfter = new(7 * time.Second)
		}
		if diff := cmp.Diff(want, newPusher(t, routes, nil).Deliver(t.Context(), assignment)); diff != "" {
			t.Errorf("%d (-want +got):\n%s", status, diff)
		}
	}
}

// Whether the worker has the task decides what may be done about it.
func TestDeliver_SaysWhetherTheWorkerMayHaveTheTask(t *testing.T) {
	_, cut := target(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	const private = `{"*": {"url": "https://10.0.0.1/", "secret": "PUSH"}}`
	if fail := newPusher(t, private, nil).Deliver(t.Context(), assignment); fail == nil || fail.Unknown || !fail.Retryable || !strings.Contains(fail.Message, "http-allow") {
		t.Errorf("refused: %+v", fail)
	}
	if fail := newPusher(t, cut, nil).Deliver(t.Context(), assignment); fail == nil || !fail.Unknown || !fail.Retryable || strings.Contains(fail.Message, "confidential") {
		t.Errorf("cut off: %+v", fail)
	}
}

func TestDeliver_NeedsTheSecret(t *testing.T) {
	fail := newPusher(t, `{"*": {"url": "https://worker.example/", "secret": "OTHER"}}`, nil).Deliver(t.Context(), assignment)
	want := failed("the call cannot be signed: secret OTHER: there is no such secret (set PERIGEE_SECRET_OTHER where the server runs)")
	if diff := cmp.Diff(want, fail); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func failed(message string) *engine.Failure {
	return &engine.Failure{TaskError: history.TaskError{Code: "PUSH_FAILED", Message: message, Retryable: true}}
}

// lambda remembers what it was called with.
type lambda struct {
	function, payload string
	err               error
}

func (l *lambda) InvokeAsync(_ context.Context, function string, payload []byte) error {
	l.function, l.payload = function, string(payload)
	return l.err
}

func TestDeliver_InvokesALambdaFunction(t *testing.T) {
	const routes = `{"payment.charge": {"function": "arn:aws:lambda:eu-central-1:123456789012:function:charge:live"}}`
	l := &lambda{}
	if fail := newPusher(t, routes, l).Deliver(t.Context(), assignment); fail != nil {
		t.Fatal(fail.Message)
	}
	want := lambda{function: "arn:aws:lambda:eu-central-1:123456789012:function:charge:live", payload: assignmentJSON}
	if diff := cmp.Diff(want, *l, cmp.AllowUnexported(lambda{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	large := assignment
	large.Input = exactjson.FromString(strings.Repeat("x", 1<<20))
	if fail := newPusher(t, routes, l).Deliver(t.Context(), large); fail == nil || fail.Retryable || fail.Code != "PUSH_FAILED" {
		t.Errorf("too large: %+v", fail)
	}
}

// Lambda answers 202 once it has taken a call. Where it did not, only a refusal
// or a call that never went out says that the function does not run.
func TestDeliver_SaysWhetherTheFunctionMayRun(t *testing.T) {
	answers := func(status int) string {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	reset := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for _, c := range []struct {
		name, endpoint, key string
		unknown             bool
		says                string
	}{
		{"refused", answers(404), "key", false, "404 Not Found"},
		{"throttled", answers(429), "key", false, "429 Too Many Requests"},
		{"a fault of Lambda's", answers(500), "key", true, "500 Internal Server Error"},
		{"a gateway's", answers(502), "key", true, "502 Bad Gateway"},
		{"an answer that nobody gives", answers(200), "key", true, "200 OK"},
		{"cut off", reset, "key", true, "EOF"},
		{"nobody listens", "http://127.0.0.1:1", "key", false, "connection refused"},
		{"not signed", reset, "", false, "there are no credentials"},
	} {
		lambda := cloud.New("eu-central-1", func(name string) (string, bool) {
			text, ok := map[string]string{"AWS_ENDPOINT_URL": c.endpoint, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": c.key}[name]
			return text, ok
		})
		fail := newPusher(t, `{"*": {"function": "charge"}}`, lambda).Deliver(t.Context(), assignment)
		if fail == nil || fail.Unknown != c.unknown || !fail.Retryable || !strings.Contains(fail.Message, c.says) {
			t.Errorf("%s: got %+v, want unknown %t and %q", c.name, fail, c.unknown, c.says)
		}
	}
	if fail := newPusher(t, `{"*": {"function": "charge"}}`, &lambda{err: errors.New("?")}).Deliver(t.Context(), assignment); fail == nil || !fail.Unknown {
		t.Errorf("an error that says nothing: %+v", fail)
	}
}

// serve gives the URL of a server.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestNew_RefusesFunctionsThatItCannotCall(t *testing.T) {
	routes, err := push.Parse([]byte(`{"a": {"function": "f"}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = push.New(push.Options{Routes: routes, Client: outbound.New(outbound.Options{})})
	if err == nil || !strings.Contains(err.Error(), `"a": this server cannot call the Lambda function f`) {
		t.Errorf("got %v", err)
	}
}

func TestFind_TakesTheClosestPattern(t *testing.T) {
	routes, err := push.Parse([]byte(`{
		"*": {"function": "all"}, "payment.*": {"function": "payments"}, "payment.card.*": {"function": "cards"},
		"payment.card.charge": {"function": "charge"}, "payment": {"function": "bare"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for task, want := range map[string]string{
		"payment.card.charge": "charge", "payment.card.refund": "cards", "payment.cards": "payments",
		"payment": "bare", "payments.x": "all", "mail": "all",
	} {
		if got, ok := routes.Find(task); !ok || got.Function != want {
			t.Errorf("%s goes to %q, want %q", task, got.Function, want)
		}
	}
	if _, ok := (push.Routes{}).Find("mail"); ok {
		t.Error("a task has a route where there are none")
	}
}

func TestParse_TellsAllFaults(t *testing.T) {
	_, err := push.Parse([]byte(`{
		"Payments": {"function": "f"},
		"payments*": {"function": "f"},
		"a": 7,
		"b": {"url": "https://b.example/"},
		"c": {"url": "http://c.example/", "secret": "S"},
		"d": {"url": "https://u:p@d.example/", "secret": "S"},
		"e": {"url": "https://e.example/", "secret": "S", "function": "f"},
		"f": {},
		"g": {"function": "f", "timeout": "5m"},
		"h": {"function": "f", "retries": "5"},
		"i": {"function": 7},
		"j": {"function": "f", "secret": "S"},
		"k": {"url": "/k", "secret": "S"},
		"l": {"url": "https://l.example/", "secret": "a b"}}`))
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		`routes: "Payments": expected the name of a task, a prefix such as payments.*, or *`,
		`routes: "payments*": expected the name of a task, a prefix such as payments.*, or *`,
		`routes: "a": expected {url, secret, timeout?} or {function, timeout?}, got number`,
		`routes: "b": secret is missing: name the secret that signs the calls of this url`,
		`routes: "c": url: expected https; http is for workers on localhost only`,
		`routes: "d": url: it holds credentials; calls are signed with the route's secret`,
		`routes: "e": expected a url or a function, and only one of them`,
		`routes: "f": expected a url or a function, and only one of them`,
		`routes: "g": timeout: expected more than 0 and at most 4m, got 5m`,
		`routes: "h": retries: unknown key; known: url, secret, function, timeout`,
		`routes: "i": function: expected text, got number`,
		`routes: "j": secret does not go with a function: its calls are signed by AWS`,
		`routes: "k": url: expected an absolute https URL`,
		`routes: "l": secret: expected the name of a secret: a letter or _, then letters, digits or _, at most 64`,
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoad_TakesJSONOrAFile(t *testing.T) {
	const text = ` {"mail.*": {"function": "mail", "timeout": "7s"}} `
	file := filepath.Join(t.TempDir(), "routes.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := push.Routes{{Pattern: "mail.*", Function: "mail", Timeout: 7 * time.Second}}
	for _, from := range []string{text, file} {
		got, err := push.Load(from)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", from, err, diff)
		}
	}
	if got, err := push.Load(""); got != nil || err != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
	for _, wrong := range []string{"no-such-file.json", "[]", `{"a":`} {
		if _, err := push.Load(wrong); err == nil {
			t.Errorf("%s: no error", wrong)
		}
	}
}

func TestBound_IsTheLongestTimeOutOfARoute(t *testing.T) {
	p := newPusher(t, `{"a": {"url": "https://a.example", "secret": "A", "timeout": "2m"}, "b": {"url": "https://b.example", "secret": "B"}}`, nil)
	if got := p.Bound(); got != 2*time.Minute {
		t.Errorf("got %s, want that of the route of a", got)
	}
}
