package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"perigee/engine"
	"perigee/engine/exactjson"
	"perigee/functions/httpapi"
	"perigee/functions/httpapi/httpapitest"
	"perigee/store/sqlite"
)

// realServer serves a real engine over a database in memory.
func realServer(t *testing.T, opts engine.Options) *httpapitest.Server {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Options{Path: ":memory:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	if _, _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(st, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return httpapitest.NewServer(t, httpapi.Options{Engine: e, Open: true, HoldPolls: opts.HoldPolls, MaxPayloadBytes: opts.MaxPayloadBytes})
}

const lampWorkflow = `
name: lamp
version: "1.0.0"
timeout: 1h
input: { type: object, required: [n] }
signals: { go: { type: object, required: [ok] } }
queries: { half: "input.n / 0", n: input.n }
tasks: { lamp.make: { version: "1.0.0", output: { type: object } } }
steps:
  - { id: make, task: lamp.make, with: { n: "${input.n}" }, timeout: 1m, queue_timeout: 1m, retry: none }
  - { id: wait, await: go, timeout: 1h }
  - { id: again, task: lamp.make, timeout: 1m, queue_timeout: 1m }
output: "${steps.make.output}"
`

// want fails the test where an answer is another than expected.
func want(t *testing.T, got httpapitest.Response, status int, code string) httpapitest.Response {
	t.Helper()
	if got.Status != status || got.Code() != code {
		t.Fatalf("got %d %s, want %d %s", got.Status, got.Body, status, code)
	}
	return got
}

func text(v exactjson.Value) string {
	s, _ := v.Text()
	return s
}

func TestAPI_ExecutionFromStartToEndKeepsToTheDocument(t *testing.T) {
	s := realServer(t, engine.Options{HoldPolls: true, MaxPayloadBytes: 1000})
	want(t, s.Do(t, req("/v1/definitions/validate", lampWorkflow+"x: 1\n", "application/yaml")), 200, "")
	want(t, s.Do(t, req("/v1/definitions", lampWorkflow+"x: 1\n", "application/yaml")), 400, "INVALID_DEFINITION")
	want(t, s.Do(t, req("/v1/definitions", lampWorkflow, "application/yaml")), 201, "")
	want(t, s.Do(t, req("/v1/definitions", lampWorkflow, "application/yaml")), 200, "")
	want(t, s.Do(t, req("/v1/definitions", strings.Replace(lampWorkflow, "1h", "2h", 1), "application/yaml")), 409, "DEFINITION_CONFLICT")
	want(t, s.Do(t, get("/v1/definitions")), 200, "")
	canonical := want(t, s.Do(t, get("/v1/definitions/lamp")), 200, "").JSON("definition")
	want(t, s.Do(t, post("/v1/definitions", string(canonical))), 200, "")
	want(t, s.Do(t, get("/v1/definitions/lamp/1.0.0/graph")), 200, "")
	want(t, s.Do(t, get("/v1/definitions/lamp/9.0.0/graph")), 404, "WORKFLOW_NOT_FOUND")

	start := `{"workflow":"lamp","execution_id":"l-1","input":{"n":18446744073709551615.50},"tags":{"shop":"a"}}`
	want(t, s.Do(t, post("/v1/executions", start)), 201, "")
	want(t, s.Do(t, post("/v1/executions", start)), 200, "")
	want(t, s.Do(t, post("/v1/executions", `{"workflow":"lamp","execution_id":"l-1","input":{"n":1}}`)), 409, "EXECUTION_EXISTS")
	want(t, s.Do(t, post("/v1/executions", `{"workflow":"lamp","input":{}}`)), 400, "INVALID_INPUT")
	want(t, s.Do(t, post("/v1/executions", `{"workflow":"nope"}`)), 404, "WORKFLOW_NOT_FOUND")
	want(t, s.Do(t, post("/v1/executions", `{"workflow":"lamp","execution_id":"a/b"}`)), 400, "INVALID_EXECUTION_ID")
	want(t, s.Do(t, post("/v1/executions", `{"workflow":"lamp","input":{"n":"`+strings.Repeat("x", 1000)+`"}}`)), 413, "PAYLOAD_TOO_LARGE")
	want(t, s.Do(t, get("/v1/executions?status=running&tag.shop=a")), 200, "")

	want(t, s.Do(t, post("/v1/workers/register", `{"worker_id":"w","runtime":"go","contracts":[{"task_name":"orbit.x","contract_version":"1.0.0"}]}`)), 400, "RESERVED_TASK")
	session := text(want(t, s.Do(t, post("/v1/workers/register", `{"worker_id":"w","runtime":"go","contracts":[{"task_name":"lamp.make","contract_version":"1.0.0"}]}`)), 200, "").JSON("worker_session_id"))
	want(t, s.Do(t, post("/v1/workers/poll", `{"worker_session_id":"nope"}`)), 404, "UNKNOWN_SESSION")
	polled := want(t, s.Do(t, post("/v1/workers/poll", fmt.Sprintf(`{"worker_session_id":%q,"poll_id":"p"}`, session))), 200, "")
	token := ""
	for task := range polled.JSON("tasks").Elements() {
		token = text(task.Get("token"))
		if input := task.Get("input"); input != `{"n":18446744073709551615.50}` {
			t.Errorf("input: %s", input)
		}
	}
	want(t, s.Do(t, post("/v1/workers/heartbeat", fmt.Sprintf(`{"worker_session_id":%q,"tokens":[%q]}`, session, token))), 200, "")
	want(t, s.Do(t, post("/v1/tasks/progress", fmt.Sprintf(`{"token":%q,"details":{"done":0.5}}`, token))), 200, "")
	want(t, s.Do(t, post("/v1/tasks/complete", fmt.Sprintf(`{"token":%q,"output":{"id":1.50},"next":{"worker_session_id":%q}}`, token, session))), 200, "")
	want(t, s.Do(t, post("/v1/tasks/fail", fmt.Sprintf(`{"token":%q,"error":{"code":"X","message":"late"}}`, token))), 200, "")

	want(t, s.Do(t, post("/v1/executions/l-1/signals/nope", `{}`)), 404, "UNKNOWN_SIGNAL")
	want(t, s.Do(t, post("/v1/executions/l-1/signals/go", `{"payload":{}}`)), 422, "SIGNAL_PAYLOAD_INVALID")
	want(t, s.Do(t, post("/v1/executions/l-1/signals/go", `{"payload":{"ok":true},"signal_id":"s"}`)), 202, "")
	want(t, s.Do(t, post("/v1/executions/l-1/signals/go", `{"payload":{"ok":false},"signal_id":"s"}`)), 409, "SIGNAL_EXISTS")
	want(t, s.Do(t, get("/v1/executions/l-1/queries/n")), 200, "")
	want(t, s.Do(t, get("/v1/executions/l-1/queries/half")), 422, "QUERY_FAILED")
	want(t, s.Do(t, get("/v1/executions/l-1/queries/nope")), 404, "UNKNOWN_QUERY")

	again := want(t, s.Do(t, post("/v1/workers/poll", fmt.Sprintf(`{"worker_session_id":%q,"wait_ms":1000}`, session))), 200, "")
	for task := range again.JSON("tasks").Elements() {
		token = text(task.Get("token"))
	}
	want(t, s.Do(t, post("/v1/tasks/results", fmt.Sprintf(`{"results":[{"token":%q,"output":{}}],"next":{"worker_session_id":%q,"max_tasks":2}}`, token, session))), 200, "")
	state := want(t, s.Do(t, get("/v1/executions/l-1?wait_ms=5000")), 200, "")
	if state.JSON("status") != `"COMPLETED"` || state.JSON("output") != `{"id":1.50}` {
		t.Errorf("state: %s", state.Body)
	}
	page := want(t, s.Do(t, get("/v1/executions/l-1/history?limit=3")), 200, "")
	if page.JSON("events").Len() != 3 || page.JSON("next_after_seq") != "3" {
		t.Errorf("history: %s", page.Body)
	}
	want(t, s.Do(t, get("/v1/executions/l-1/history")), 200, "")
	want(t, s.Do(t, post("/v1/executions/l-1/cancel", `{}`)), 409, "EXECUTION_FINISHED")
	want(t, s.Do(t, get("/v1/executions/nope")), 404, "NOT_FOUND")
	want(t, s.Do(t, get("/v1/executions?cursor=nonsense")), 400, "INVALID_REQUEST")
	want(t, s.Do(t, get("/v1/workers")), 200, "")
	want(t, s.Do(t, post("/v1/workers/unregister", fmt.Sprintf(`{"worker_session_id":%q}`, session))), 200, "")
	want(t, s.Do(t, post("/v1/definitions/lamp/1.0.0/retire", `{}`)), 200, "")
	want(t, s.Do(t, post("/v1/definitions/lamp/2.0.0/retire", `{}`)), 404, "WORKFLOW_NOT_FOUND")
}

func TestAPI_OutputThatCannotBeTakenFailsItsStep(t *testing.T) {
	for output, code := range map[string]string{`"\ud800"`: "OUTPUT_CONTRACT_VIOLATION", `"` + strings.Repeat("x", 2000) + `"`: "PAYLOAD_TOO_LARGE", `"` + strings.Repeat("x", 1<<20) + `"`: "PAYLOAD_TOO_LARGE"} {
		s := realServer(t, engine.Options{MaxPayloadBytes: 1000})
		want(t, s.Do(t, req("/v1/definitions", lampWorkflow, "application/yaml")), 201, "")
		want(t, s.Do(t, post("/v1/executions", `{"workflow":"lamp","execution_id":"l-1","input":{"n":1}}`)), 201, "")
		session := text(s.Do(t, post("/v1/workers/register", `{"worker_id":"w","runtime":"go","contracts":[{"task_name":"lamp.make","contract_version":"1.0.0"}]}`)).JSON("worker_session_id"))
		token := ""
		for task := range s.Do(t, post("/v1/workers/poll", fmt.Sprintf(`{"worker_session_id":%q}`, session))).JSON("tasks").Elements() {
			token = text(task.Get("token"))
		}
		body := fmt.Sprintf(`{"token":%q,"output":%s}`, token, output)
		for range 2 { // a worker that sends it again gets the same answer
			got := s.Do(t, post("/v1/tasks/complete", body))
			if got.Status != 400 && got.Status != 413 {
				t.Errorf("%.20s: got %d %s", output, got.Status, got.Body)
			}
		}
		state := s.Do(t, get("/v1/executions/l-1"))
		if state.JSON("status") != `"FAILED"` || text(state.JSON("error").Get("code")) != code {
			t.Errorf("%.20s: the state is %s", output, state.Body)
		}
	}
}
