package blackbox_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"perigee/sdk/go/client"
)

// nasty are texts that a database, a log or a URL may stumble over.
var nasty = []string{`\u0000`, `a\u0000b`, `\\`, `\"'`, `\n\r\t`, `\u001b[31m`, `😀`, `\ud800`, `%00%2f`, `../..`, `\u202e`, `;--`, strings.Repeat("x", 100_000), ``}

// TestNames_ATextIsTakenOrRefusedAndNeverAFaultOfTheServer puts nasty texts
// into every field that is no payload.
func TestNames_ATextIsTakenOrRefusedAndNeverAFaultOfTheServer(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(strict)
		session := quote(e.register("w", "a.step"))
		e.start("strict", "s", `{"n":1}`)
		token := quote(e.poll(e.register("v", "a.step")).Token)
		for _, text := range nasty {
			s := `"` + text + `"`
			for _, c := range []struct{ path, body string }{
				{"/v1/executions", `{"workflow":` + s + `}`},
				{"/v1/executions", `{"workflow":"strict","version":` + s + `,"input":{"n":1}}`},
				{"/v1/executions", `{"workflow":"strict","execution_id":` + s + `,"input":{"n":1}}`},
				{"/v1/executions", `{"workflow":"strict","input":{"n":1},"tags":{"k":` + s + `}}`},
				{"/v1/executions", `{"workflow":"strict","input":{"n":1},"tags":{` + s + `:"v"}}`},
				{"/v1/executions", `{` + s + `:1}`},
				{"/v1/executions/s/cancel", `{"nothing":` + s + `}`},
				{"/v1/executions/s/signals/go", `{"payload":{"ok":1},"signal_id":` + s + `}`},
				{"/v1/workers/register", `{"worker_id":` + s + `,"runtime":"go","contracts":[{"task_name":"b.step","contract_version":"1.0.0"}]}`},
				{"/v1/workers/register", `{"worker_id":"x","runtime":` + s + `,"contracts":[{"task_name":"b.step","contract_version":"1.0.0"}]}`},
				{"/v1/workers/register", `{"worker_id":"x","runtime":"go","sdk":` + s + `,"contracts":[{"task_name":"b.step","contract_version":"1.0.0"}]}`},
				{"/v1/workers/register", `{"worker_id":"x","runtime":"go","contracts":[{"task_name":` + s + `,"contract_version":"1.0.0"}]}`},
				{"/v1/workers/register", `{"worker_id":"x","runtime":"go","contracts":[{"task_name":"b.step","contract_version":` + s + `}]}`},
				{"/v1/workers/poll", `{"worker_session_id":` + s + `}`},
				{"/v1/workers/poll", `{"worker_session_id":` + session + `,"poll_id":` + s + `,"wait_ms":0}`},
				{"/v1/workers/heartbeat", `{"worker_session_id":` + s + `,"tokens":[` + s + `]}`},
				{"/v1/workers/heartbeat", `{"worker_session_id":` + session + `,"tokens":[` + s + `]}`},
				{"/v1/workers/unregister", `{"worker_session_id":` + s + `}`},
				{"/v1/tasks/complete", `{"token":` + s + `}`},
				{"/v1/tasks/fail", `{"token":` + s + `,"error":{"code":"A","message":"b"}}`},
				{"/v1/tasks/progress", `{"token":` + s + `}`},
				{"/v1/tasks/results", `{"results":[{"token":` + s + `}],"next":{"worker_session_id":` + s + `}}`},
				{"/v1/tasks/fail", `{"token":` + token + `,"error":{"code":` + s + `,"message":1}}`},
			} {
				if r := e.post(c.path, c.body); r.status >= 500 || r.status/100 != 2 && (r.code() == "" || r.message() == "") {
					e.Errorf("%s %.120s: %s", c.path, c.body, r)
				}
			}
		}
		for _, raw := range []string{"%00", "a%00b", "%ff", "%ed%a0%80", "%2e%2e%2f", "%0a", strings.Repeat("x", 5_000)} {
			for _, path := range []string{
				"/v1/executions/%s", "/v1/executions/%s/history", "/v1/executions/s/queries/%s", "/v1/definitions/%s", "/v1/definitions/strict?version=%s",
				"/v1/definitions/strict/%s/graph", "/v1/executions?workflow=%s", "/v1/executions?version=%s", "/v1/executions?status=%s", "/v1/executions?parent=%s",
				"/v1/executions?tag.k=%s", "/v1/executions?tag.%s=v", "/v1/executions?cursor=%s", "/v1/executions?limit=%s", "/v1/executions?created_after=%s",
				"/v1/executions?%s=1", "/v1/executions/s?units_after=%s", "/v1/executions/s/history?after_seq=%s",
			} {
				path := fmt.Sprintf(path, raw)
				if r := e.send("GET", path, "", ""); r.status >= 500 || r.status/100 != 2 && r.code() == "" {
					e.Errorf("%.120s: %s", path, r)
				}
			}
			for _, path := range []string{"/v1/executions/%s/cancel", "/v1/executions/s/signals/%s", "/v1/definitions/strict/%s/retire"} {
				if r := e.post(fmt.Sprintf(path, raw), `{}`); r.status >= 500 || r.code() == "" {
					e.Errorf("%.120s: %s", path, r)
				}
			}
		}
	})
}

func TestText_OfPeopleComesOutAsItWentIn(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(replace(oneStep, "task: a.step", "task: a.step, retry: none"))
		session := e.register("w", "a.step")
		for i, text := range []string{"\x00", "a\x00b", `\u0000`, "😀\n\t\"'\\", "\u2028", "</script>"} {
			failed := e.start("one", fmt.Sprintf("f-%d", i), "")
			if _, err := e.api.Fail(e.ctx(), e.poll(session).Token, client.TaskError{Code: "NO", Message: text}, nil, ""); err != nil {
				e.Fatal(err)
			}
			s := e.end(failed, client.Failed)
			if got := s.Units["work"].LastError.Message; got != text || !strings.Contains(s.Error.Message, text) {
				e.Errorf("the message %q came out as %q and in %q", text, got, s.Error.Message)
			}
			cancelled := e.start("one", fmt.Sprintf("c-%d", i), "")
			if _, err := e.api.Cancel(e.ctx(), cancelled, text); err != nil {
				e.Fatal(err)
			}
			if got := e.until(cancelled, "CancelRequested").Reason; got != text {
				e.Errorf("the reason %q came out as %q", text, got)
			}
			tags := map[string]string{"k": url.QueryEscape(text), "é": "😀"}
			if _, err := e.api.Start(e.ctx(), client.StartRequest{Workflow: "one", ExecutionID: fmt.Sprintf("t-%d", i), Tags: tags}); err != nil {
				e.Fatal(err)
			}
			page, err := e.api.List(e.ctx(), client.ListRequest{Tags: tags})
			if err != nil || len(page.Executions) != 1 || page.Executions[0].Tags["é"] != "😀" {
				e.Errorf("by tags %v there is %+v, %v", tags, page.Executions, err)
			}
			e.cancel(fmt.Sprintf("t-%d", i))
		}
	})
}
