package httpapi_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/functions/httpapi"
	"perigee/functions/httpapi/httpapitest"
	"perigee/store"
)

// example is a call that succeeds: one at least for each route.
type example struct {
	httpapitest.Request
	status int
	want   string // the body, "": not compared
	asked  any    // what the engine is asked, nil: not compared
}

var retryAfter = 1500 * time.Millisecond

// taskJSON is the fake engine's task on the wire.
const taskJSON = `{"token":"bGFtcA.secret","execution_id":"order-1","workflow":"order","workflow_version":"1.0.0","step_id":"ship[0]","task_name":"shipping.ship","contract_version":"1.0.0","input":{"n":18446744073709551615.50,"z":1,"a":"\u0000"},"idempotency_key":"order-1/ship[0]","attempt":1,"redelivery":false,"deadline_ms":1790000000000,"timeout_ms":30000}`

// examples by "METHOD /path" of the table.
var examples = map[string][]example{
	"POST /v1/definitions": {
		{req("/v1/definitions", "name: order", "application/yaml"), 201, `{"name":"order","version":"1.0.0","definition_hash":"sha256:ab","created":true,"warnings":[{"code":"NO_TIMEOUT","severity":"warning","line":1,"column":2,"path":"/steps/0","message":"no timeout","hint":"give one"}]}`, list{"name: order", definition.YAML}},
		{req("/v1/definitions", `same`, "application/json; charset=UTF-8"), 200, "", list{"same", definition.JSON}},
	},
	"POST /v1/definitions/validate": {
		{req("/v1/definitions/validate", "name: order", "text/yaml"), 200, `{"valid":true,"faults":[]}`, list{"name: order", definition.YAML}},
		{req("/v1/definitions/validate", "bad", "application/yaml"), 200, "", nil},
	},
	"GET /v1/definitions":                          {{get("/v1/definitions"), 200, "", nil}},
	"GET /v1/definitions/{name}":                   {{get("/v1/definitions/order?version=1.0.0-rc.1"), 200, `{"name":"order","version":"1.0.0","definition_hash":"sha256:ab","description":"orders","retired":false,"created_at_ms":0,"definition":{"name":"order"}}`, list{"order", "1.0.0-rc.1"}}, {get("/v1/definitions/validate"), 200, "", list{"validate", ""}}},
	"GET /v1/definitions/{name}/{version}/graph":   {{get("/v1/definitions/order/1.0.0/graph"), 200, "", list{"order", "1.0.0"}}},
	"POST /v1/definitions/{name}/{version}/retire": {{post("/v1/definitions/order/1.0.0/retire", "{}"), 200, `{"name":"order","version":"1.0.0","retired":true}`, list{"order", "1.0.0"}}, {httpapitest.Request{Method: "POST", Path: "/v1/definitions/order/1.0.0/retire"}, 200, "", list{"order", "1.0.0"}}},
	"POST /v1/executions": {
		{post("/v1/executions", `{"workflow":"order","version":"1.0.0","input":{"n":18446744073709551615.50,"b":[ ]},"execution_id":"order-1","tags":{"shop":"a"},"wait_ms":90000}`), 201, `{"execution_id":"order-1","created":true}`,
			engine.StartRequest{Workflow: "order", Version: "1.0.0", Input: `{"n":18446744073709551615.50,"b":[]}`, ExecutionID: "order-1", Tags: map[string]string{"shop": "a"}, Wait: 25 * time.Second}},
		{post("/v1/executions", `{"workflow":"order","version":null,"input":null}`), 201, "", engine.StartRequest{Workflow: "order", Input: "null"}},
	},
	"GET /v1/executions": {
		{get("/v1/executions"), 200, `{"executions":[{"execution_id":"order-1","workflow":"order","version":"1.0.0","definition_hash":"","status":"RUNNING","created_at_ms":1,"updated_at_ms":2,"due_at_ms":5,"error_count":2,"parent":{"execution_id":"p","step":"child[0]"},"tags":{},"last_seq":4},{"execution_id":"order-0","workflow":"order","version":"1.0.0","definition_hash":"","status":"FAILED","created_at_ms":0,"updated_at_ms":0,"finished_at_ms":9,"tags":{"a":"2","z":"1"},"last_seq":0}],"next_cursor":"next"}`, engine.ListRequest{Limit: 50}},
		{get("/v1/executions?status=timed_out&workflow=w&version=1.0.0&parent=p&tag.a=1&tag.b.c=%22&created_after=1&created_before=2&limit=1000&cursor=c"), 200, "",
			engine.ListRequest{Status: "TIMED_OUT", Workflow: "w", Version: "1.0.0", Parent: "p", Tags: map[string]string{"a": "1", "b.c": `"`}, CreatedAfterMS: 1, CreatedBeforeMS: 2, Limit: 1000, Cursor: "c"}},
	},
	"GET /v1/executions/{id}": {
		{get("/v1/executions/order-1?wait_ms=1000"), 200, "", list{"order-1", time.Second}},
		{get("/v1/executions/..%2Fx%20y?units_after=a&limit=1"), 200, "", list{"../x y", time.Duration(0)}},
		{httpapitest.Request{Method: "HEAD", Path: "/v1/executions/order-1"}, 200, "", nil},
	},
	"GET /v1/executions/{id}/history": {{get("/v1/executions/order-1/history?after_seq=3&limit=2&wait_ms=30000"), 200,
		`{"events":[{"seq":1,"timestamp_ms":1790000000000,"type":"WorkflowCreated","workflow":"order","input":18446744073709551615.50},{"seq":2,"timestamp_ms":1790000000000,"type":"WorkflowStarted"}],"next_after_seq":2}`,
		engine.HistoryRequest{ExecutionID: "order-1", AfterSeq: 3, Limit: 2, Wait: 25 * time.Second}}},
	"POST /v1/executions/{id}/cancel": {
		{post("/v1/executions/order-1/cancel", `{"reason":"a\u0000b"}`), 200, "", list{"order-1", "a\x00b"}},
		{httpapitest.Request{Method: "POST", Path: "/v1/executions/order-1/cancel"}, 200, "", list{"order-1", ""}},
	},
	"POST /v1/executions/{id}/signals/{name}": {
		{post("/v1/executions/order-1/signals/approval", `{"payload":{"a":1.0},"signal_id":"s"}`), 202, `{"seq":7}`, list{"order-1", "approval", exactjson.Value(`{"a":1.0}`), "s"}},
		{httpapitest.Request{Method: "POST", Path: "/v1/executions/order-1/signals/approval"}, 202, "", list{"order-1", "approval", exactjson.Value(""), ""}},
	},
	"GET /v1/executions/{id}/queries/{name}": {{get("/v1/executions/order-1/queries/shipped"), 200, `{"result":[1.0,2]}`, list{"order-1", "shipped"}}},
	"GET /v1/workers":                        {{get("/v1/workers"), 200, `{"workers":[{"worker_id":"w","runtime":"go","sdk":"","contracts":[{"task_name":"a","contract_version":"1.0.0"}],"last_seen_ms":0,"registered_at_ms":0,"online":true,"sessions":1,"inflight":0}]}`, nil}},
	"POST /v1/workers/register": {{post("/v1/workers/register", `{"worker_id":"w","runtime":"Go","sdk":null,"contracts":[{"task_name":"mail","contract_version":"1.0.0","new":1}],"new":{}}`), 200,
		`{"accepted":true,"worker_session_id":"mine","heartbeat_interval_ms":10000,"session_timeout_ms":30000,"max_wait_ms":25000,"warnings":[]}`,
		engine.RegisterRequest{WorkerID: "w", Runtime: "Go", Contracts: []store.Contract{{TaskName: "mail", ContractVersion: "1.0.0"}}}}},
	"POST /v1/workers/poll": {
		{post("/v1/workers/poll", `{"worker_session_id":"mine"}`), 200, `{"tasks":[` + taskJSON + `,` + taskJSON + `],"next_poll_ms":1500}`, engine.PollRequest{SessionID: "mine", Wait: 20 * time.Second, MaxTasks: 1}},
		{post("/v1/workers/poll", `{"worker_session_id":"mine","poll_id":"p","wait_ms":0,"max_tasks":32,"new":true}`), 200, "", engine.PollRequest{SessionID: "mine", PollID: "p", MaxTasks: 32}},
	},
	"POST /v1/workers/heartbeat": {
		{post("/v1/workers/heartbeat", `{"worker_session_id":"mine"}`), 200, `{"accepted":true,"cancel":["bGFtcA.secret"]}`, list{"mine", []string(nil)}},
		{post("/v1/workers/heartbeat", `{"worker_session_id":"mine","tokens":[]}`), 200, "", list{"mine", []string{}}},
		{post("/v1/workers/heartbeat", `{"worker_session_id":"mine","tokens":["mine1","nonsense"]}`), 200, "", list{"mine", []string{"mine1", "nonsense"}}},
	},
	"POST /v1/workers/unregister": {{post("/v1/workers/unregister", `{"worker_session_id":"mine"}`), 200, `{"accepted":true}`, list{"mine"}}},
	"POST /v1/tasks/complete": {
		{post("/v1/tasks/complete", `{"token":"mine1","output":{"a":1.50}}`), 200, `{"accepted":true}`, engine.ResultsRequest{Results: []engine.Result{{Token: "mine1", Output: `{"a":1.50}`}}}},
		{post("/v1/tasks/complete", `{"token":"mine1","next":{"worker_session_id":"mine"},"new":1}`), 200, `{"accepted":true,"next":` + taskJSON + `}`, engine.ResultsRequest{Results: []engine.Result{{Token: "mine1"}}, NextSession: "mine", NextMax: 1}},
		{post("/v1/tasks/complete", `{"token":"mine1","next":{"worker_session_id":"gone"}}`), 200, `{"accepted":true,"next_error":"UNKNOWN_SESSION"}`, nil},
	},
	"POST /v1/tasks/fail": {
		{post("/v1/tasks/fail", `{"token":"mine1","error":{"code":"X","message":"y\u0000","details":{"n":1e400}},"retry_after_ms":1500}`), 200, `{"accepted":true}`,
			engine.ResultsRequest{Results: []engine.Result{{Token: "mine1", Error: &history.TaskError{Code: "X", Message: "y\x00", Retryable: true, Details: `{"n":1e400}`}, RetryAfter: &retryAfter}}}},
		{post("/v1/tasks/fail", `{"token":"mine1","error":{"code":"X","retryable":false},"retry_after_ms":null}`), 200, "", engine.ResultsRequest{Results: []engine.Result{{Token: "mine1", Error: &history.TaskError{Code: "X"}}}}},
	},
	"POST /v1/tasks/results": {{post("/v1/tasks/results", `{ "results" : [ {"token":"mine1","output":[1.0]}, {"token":"mine2","error":{"code":"X","message":"y"},"output":null} ] , "next":{"worker_session_id":"mine","max_tasks":3}}`), 200,
		`{"acks":[{"token":"mine1","accepted":true},{"token":"mine2","accepted":true}],"tasks":[` + taskJSON + `]}`,
		engine.ResultsRequest{Results: []engine.Result{{Token: "mine1", Output: `[1.0]`}, {Token: "mine2", Error: &history.TaskError{Code: "X", Message: "y", Retryable: true}}}, NextSession: "mine", NextMax: 3}}},
	"POST /v1/tasks/progress": {{post("/v1/tasks/progress", `{"token":"mine1","details":{"done":0.10}}`), 200, `{"accepted":true,"cancel":false}`, list{"mine1", exactjson.Value(`{"done":0.10}`)}}},
	"GET /v1/openapi.yaml":    {{get("/v1/openapi.yaml"), 200, "", nil}},
	"GET /docs":               {{get("/docs"), 200, "", nil}},
	"GET /healthz":            {{get("/healthz"), 200, `{"status":"ok"}`, nil}},
	"GET /readyz":             {{get("/readyz"), 200, `{"status":"ok"}`, nil}},
	"GET /":                   {{get("/"), 200, "", nil}},
}

func get(path string) httpapitest.Request { return httpapitest.Request{Path: path} }

func post(path, body string) httpapitest.Request {
	return httpapitest.Request{Method: "POST", Path: path, Body: body}
}

func req(path, body, contentType string) httpapitest.Request {
	return httpapitest.Request{Method: "POST", Path: path, Body: body, ContentType: contentType}
}

func key(r httpapi.Route) string { return r.Method + " " + r.Path }

func TestRoutes_EachAnswersAsDocumented(t *testing.T) {
	for _, rt := range httpapi.Routes() {
		t.Run(key(rt), func(t *testing.T) {
			if len(examples[key(rt)]) == 0 {
				t.Fatal("there is no example of this route")
			}
			for _, e := range examples[key(rt)] {
				s, f := newServer(t)
				got := s.Do(t, e.Request)
				if got.Status != e.status || e.want != "" && got.Body != e.want {
					t.Errorf("%s %s: got %d %s, want %d", e.Method, e.Path, got.Status, got.Body, e.status)
					t.Log(cmp.Diff(e.want, got.Body))
				}
				if e.asked != nil {
					if diff := cmp.Diff(e.asked, f.last); diff != "" {
						t.Errorf("%s: the engine was asked (-want +got):\n%s", e.Path, diff)
					}
				}
			}
		})
	}
}

func TestRoutes_AnswersAreNotKeptOrGuessedAt(t *testing.T) {
	s, _ := newServer(t)
	got := s.Do(t, get("/v1/executions"))
	want := map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Type": "application/json"}
	for name, value := range want {
		if got.Header.Get(name) != value {
			t.Errorf("%s: got %q, want %q", name, got.Header.Get(name), value)
		}
	}
}

func TestRoutes_DocumentAndTableAgree(t *testing.T) {
	contract, err := httpapitest.LoadContract()
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string][]string{}, map[string][]string{}
	for _, rt := range httpapi.Routes() {
		want[key(rt)] = rt.Roles
	}
	for _, op := range contract.Operations() {
		got[op.Method+" "+op.Path] = op.Roles
		if op.Summary() == "" {
			t.Errorf("%s %s has no summary", op.Method, op.Path)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("roles by route (-table +document):\n%s", diff)
	}
}

func TestRoutes_DocumentTakesTheExampleBodies(t *testing.T) {
	contract, err := httpapitest.LoadContract()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		for _, e := range examples[name] {
			if e.Body == "" || e.ContentType != "" {
				continue
			}
			if err := contract.CheckRequest(e.Method, e.Path, []byte(e.Body)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestRoutes_UnknownPathsAndMethods(t *testing.T) {
	s, _ := newServer(t)
	for _, path := range []string{"/nope", "/v1", "/v1/executions/", "/v1//executions", "/v1/executions/x/", "/v1/./executions", "/v1/executions/..", "/v1/executions/x/nope", "/v2/executions", "/docs/"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			if got := s.Do(t, httpapitest.Request{Method: method, Path: path}); got.Status != 404 || got.Code() != "NOT_FOUND" {
				t.Errorf("%s %s: got %d %s", method, path, got.Status, got.Body)
			}
		}
	}
	for request, allow := range map[string]string{
		"PUT /v1/executions": "GET, HEAD, POST", "DELETE /v1/executions/x": "GET, HEAD", "GET /v1/executions/x/cancel": "POST", "HEAD /v1/tasks/complete": "POST",
		"PUT /v1/definitions/validate": "GET, HEAD, POST", "OPTIONS /v1/workers/poll": "POST", "POST /": "GET, HEAD", "PATCH /docs": "GET, HEAD",
	} {
		method, path, _ := strings.Cut(request, " ")
		got := s.Do(t, httpapitest.Request{Method: method, Path: path})
		if got.Status != 405 || got.Header.Get("Allow") != allow || method != "HEAD" && got.Code() != "METHOD_NOT_ALLOWED" {
			t.Errorf("%s: got %d, Allow %q, %s", request, got.Status, got.Header.Get("Allow"), got.Body)
		}
	}
}

func TestRoutes_PathValuesThatNothingCanHave(t *testing.T) {
	s, f := newServer(t)
	for _, id := range []string{"a%00b", "%ff", "a%0Ab", strings.Repeat("x", 4097)} {
		for _, r := range []httpapitest.Request{get("/v1/executions/" + id), post("/v1/executions/a/signals/"+id, "{}"), get("/v1/definitions/" + id), get("/v1/definitions/a/" + id + "/graph")} {
			if got := s.Do(t, r); got.Status != 404 || f.calls != 0 {
				t.Errorf("%.40s: got %d after %d calls of the engine", r.Path, got.Status, f.calls)
			}
		}
	}
}

func TestRoutes_WaitsAreNotHeldOnLambda(t *testing.T) {
	s, f := newGuarded(t)
	admin := map[string]string{"Authorization": "Bearer admin"}
	for _, r := range []httpapitest.Request{
		post("/v1/executions", `{"workflow":"w","wait_ms":1000}`), get("/v1/executions/x?wait_ms=1000"), get("/v1/executions/x/history?wait_ms=1000"), post("/v1/workers/poll", `{"worker_session_id":"mine"}`),
	} {
		r.Header = admin
		s.Do(t, r)
		wait := time.Duration(-1)
		switch asked := f.last.(type) {
		case engine.StartRequest:
			wait = asked.Wait
		case engine.HistoryRequest:
			wait = asked.Wait
		case engine.PollRequest:
			wait = asked.Wait
		case list:
			wait = asked[1].(time.Duration)
		}
		if wait != 0 {
			t.Errorf("%s waits %s", r.Path, wait)
		}
	}
}

func TestStart_WaitedForEndIsInTheAnswer(t *testing.T) {
	s, f := newServer(t)
	compensated := history.CompensationDone
	for want, started := range map[string]engine.Started{
		`{"execution_id":"x","created":false}`:                                              {ExecutionID: "x", State: state()},
		`{"execution_id":"x","created":true,"status":"COMPLETED","output":1.50}`:            {ExecutionID: "x", Created: true, State: state(history.WorkflowCompleted{Output: "1.50"})},
		`{"execution_id":"x","created":true,"status":"CANCELLED"}`:                          {ExecutionID: "x", Created: true, State: state(history.CancelRequested{}, history.WorkflowCancelled{Compensation: compensated})},
		`{"execution_id":"x","created":true,"status":"FAILED","error":` + failureJSON + `}`: {ExecutionID: "x", Created: true, State: state(history.WorkflowFailed{Error: taskError, Compensation: compensated})},
	} {
		f.started = started
		got := s.Do(t, post("/v1/executions", `{"workflow":"w","wait_ms":1000}`))
		if got.Body != want || got.Status != map[bool]int{true: 201, false: 200}[started.Created] {
			t.Errorf("got %d %s, want %s", got.Status, got.Body, want)
		}
	}
}

const failureJSON = `{"code":"OUT_OF_STOCK","message":"no \"lamps\" left","retryable":false,"details":{"sku":"a<b"}}`

func TestHistory_PageEndsBeforeItGrowsTooLarge(t *testing.T) {
	s, f := newServer(t)
	for i := range 6 {
		f.page.Events = append(f.page.Events, store.Event{Seq: uint64(i + 1), Type: "SignalReceived", Data: fmt.Sprintf(`{"payload":%q}`, strings.Repeat("x", 1<<20))})
	}
	got := s.Do(t, get("/v1/executions/x/history"))
	if n := got.JSON("events").Len(); n != 3 || got.JSON("next_after_seq") != "3" || len(got.Body) > 4<<20 {
		t.Errorf("got %d events in %d bytes, next_after_seq %s", n, len(got.Body), got.JSON("next_after_seq"))
	}
	f.page.Events = []store.Event{{Seq: 9, Type: "SignalReceived", Data: fmt.Sprintf(`{"payload":%q}`, strings.Repeat("x", 5<<20))}}
	if got := s.Do(t, get("/v1/executions/x/history")); got.JSON("events").Len() != 1 || !got.JSON("next_after_seq").Absent() {
		t.Errorf("one large event: got %d bytes, next_after_seq %s", len(got.Body), got.JSON("next_after_seq"))
	}
}

func TestReadyz_SaysWhatTheCheckSays(t *testing.T) {
	s := httpapitest.NewServer(t, httpapi.Options{Engine: &fakeEngine{}, Ready: func(context.Context) error { return fmt.Errorf("dial tcp 10.0.0.1: password=hunter2") }})
	got := s.Do(t, get("/readyz"))
	if got.Status != 503 || got.Code() != "UNAVAILABLE" || strings.Contains(got.Body, "hunter2") {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
	if got := s.Do(t, get("/healthz")); got.Status != http.StatusOK {
		t.Errorf("healthz: got %d", got.Status)
	}
}

// Whoever looks at a server that waits for its migration reads that.
func TestReadyz_PassesOnARefusalOfOurOwn(t *testing.T) {
	const says = "the database is at version 25, this release needs 26; run `perigee migrate`"
	s := httpapitest.NewServer(t, httpapi.Options{Engine: &fakeEngine{}, Ready: func(context.Context) error {
		return fmt.Errorf("ready: %w", &engine.Error{Code: engine.Unavailable, Message: says, RetryAfter: 2 * time.Second})
	}})
	got := s.Do(t, get("/readyz"))
	if got.Status != 503 || got.Code() != "UNAVAILABLE" || !strings.Contains(got.Body, says) || got.Header.Get("Retry-After") != "2" {
		t.Errorf("got %d %v %s", got.Status, got.Header, got.Body)
	}
}
