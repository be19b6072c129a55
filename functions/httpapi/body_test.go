package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/functions/httpapi"
	"perigee/functions/httpapi/httpapitest"
)

// withBody lists the routes that read a body, with the path of an example.
func withBody() map[string]httpapitest.Request {
	m := map[string]httpapitest.Request{}
	for name, list := range examples {
		if strings.HasPrefix(name, "POST") {
			m[name] = list[0].Request
		}
	}
	return m
}

func isDefinition(name string) bool {
	return name == "POST /v1/definitions" || name == "POST /v1/definitions/validate"
}

// mayBeEmpty are the routes that need no body.
var mayBeEmpty = map[string]bool{
	"POST /v1/definitions/{name}/{version}/retire": true, "POST /v1/executions/{id}/cancel": true, "POST /v1/executions/{id}/signals/{name}": true,
}

func TestBody_EveryRouteRefusesWhatIsNoObject(t *testing.T) {
	for name, r := range withBody() {
		if isDefinition(name) {
			continue
		}
		for _, body := range []string{"null", "[]", `"x"`, "7", "{", `{"a"`, `{}{}`, `{} x`, `{'a':1}`, "not json", "\xff", `{"a":1,"a":2}`, `{"token":"x","token":"y"}`, `{"\ud800":1}`, strings.Repeat("[", 300)} {
			s, f := newServer(t)
			r.Body = body
			got := s.Do(t, r)
			if got.Status != 400 || got.Code() != "INVALID_REQUEST" || f.calls != 0 {
				t.Errorf("%s %q: got %d %s after %d calls of the engine", name, body, got.Status, got.Body, f.calls)
			}
		}
	}
}

func TestBody_EmptyIsRefusedWhereOneIsNeeded(t *testing.T) {
	for name, r := range withBody() {
		s, _ := newServer(t)
		r.Body, r.Method, r.ContentType = "", "POST", "application/json"
		got := s.Do(t, r)
		if ok := got.Status < 300; ok != mayBeEmpty[name] {
			t.Errorf("%s: got %d %s", name, got.Status, got.Body)
		}
		if got.Status >= 300 && !strings.Contains(got.Body, "the body is empty; expected a") {
			t.Errorf("%s: got %s", name, got.Body)
		}
	}
}

func TestBody_OtherContentTypesAre415(t *testing.T) {
	for name, r := range withBody() {
		for _, contentType := range []string{"none", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/json;;", "multipart/form-data", "application/yaml", "json"} {
			if isDefinition(name) && contentType == "application/yaml" {
				continue
			}
			s, f := newServer(t)
			r.ContentType = contentType
			if got := s.Do(t, r); got.Status != 415 || got.Code() != "UNSUPPORTED_MEDIA_TYPE" || f.calls != 0 {
				t.Errorf("%s as %s: got %d %s", name, contentType, got.Status, got.Body)
			}
		}
		s, _ := newServer(t)
		r.ContentType, r.Header = "application/json", map[string]string{"Content-Encoding": "gzip"}
		if got := s.Do(t, r); got.Status != 415 {
			t.Errorf("%s compressed: got %d", name, got.Status)
		}
	}
}

func TestBody_OversizedIs413OnEveryRoute(t *testing.T) {
	contract, err := httpapitest.LoadContract()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(httpapi.New(httpapi.Options{Engine: &fakeEngine{}, Open: true}))
	defer srv.Close()
	body := `{"x":"` + strings.Repeat("x", 10<<20) + `"}`
	for name, r := range withBody() {
		// Over a connection, as the server must take in enough of the body for
		// its sender to read the answer.
		resp, err := http.Post(srv.URL+r.Path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := readAll(t, resp)
		if resp.StatusCode != 413 || !strings.Contains(text, "PAYLOAD_TOO_LARGE") {
			t.Errorf("%s: got %d %.200s", name, resp.StatusCode, text)
		}
		if err := contract.CheckResponse("POST", r.Path, resp.StatusCode, resp.Header, []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBody_LimitsAreThoseOfTheRoute(t *testing.T) {
	s := httpapitest.NewServer(t, httpapi.Options{Engine: &fakeEngine{}, Open: true, MaxPayloadBytes: 1000})
	pad := func(n int) string { return strings.Repeat(" ", n) }
	for _, c := range []struct {
		r     httpapitest.Request
		limit int
	}{
		{post("/v1/executions", `{"workflow":"w"}`), 1000 + 64<<10},
		{post("/v1/workers/poll", `{"worker_session_id":"w"}`), 1000 + 64<<10},
		{post("/v1/tasks/complete", `{"token":"t"}`), 1000 + 64<<10},
		{post("/v1/tasks/results", `{"results":[{"token":"t"}]}`), 6 << 20},
		{post("/v1/definitions", `{"name":"w"}`), 1 << 20},
		{req("/v1/definitions/validate", `{"name":"w"}`, "application/yaml"), 256 << 10},
	} {
		small := c.r
		small.Body += pad(c.limit - len(small.Body))
		large := c.r
		large.Body += pad(c.limit + 1 - len(large.Body))
		if a, b := s.Do(t, small), s.Do(t, large); a.Status >= 300 || b.Status != 413 {
			t.Errorf("%s: at the limit %d %s, above it %d", c.r.Path, a.Status, a.Body, b.Status)
		}
	}
}

func TestBody_UnknownFieldsAreRefusedOnTheAPIAndIgnoredOfWorkers(t *testing.T) {
	for name, r := range withBody() {
		if isDefinition(name) {
			continue
		}
		s, _ := newServer(t)
		r.Body = strings.TrimSuffix(r.Body, "}") + `,"Surprise~/":{"a":["b"]}}`
		if r.Body[1] == ',' {
			r.Body = "{" + r.Body[2:]
		}
		got := s.Do(t, r)
		worker := strings.Contains(name, "/workers/") || strings.Contains(name, "/tasks/")
		switch {
		case worker && got.Status != 200:
			t.Errorf("%s: got %d %s", name, got.Status, got.Body)
		case !worker && (got.Status != 400 || !strings.Contains(got.Body, "/Surprise~0~1: unknown field; known here: ")):
			t.Errorf("%s: got %d %s", name, got.Status, got.Body)
		}
	}
}

func TestBody_KeysCompareExactly(t *testing.T) {
	s, _ := newServer(t)
	got := s.Do(t, post("/v1/executions", `{"Workflow":"w"}`))
	if got.Status != 400 || !strings.Contains(got.Body, `"/Workflow","message":"unknown field`) || !strings.Contains(got.Body, "/workflow: expected a string, got nothing") {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
}

func TestBody_WrongTypesAreNamedWithPlaceAndKind(t *testing.T) {
	s, f := newServer(t)
	for _, c := range []struct{ path, body, want string }{
		{"/v1/executions", `{"workflow":7}`, "the body at /workflow: expected a string, got a number"},
		{"/v1/executions", `{"workflow":""}`, "/workflow: expected text of at least one character, got none"},
		{"/v1/executions", `{"workflow":"a\u0000"}`, "/workflow: expected text without control characters"},
		{"/v1/executions", `{"workflow":"w","tags":{"a/b":["secret"]}}`, "/tags/a~1b: expected a string, got an array"},
		{"/v1/executions", `{"workflow":"w","tags":[]}`, "/tags: expected an object of strings, got an array"},
		{"/v1/executions", `{"workflow":"w","tags":{"":"x"}}`, "/tags/: expected a name of 1 to 4096 bytes"},
		{"/v1/executions", `{"workflow":"w","wait_ms":"secret"}`, "/wait_ms: expected a number, got a string"},
		{"/v1/executions", `{"workflow":"w","wait_ms":1.5}`, "/wait_ms: expected a whole number from 0 to 3162240000000"},
		{"/v1/executions", `{"workflow":"w","wait_ms":-1}`, "/wait_ms: expected a whole number"},
		{"/v1/executions", `{"workflow":"w","wait_ms":1e300}`, "/wait_ms: expected a whole number"},
		{"/v1/executions/x/cancel", `{"reason":{"secret":1}}`, "/reason: expected a string, got an object"},
		{"/v1/executions/x/signals/y", `{"signal_id":true}`, "/signal_id: expected a string, got a boolean"},
		{"/v1/workers/register", `{"worker_id":"w","runtime":"go"}`, "/contracts: expected an array of objects, got nothing"},
		{"/v1/workers/register", `{"worker_id":"w","runtime":"go","contracts":["secret"]}`, "/contracts/0: expected an object, got a string"},
		{"/v1/workers/register", `{"worker_id":"w","runtime":"go","contracts":[{"task_name":"a"}]}`, "/contracts/0/contract_version: expected a string, got nothing"},
		{"/v1/workers/poll", `{"worker_session_id":"x","max_tasks":33}`, "/max_tasks: expected a whole number from 1 to 32"},
		{"/v1/workers/heartbeat", `{"worker_session_id":"x","tokens":"secret"}`, "/tokens: expected an array of strings, got a string"},
		{"/v1/workers/heartbeat", `{"worker_session_id":"x","tokens":["a",null]}`, "/tokens/1: expected a string, got null"},
		{"/v1/tasks/complete", `{"output":"secret"}`, "/token: expected a string, got nothing"},
		{"/v1/tasks/complete", `{"token":"t","next":"secret"}`, "/next: expected an object, got a string"},
		{"/v1/tasks/complete", `{"token":"t","next":{}}`, "/next/worker_session_id: expected a string, got nothing"},
		{"/v1/tasks/fail", `{"token":"t"}`, "/error: expected an object, got nothing"},
		{"/v1/tasks/fail", `{"token":"t","error":null}`, "/error: expected an object, got null"},
		{"/v1/tasks/fail", `{"token":"t","error":"secret"}`, "/error: expected an object, got a string"},
		{"/v1/tasks/fail", `{"token":"t","error":{"code":"X","message":"y","retryable":"secret"}}`, "/error/retryable: expected a boolean, got a string"},
		{"/v1/tasks/fail", `{"token":"t","error":{"code":"X"},"retry_after_ms":-1}`, "/retry_after_ms: expected a whole number"},
		{"/v1/tasks/results", `{"results":[]}`, "/results: expected an array of 1 to 100 results"},
		{"/v1/tasks/results", `{"results":"secret"}`, "/results: expected an array of 1 to 100 results"},
		{"/v1/tasks/results", `{"results":[` + strings.Repeat(`{"token":"t"},`, 100) + `{"token":"t"}]}`, "/results: expected an array of 1 to 100 results"},
		{"/v1/tasks/results", `{}`, "/results: expected an array of 1 to 100 results"},
		{"/v1/tasks/results", `{"results":[{"token":"t"},7]}`, "the body at /results/1: expected a JSON object, got a number"},
		{"/v1/tasks/results", `{"results":[{"token":"t"},{"token":7}]}`, "/results/1/token: expected a string, got a number"},
		{"/v1/tasks/results", `{"results":[{"token":"t","output":1,"error":{"code":"X"}}]}`, "/results/0: expected either output or error, got both"},
		{"/v1/tasks/results", `{"results":[{"token":"t"}],"next":{"worker_session_id":"x","max_tasks":0}}`, "/next/max_tasks: expected a whole number from 1 to 32"},
		{"/v1/executions", `{"workflow":"w","input":{"a":[1,{"b":"\ud800"}]}}`, "the body at /input/a/1/b is not JSON that can be taken"},
		{"/v1/executions", `{"workflow":"w","input":{"a":1,"a":2}}`, "the body at /input/a is not JSON that can be taken: this key stands twice"},
	} {
		got := s.Do(t, post(c.path, c.body))
		message, _ := got.JSON("message").Text()
		if got.Status != 400 || got.Code() != "INVALID_REQUEST" || !strings.Contains(message, c.want) {
			t.Errorf("%s %.100s:\n got %d %s\nwant %s", c.path, c.body, got.Status, got.Body, c.want)
		}
		if strings.Contains(got.Body, "secret") {
			t.Errorf("%s: the answer repeats the body: %s", c.path, got.Body)
		}
	}
	if f.calls != 0 {
		t.Errorf("the engine was called %d times", f.calls)
	}
}

func TestBody_AllFaultsAtOnce(t *testing.T) {
	s, _ := newServer(t)
	got := s.Do(t, post("/v1/executions", `{"version":1,"tags":{"a":2},"extra":3}`))
	want := exactjson.Value(`{"faults":[` +
		`{"path":"/workflow","message":"expected a string, got nothing"},` +
		`{"path":"/version","message":"expected a string, got a number"},` +
		`{"path":"/tags/a","message":"expected a string, got a number"},` +
		`{"path":"/extra","message":"unknown field; known here: workflow, version, input, execution_id, tags, wait_ms"}]}`)
	if diff := cmp.Diff(want, got.JSON("details")); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	if message, _ := got.JSON("message").Text(); message != "the body at /workflow: expected a string, got nothing (and 3 more, see details)" {
		t.Errorf("message: %s", message)
	}
}

func TestBody_PayloadsMayNestAsDeepAsDataMay(t *testing.T) {
	s, _ := newServer(t)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for path, body := range map[string]string{
		"/v1/executions":             `{"workflow":"w","input":%s}`,
		"/v1/executions/x/signals/y": `{"payload":%s}`,
		"/v1/tasks/complete":         `{"token":"t","output":%s}`,
		"/v1/tasks/results":          `{"results":[{"token":"t","output":%s}]}`,
		"/v1/tasks/progress":         `{"token":"t","details":%s}`,
	} {
		if got := s.Do(t, post(path, fmt.Sprintf(body, deep(256)))); got.Status >= 300 {
			t.Errorf("%s at 256: got %d %.200s", path, got.Status, got.Body)
		}
		got := s.Do(t, post(path, fmt.Sprintf(body, deep(257))))
		if want := map[bool]int{true: 200, false: 400}[path == "/v1/tasks/results"]; got.Status != want {
			t.Errorf("%s at 257: got %d %.200s", path, got.Status, got.Body)
		}
	}
}

func TestReport_PayloadThatCannotBeTakenEndsTheAttempt(t *testing.T) {
	s := func() (*httpapitest.Server, *fakeEngine) {
		f := &fakeEngine{}
		return httpapitest.NewServer(t, httpapi.Options{Engine: f, Open: true, MaxPayloadBytes: 100}), f
	}
	large := `"` + strings.Repeat("x", 100) + `"`
	for _, c := range []struct {
		path, body string
		status     int
		want       engine.Result
	}{
		{"/v1/tasks/complete", `{"token":"t","output":"\ud800"}`, 400, engine.Result{Token: "t", Malformed: "the value of /output is not JSON that can be taken"}},
		{"/v1/tasks/complete", `{ "output" : {"a":1,"a":2} , "token":"t","next":{"worker_session_id":"mine"}}`, 400, engine.Result{Token: "t", Malformed: "the value of /output is not JSON that can be taken: JSON at /a"}},
		{"/v1/tasks/complete", `{"token":"t","output":[1e401]}`, 400, engine.Result{Token: "t", Malformed: "the value of /output"}},
		{"/v1/tasks/complete", `{"token":"t","output":["\ud8` + `00", NaN]}`, 400, engine.Result{Token: "t", Malformed: "the value of /output"}},
		{"/v1/tasks/complete", "{\"token\":\"t\",\"output\":\"\xff\"}", 400, engine.Result{Token: "t", Malformed: "the value of /output"}},
		{"/v1/tasks/complete", `{"token":"t","output":` + large + `}`, 413, engine.Result{Token: "t", TooLarge: "the value of /output has 102 bytes, more than the 100 that a payload may have"}},
		{"/v1/tasks/complete", `{"token":"t","output":"` + strings.Repeat("x", 1<<20) + `"}`, 413, engine.Result{Token: "t", TooLarge: "the payload is too large: this call takes 65636 bytes with all around it (max_payload_bytes and 65536); keep large data elsewhere and pass a reference"}},
		{"/v1/tasks/fail", `{"token":"t","error":{"code":"X","details":"\udc00"}}`, 400, engine.Result{Token: "t", Malformed: "the value of /error"}},
		{"/v1/tasks/fail", `{"token":"t","error":{"code":"X","details":` + large + `}}`, 413, engine.Result{Token: "t", TooLarge: "the value of /error"}},
		{"/v1/tasks/results", `{"results":[{"token":"t","output":"\ud800"}]}`, 200, engine.Result{Token: "t", Malformed: "the value of /results/0/output"}},
		{"/v1/tasks/results", `{"results":[{"token":"t","output":` + large + `}]}`, 200, engine.Result{Token: "t", TooLarge: "the value of /results/0/output"}},
		{"/v1/tasks/results", `{"results":[{"token":"t","error":{"code":"\ud800"}}]}`, 200, engine.Result{Token: "t", Malformed: "the value of /results/0/error"}},
	} {
		server, f := s()
		got := server.Do(t, post(c.path, c.body))
		asked, _ := f.last.(engine.ResultsRequest)
		if got.Status != c.status || len(asked.Results) != 1 || asked.NextSession != "" {
			t.Errorf("%s %.80s: got %d %s, the engine was asked %+v", c.path, c.body, got.Status, got.Body, f.last)
			continue
		}
		r := asked.Results[0]
		if r.Token != c.want.Token || !strings.HasPrefix(r.Malformed, c.want.Malformed) || !strings.HasPrefix(r.TooLarge, c.want.TooLarge) || (r.Malformed != "") != (c.want.Malformed != "") || r.Output != "" || r.Error != nil {
			t.Errorf("%s %.80s: the engine was asked %+v", c.path, c.body, r)
		}
		if c.status >= 400 && c.path != "/v1/tasks/results" && len(c.body) < 1<<10 && !strings.Contains(got.Body, "the attempt is recorded as failed") {
			t.Errorf("%s: got %s", c.path, got.Body)
		}
	}
}

func TestReport_EnvelopeThatCannotBeReadWritesNothing(t *testing.T) {
	for _, body := range []string{
		`{"token":"\ud800","output":"\ud800"}`, `{"token":"a","token":"b","output":"\ud800"}`, `{"token":"t","output":"\ud800"`, `{"token":"t","output":"\ud800"}x`,
		`{"token":"t","output":"\ud800","extra":"\ud800"}`, `{"output":"\ud800"}`, `{"token":"t","next":{"a":"\ud800"}}`, `{"token":"t",,"output":"\ud800"}`, `{"token":"t","output":}`, `{"token" "t"}`,
		`{"token":7,"output":"\ud800"}`, `{"error":1,}`, `{,}`, `[{"token":"t"}]`,
	} {
		for _, path := range []string{"/v1/tasks/complete", "/v1/tasks/fail", "/v1/tasks/results"} {
			s, f := newServer(t)
			sent := body
			if path == "/v1/tasks/results" {
				sent = `{"results":[{"token":"fine"},` + body + `]}`
			}
			if got := s.Do(t, post(path, sent)); got.Status != 400 || f.calls != 0 {
				t.Errorf("%s %s: got %d %s after %d calls of the engine", path, sent, got.Status, got.Body, f.calls)
			}
		}
	}
}

func TestReport_AResultThatWasNotLookedAtSaysWhy(t *testing.T) {
	s, f := newServer(t)
	f.acks = []engine.Ack{{Token: "a", Accepted: true}, {Token: "b", Error: "CONFLICT"}}
	got := s.Do(t, post("/v1/tasks/results", `{"results":[{"token":"a"},{"token":"b"}]}`))
	want := `{"acks":[{"token":"a","accepted":true},{"token":"b","accepted":false,"error":"CONFLICT"}],"tasks":[]}`
	if got.Status != 200 || got.Body != want {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
}

func TestReport_OneBadResultLeavesTheOthers(t *testing.T) {
	s, f := newServer(t)
	got := s.Do(t, post("/v1/tasks/results", `{"results":[{"token":"a","output":1},{"token":"b","output":"\ud800"},{"token":"c","error":{"code":"X","message":"\ud83d\ude00"}}]}`))
	want := `{"acks":[{"token":"a","accepted":true},{"token":"b","accepted":false,"reason":"output violates the task contract"},{"token":"c","accepted":true}],"tasks":[]}`
	if got.Status != 200 || got.Body != want {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
	asked := f.last.(engine.ResultsRequest).Results
	asked[1].Malformed = "…"
	if diff := cmp.Diff([]engine.Result{{Token: "a", Output: "1"}, {Token: "b", Malformed: "…"}, {Token: "c", Error: &history.TaskError{Code: "X", Message: "😀", Retryable: true}}}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestQuery_UnknownAndWrongParametersAreRefused(t *testing.T) {
	s, f := newServer(t)
	for path, want := range map[string]string{
		"/v1/executions?status=DONE":            "the query parameter status: expected one of: RUNNING, COMPENSATING",
		"/v1/executions?limit=0":                "the query parameter limit: expected a whole number from 1 to 1000",
		"/v1/executions?limit=1001":             "the query parameter limit: expected a whole number from 1 to 1000",
		"/v1/executions?limit=ten":              "the query parameter limit: expected a whole number",
		"/v1/executions?limit=1&limit=2":        "the query parameter limit: stands 2 times in the query; give it once",
		"/v1/executions?stat=RUNNING":           "the query parameter stat: unknown parameter; known here: status, workflow, version, parent, created_after, created_before, limit, cursor, tag.NAME",
		"/v1/executions?tag.=x":                 "the query parameter tag.: expected a name behind tag.",
		"/v1/executions?workflow=%00":           "the query parameter workflow: expected at most 4096 bytes of UTF-8",
		"/v1/executions?tag.%ff=1":              "the query parameter tag.\uFFFD: expected a name",
		"/v1/executions?a=%zz":                  "the query of the URL cannot be decoded",
		"/v1/executions?a;b":                    "the query of the URL cannot be decoded",
		"/v1/executions/x?wait_ms=-1":           "the query parameter wait_ms: expected a whole number",
		"/v1/executions/x?wait=1":               "the query parameter wait: unknown parameter; known here: units_after, limit, wait_ms",
		"/v1/executions/x/history?after_seq=-1": "the query parameter after_seq: expected a whole number",
		"/v1/executions/x/queries/q?x=1":        "the query parameter x: unknown parameter; known here: none",
		"/v1/definitions?name=x":                "the query parameter name: unknown parameter; known here: none",
	} {
		got := s.Do(t, get(path))
		message, _ := got.JSON("message").Text()
		if got.Status != 400 || !strings.Contains(message, want) {
			t.Errorf("%s: got %d %s", path, got.Status, got.Body)
		}
	}
	if f.calls != 0 {
		t.Errorf("the engine was called %d times", f.calls)
	}
}
