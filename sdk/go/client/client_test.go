package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/sdk/go/client"
)

// call is one request as a test server saw it.
type call struct{ Method, Target, ContentType, Auth, Body string }

// answer is what a test server replies, in order; the last one is repeated.
type answer struct {
	status int
	header map[string]string
	body   string
}

// scripted is a server that gives the answers in turn and records the calls.
func scripted(t *testing.T, opts client.Options, answers ...answer) (*client.Client, func() []call) {
	t.Helper()
	var (
		mu    sync.Mutex
		calls []call
	)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		a := answers[min(len(calls), len(answers)-1)]
		calls = append(calls, call{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), string(body)})
		mu.Unlock()
		for k, v := range a.header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(srv.Close)
	c, err := client.New(srv.URL, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c, func() []call {
		mu.Lock()
		defer mu.Unlock()
		return append([]call(nil), calls...)
	}
}

func TestNew_RefusesWhatIsNoServerURL(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:7474", "ftp://host", "http://", "http://host?x=1"} {
		if _, err := client.New(bad, client.Options{}); err == nil {
			t.Errorf("New(%q): no error", bad)
		}
	}
}

func TestStart_RepetitionsCarryTheSameExecutionID(t *testing.T) {
	busy := answer{503, map[string]string{"Retry-After": "0"}, `{"code":"UNAVAILABLE","message":"database away"}`}
	c, calls := scripted(t, client.Options{Token: "secret"}, busy, busy,
		answer{201, nil, `{"execution_id":"x","created":true}`})

	started, err := c.Start(context.Background(), client.StartRequest{Workflow: "w", Input: json.RawMessage(`{"n":616581622363398142.50}`)})
	if err != nil {
		t.Fatal(err)
	}
	if !started.Created {
		t.Errorf("created: got false")
	}
	got := calls()
	if len(got) != 3 || got[0] != got[1] || got[1] != got[2] {
		t.Fatalf("expected three equal calls, got %+v", got)
	}
	if got[0].Auth != "Bearer secret" || got[0].ContentType != "application/json" {
		t.Errorf("headers: %+v", got[0])
	}
	if !strings.Contains(got[0].Body, `"n":616581622363398142.50`) || !strings.Contains(got[0].Body, `"execution_id":"`) {
		t.Errorf("body: %s", got[0].Body)
	}
}

func TestCall_RefusalIsATypedError(t *testing.T) {
	c, calls := scripted(t, client.Options{}, answer{404, map[string]string{"X-Request-Id": "r-1"},
		`{"code":"UNKNOWN_SIGNAL","message":"signal \"x\" is not declared","details":{"declared":["approval"]}}`})

	_, err := c.Signal(context.Background(), "order-1", "x", nil, "s-1")
	var got *client.Error
	if !errors.As(err, &got) {
		t.Fatalf("got %T: %v", err, err)
	}
	want := &client.Error{Code: "UNKNOWN_SIGNAL", Message: `signal "x" is not declared`, Status: 404,
		Details: json.RawMessage(`{"declared":["approval"]}`), RequestID: "r-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(calls()) != 1 {
		t.Errorf("a refusal was repeated: %+v", calls())
	}
	if client.Temporary(err) {
		t.Error("Temporary: got true")
	}
}

func TestCall_AnswerOfAGatewayIsNamedByItsStatus(t *testing.T) {
	c, _ := scripted(t, client.Options{RetryFor: client.NoRetry}, answer{502, nil, "<html>bad gateway</html>"})
	_, err := c.Query(context.Background(), "order-1", "shipped")
	if client.CodeOf(err) != "HTTP_502" || !client.Temporary(err) {
		t.Errorf("got %v, temporary %v", err, client.Temporary(err))
	}
}

// Another server than Perigee may say 501 to whatever comes: that will not pass.
func TestCall_OfAServerThatDoesNotKnowTheMethodEnds(t *testing.T) {
	c, calls := scripted(t, client.Options{RetryFor: client.Forever}, answer{501, nil, "<html>not implemented</html>"})
	_, err := c.Query(context.Background(), "order-1", "shipped")
	if client.CodeOf(err) != "HTTP_501" || client.Temporary(err) || len(calls()) != 1 {
		t.Errorf("got %v, temporary %v, after %d calls", err, client.Temporary(err), len(calls()))
	}
}

func TestCall_EndsWithItsContextAndSaysWhatKeptIt(t *testing.T) {
	c, _ := scripted(t, client.Options{RetryFor: client.Forever},
		answer{429, map[string]string{"Retry-After": "30"}, `{"code":"RESOURCE_EXHAUSTED","message":"no room"}`})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()

	_, err := c.Start(ctx, client.StartRequest{Workflow: "w"})
	if !errors.Is(err, context.DeadlineExceeded) || client.CodeOf(err) != client.CodeResourceExhausted {
		t.Errorf("got %v", err)
	}
}

func TestCall_GivesUpAfterRetryFor(t *testing.T) {
	c, calls := scripted(t, client.Options{RetryFor: time.Second},
		answer{503, map[string]string{"Retry-After": "5"}, `{"code":"UNAVAILABLE","message":"database away"}`})
	_, err := c.Workers(context.Background())
	if client.CodeOf(err) != client.CodeUnavailable || len(calls()) != 1 {
		t.Errorf("got %v after %d calls: the pause asked for is past RetryFor", err, len(calls()))
	}
}

func TestCall_LostConnectionIsRepeated(t *testing.T) {
	first := true
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first {
			first = false
			panic(http.ErrAbortHandler) // the connection breaks without an answer
		}
		_, _ = io.WriteString(w, `{"accepted":true}`)
	}))
	defer srv.Close()
	c, err := client.New(srv.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Complete(context.Background(), "t.s", nil, "")
	if err != nil || !got.Accepted {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRequests_AsTheProtocolWritesThem(t *testing.T) {
	ctx := context.Background()
	second := time.Second
	cases := []struct {
		name   string
		answer string
		do     func(c *client.Client) error
		want   call
	}{
		{"register a definition", `{"name":"w","version":"1.0.0"}`, func(c *client.Client) error {
			_, err := c.RegisterDefinition(ctx, []byte("name: w\n"), client.YAML)
			return err
		}, call{"POST", "/v1/definitions", "application/yaml", "", "name: w\n"}},
		{"default definition", `{}`, func(c *client.Client) error {
			_, err := c.Definition(ctx, "w", "")
			return err
		}, call{"GET", "/v1/definitions/w", "", "", ""}},
		{"graph", `{"nodes":[],"edges":[]}`, func(c *client.Client) error {
			_, err := c.Graph(ctx, "w", "1.0.0-rc.1")
			return err
		}, call{"GET", "/v1/definitions/w/1.0.0-rc.1/graph", "", "", ""}},
		{"list", `{"executions":[]}`, func(c *client.Client) error {
			_, err := c.List(ctx, client.ListRequest{Status: client.Failed, Tags: map[string]string{"shop": "a b"}, Limit: 5})
			return err
		}, call{"GET", "/v1/executions?limit=5&status=FAILED&tag.shop=a+b", "", "", ""}},
		{"state, waiting", `{"id":"a:1","units":{}}`, func(c *client.Client) error {
			_, err := c.Execution(ctx, client.ExecutionRequest{ExecutionID: "a:1", Wait: second})
			return err
		}, call{"GET", "/v1/executions/a:1?wait_ms=1000", "", "", ""}},
		{"signal", `{"seq":4}`, func(c *client.Client) error {
			_, err := c.Signal(ctx, "a", "approval", json.RawMessage(`{"approved":true}`), "s-1")
			return err
		}, call{"POST", "/v1/executions/a/signals/approval", "application/json", "", `{"payload":{"approved":true},"signal_id":"s-1"}`}},
		{"poll", `{"tasks":[],"next_poll_ms":0}`, func(c *client.Client) error {
			_, err := c.Poll(ctx, client.PollRequest{SessionID: "s", PollID: "p", MaxTasks: 3})
			return err
		}, call{"POST", "/v1/workers/poll", "application/json", "", `{"worker_session_id":"s","poll_id":"p","wait_ms":0,"max_tasks":3}`}},
		{"heartbeat with an empty list", `{"cancel":[]}`, func(c *client.Client) error {
			_, err := c.Heartbeat(ctx, "s", []string{})
			return err
		}, call{"POST", "/v1/workers/heartbeat", "application/json", "", `{"worker_session_id":"s","tokens":[]}`}},
		{"complete and ask for more", `{"accepted":true}`, func(c *client.Client) error {
			_, err := c.Complete(ctx, "t.s", json.RawMessage(`{"a":"<&>"}`), "sess")
			return err
		}, call{"POST", "/v1/tasks/complete", "application/json", "", `{"token":"t.s","output":{"a":"<&>"},"next":{"worker_session_id":"sess"}}`}},
		{"fail", `{"accepted":true}`, func(c *client.Client) error {
			_, err := c.Fail(ctx, "t.s", client.TaskError{Code: "NO_STOCK", Message: "<none>"}, &second, "")
			return err
		}, call{"POST", "/v1/tasks/fail", "application/json", "", `{"token":"t.s","error":{"code":"NO_STOCK","message":"<none>","retryable":false},"retry_after_ms":1000}`}},
		{"results", `{"acks":[],"tasks":[]}`, func(c *client.Client) error {
			_, err := c.Results(ctx, []client.Result{{Token: "a"}, {Token: "b", Output: json.RawMessage(`1`)}}, "sess", 2)
			return err
		}, call{"POST", "/v1/tasks/results", "application/json", "", `{"results":[{"token":"a"},{"token":"b","output":1}],"next":{"worker_session_id":"sess","max_tasks":2}}`}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c, calls := scripted(t, client.Options{}, answer{200, nil, tc.answer})
			if err := tc.do(c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]call{tc.want}, calls()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEvents_WalksAllPages(t *testing.T) {
	c, calls := scripted(t, client.Options{},
		answer{200, nil, `{"events":[{"seq":1,"timestamp_ms":5,"type":"WorkflowCreated"},{"seq":2,"timestamp_ms":5,"type":"WorkflowStarted"}],"next_after_seq":2}`},
		answer{200, nil, `{"events":[{"seq":3,"timestamp_ms":6,"type":"WorkflowCompleted","output":1e2}]}`})
	var types []string
	for e, err := range c.Events(context.Background(), "a", false) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type)
		if e.Seq == 3 && string(e.Output) != "1e2" {
			t.Errorf("output: got %s, want the digits as they came", e.Output)
		}
	}
	if diff := cmp.Diff([]string{"WorkflowCreated", "WorkflowStarted", "WorkflowCompleted"}, types); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := calls()[1].Target; got != "/v1/executions/a/history?after_seq=2" {
		t.Errorf("second page: %s", got)
	}
}

func TestTaskError_AbsentRetryableIsTrue(t *testing.T) {
	var got []client.TaskError
	if err := json.Unmarshal([]byte(`[{"code":"A","message":"m"},{"code":"B","message":"m","retryable":false}]`), &got); err != nil {
		t.Fatal(err)
	}
	want := []client.TaskError{{Code: "A", Message: "m", Retryable: true}, {Code: "B", Message: "m"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCall_FaultOfTheServerIsRepeatedWithForeverOnly(t *testing.T) {
	fault := answer{500, nil, `{"code":"INTERNAL","message":"the server failed; its log says why"}`}
	c, calls := scripted(t, client.Options{}, fault)
	if _, err := c.Workers(context.Background()); client.CodeOf(err) != client.CodeInternal || len(calls()) != 1 {
		t.Errorf("got %v after %d calls", err, len(calls()))
	}
	c, calls = scripted(t, client.Options{RetryFor: client.Forever}, fault, answer{200, nil, `{"workers":[]}`})
	if _, err := c.Workers(context.Background()); err != nil || len(calls()) != 2 {
		t.Errorf("forever: got %v after %d calls", err, len(calls()))
	}
}
