package blackbox_test

import (
	"strings"
	"testing"

	"perigee/sdk/go/client"
)

const strict = `
name: strict
version: "1.0.0"
input: { type: object, required: [n], properties: { n: { type: integer, maximum: 10 } } }
signals: { go: { type: object, required: [ok] } }
queries: { half: "input.n / 0" }
tasks: { a.step: { version: "1.0.0", input: { type: object, required: [m], properties: { m: { type: integer } } }, output: { type: object, required: [id] } } }
steps:
  - { id: work, task: a.step, with: { m: "${input.n}" }, retry: none }
  - { id: wait, await: go }
`

// TestBadInput_EachHasItsCodeAndAMessageThatHelps: status and code are those of
// docs/errors.md; the words are what lets a person find and mend the fault.
func TestBadInput_EachHasItsCodeAndAMessageThatHelps(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(strict)
		e.start("strict", "s", `{"n":1}`)
		session := e.register("w", "a.step")
		task := e.poll(session)
		const json, yaml = "application/json", "application/yaml"
		const start, poll, complete = "/v1/executions", "/v1/workers/poll", "/v1/tasks/complete"
		token := quote(task.Token)
		for _, c := range []struct {
			name, method, path, contentType, body string
			status                                int
			code                                  string
			words                                 []string
		}{
			{"no body", "POST", start, json, "", 400, "INVALID_REQUEST", []string{"empty", "JSON object"}},
			{"not JSON", "POST", start, json, "hello", 400, "INVALID_REQUEST", []string{"JSON", "'h'"}},
			{"half a body", "POST", start, json, `{"workflow":"strict"`, 400, "INVALID_REQUEST", []string{"end"}},
			{"two bodies", "POST", start, json, `{"workflow":"strict"}{}`, 400, "INVALID_REQUEST", []string{"after"}},
			{"a list", "POST", start, json, `[]`, 400, "INVALID_REQUEST", []string{"object", "array"}},
			{"a duplicate key", "POST", start, json, `{"workflow":"strict","input":{"n":1,"n":2}}`, 400, "INVALID_REQUEST", []string{"/input", "twice"}},
			{"too deep", "POST", start, json, `{"workflow":"strict","input":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, 400, "INVALID_REQUEST", []string{"deep"}},
			{"far too deep", "POST", start, json, strings.Repeat("[", 1_000_000), 400, "INVALID_REQUEST", []string{"deep"}},
			{"10 MB", "POST", start, json, `{"workflow":"strict","input":` + sized(10_000_000) + `}`, 413, "PAYLOAD_TOO_LARGE", []string{"bytes"}},
			{"10 MB of results", "POST", "/v1/tasks/results", json, `{"results":[` + sized(10_000_000) + `]}`, 413, "PAYLOAD_TOO_LARGE", []string{"fewer results"}},
			{"no content type", "POST", start, "", `{"workflow":"strict"}`, 415, "UNSUPPORTED_MEDIA_TYPE", []string{"Content-Type", json}},
			{"a form", "POST", start, "application/x-www-form-urlencoded", `a=b`, 415, "UNSUPPORTED_MEDIA_TYPE", []string{json}},
			{"YAML where JSON is due", "POST", start, yaml, `workflow: strict`, 415, "UNSUPPORTED_MEDIA_TYPE", []string{json}},
			{"an unknown field", "POST", start, json, `{"workflow":"strict","inputs":{}}`, 400, "INVALID_REQUEST", []string{"inputs", "input"}},
			{"a field in another case", "POST", start, json, `{"Workflow":"strict"}`, 400, "INVALID_REQUEST", []string{"Workflow", "workflow"}},
			{"a field of a wrong type", "POST", start, json, `{"workflow":5}`, 400, "INVALID_REQUEST", []string{"/workflow", "number"}},
			{"no workflow", "POST", start, json, `{}`, 400, "INVALID_REQUEST", []string{"/workflow"}},
			{"a wait that is a text", "POST", start, json, `{"workflow":"strict","input":{"n":1},"wait_ms":"5s"}`, 400, "INVALID_REQUEST", []string{"/wait_ms"}},
			{"tags that are numbers", "POST", start, json, `{"workflow":"strict","input":{"n":1},"tags":{"a":1}}`, 400, "INVALID_REQUEST", []string{"/tags/a"}},
			{"an unknown workflow", "POST", start, json, `{"workflow":"nope"}`, 404, "WORKFLOW_NOT_FOUND", []string{"nope"}},
			{"an unknown version", "POST", start, json, `{"workflow":"strict","version":"9.9.9","input":{"n":1}}`, 404, "WORKFLOW_NOT_FOUND", []string{"9.9.9"}},
			{"an input that breaks the schema", "POST", start, json, `{"workflow":"strict","input":{"n":11}}`, 400, "INVALID_INPUT", []string{"/n", "10"}},
			{"an input that lacks a property", "POST", start, json, `{"workflow":"strict"}`, 400, "INVALID_INPUT", []string{"n"}},
			{"an id with a slash", "POST", start, json, `{"workflow":"strict","input":{"n":1},"execution_id":"a/b"}`, 400, "INVALID_EXECUTION_ID", []string{"letters"}},
			{"an id that is too long", "POST", start, json, `{"workflow":"strict","input":{"n":1},"execution_id":"` + strings.Repeat("a", 201) + `"}`, 400, "INVALID_EXECUTION_ID", []string{"200"}},

			{"an empty definition", "POST", "/v1/definitions", yaml, "", 400, "INVALID_REQUEST", []string{"empty"}},
			{"a definition that is a text", "POST", "/v1/definitions", yaml, "hello", 400, "INVALID_DEFINITION", []string{"faults", "line"}},
			{"a definition with a typo", "POST", "/v1/definitions", yaml, strings.Replace(strict, "retry: none", "retri: none", 1), 400, "INVALID_DEFINITION", []string{"retri", "retry", `"line":9`}},
			{"a definition with an unknown task", "POST", "/v1/definitions", yaml, strings.Replace(strict, "task: a.step", "task: a.stop", 1), 400, "INVALID_DEFINITION", []string{"a.stop", "a.step"}},
			{"a definition with a cycle", "POST", "/v1/definitions", yaml, strings.Replace(strict, "retry: none", "after: [wait]", 1), 400, "INVALID_DEFINITION", []string{"cycle", "work", "wait"}},
			{"a version that is a number", "POST", "/v1/definitions", yaml, strings.Replace(strict, `version: "1.0.0"`, "version: 1.10", 1), 400, "INVALID_DEFINITION", []string{"quote"}},
			{"a definition of 10 MB", "POST", "/v1/definitions", yaml, strings.Repeat("a", 10_000_000), 413, "PAYLOAD_TOO_LARGE", []string{"bytes"}},
			{"many brackets", "POST", "/v1/definitions", yaml, strings.Repeat("[", 100_000), 400, "INVALID_DEFINITION", []string{"deep"}},
			{"a child that is not registered", "POST", "/v1/definitions", yaml, "name: p\nversion: \"1.0.0\"\nsteps: [ { id: c, workflow: child@1.0.0 } ]\n", 400, "CHILD_NOT_REGISTERED", []string{"child@1.0.0"}},
			{"a conflict", "POST", "/v1/definitions", yaml, strings.Replace(strict, "retry: none", "description: x", 1), 409, "DEFINITION_CONFLICT", []string{"version"}},

			{"an unknown execution", "GET", "/v1/executions/nope", "", "", 404, "NOT_FOUND", []string{"nope"}},
			{"its history", "GET", "/v1/executions/nope/history", "", "", 404, "NOT_FOUND", []string{"nope"}},
			{"to cancel it", "POST", "/v1/executions/nope/cancel", json, "{}", 404, "NOT_FOUND", []string{"nope"}},
			{"to signal it", "POST", "/v1/executions/nope/signals/go", json, "{}", 404, "NOT_FOUND", []string{"nope"}},
			{"an unknown signal", "POST", "/v1/executions/s/signals/stop", json, "{}", 404, "UNKNOWN_SIGNAL", []string{"stop", "go"}},
			{"a payload that breaks the schema", "POST", "/v1/executions/s/signals/go", json, `{"payload":{}}`, 422, "SIGNAL_PAYLOAD_INVALID", []string{"ok"}},
			{"an unknown query", "GET", "/v1/executions/s/queries/whole", "", "", 404, "UNKNOWN_QUERY", []string{"whole", "half"}},
			{"a query that fails", "GET", "/v1/executions/s/queries/half", "", "", 422, "QUERY_FAILED", []string{"half", "zero"}},
			{"a limit that is none", "GET", "/v1/executions?limit=0", "", "", 400, "INVALID_REQUEST", []string{"limit", "1000"}},
			{"a cursor of another", "GET", "/v1/executions?cursor=zzz", "", "", 400, "INVALID_REQUEST", []string{"cursor"}},
			{"a status that is none", "GET", "/v1/executions?status=DONE", "", "", 400, "INVALID_REQUEST", []string{"RUNNING"}},
			{"an unknown parameter", "GET", "/v1/executions?stat=RUNNING", "", "", 400, "INVALID_REQUEST", []string{"stat", "status"}},
			{"a seq that is negative", "GET", "/v1/executions/s/history?after_seq=-1", "", "", 400, "INVALID_REQUEST", []string{"after_seq"}},

			{"an unknown session", "POST", poll, json, `{"worker_session_id":"nope"}`, 404, "UNKNOWN_SESSION", []string{"register"}},
			{"no session", "POST", poll, json, `{}`, 400, "INVALID_REQUEST", []string{"worker_session_id"}},
			{"too many tasks", "POST", poll, json, `{"worker_session_id":` + quote(session) + `,"max_tasks":33}`, 400, "INVALID_REQUEST", []string{"max_tasks", "32"}},
			{"a heartbeat of an unknown session", "POST", "/v1/workers/heartbeat", json, `{"worker_session_id":"nope"}`, 404, "UNKNOWN_SESSION", []string{"register"}},
			{"a worker without contracts", "POST", "/v1/workers/register", json, `{"worker_id":"x","runtime":"go","contracts":[]}`, 400, "INVALID_REQUEST", []string{"contracts"}},
			{"a task of the server's own", "POST", "/v1/workers/register", json, `{"worker_id":"x","runtime":"go","contracts":[{"task_name":"http.request","contract_version":"1.0.0"}]}`, 400, "RESERVED_TASK", []string{"http.request"}},
			{"no token", "POST", complete, json, `{"output":{}}`, 400, "INVALID_REQUEST", []string{"token"}},
			{"a failure without an error", "POST", "/v1/tasks/fail", json, `{"token":` + token + `}`, 400, "INVALID_REQUEST", []string{"/error"}},
			{"an output and an error", "POST", "/v1/tasks/results", json, `{"results":[{"token":` + token + `,"output":1,"error":{"code":"A","message":"b"}}]}`, 400, "INVALID_REQUEST", []string{"both"}},
			{"no results", "POST", "/v1/tasks/results", json, `{"results":[]}`, 400, "INVALID_REQUEST", []string{"results", "100"}},

			{"an unknown path", "GET", "/v2/executions", "", "", 404, "NOT_FOUND", []string{"path"}},
			{"a path with a slash at its end", "GET", "/v1/executions/", "", "", 404, "NOT_FOUND", []string{"/"}},
			{"a method that is not taken", "DELETE", "/v1/executions/s", "", "", 405, "METHOD_NOT_ALLOWED", []string{"GET"}},
		} {
			r := e.send(c.method, c.path, c.contentType, c.body)
			if r.byGateway(c.status) {
				continue
			}
			if r.status != c.status || r.code() != c.code {
				e.Errorf("%s: got %s, want %d %s", c.name, r, c.status, c.code)
				continue
			}
			for _, w := range c.words {
				if !strings.Contains(r.body, w) {
					e.Errorf("%s: %s does not say %q", c.name, r, w)
				}
			}
			if r.header.Get("X-Request-Id") == "" || r.header.Get("Content-Type") != json {
				e.Errorf("%s: the answer's header is %v", c.name, r.header)
			}
			if len(r.body) > 8_000 {
				e.Errorf("%s: the answer has %d bytes", c.name, len(r.body))
			}
		}
		// Nothing of all that did anything to the task.
		if r := e.complete(&client.Task{Token: "nonsense"}, `{}`); r.Accepted || r.Reason != "unknown token (execution finished or token invalid)" {
			e.Errorf("a token that is none: %+v", r)
		}
		e.done(task, `{"id":1}`)
		e.signal("s", "go", `{"ok":1}`, "")
		e.end("s", client.Completed)
		if r := e.complete(task, `{"id":2}`); r.Accepted {
			e.Errorf("another result after the end was accepted")
		}
		e.refused(e.post("/v1/executions/s/signals/go", `{"payload":{"ok":1}}`), 409, "EXECUTION_FINISHED", "COMPLETED")
		e.refused(e.post("/v1/executions/s/cancel", `{}`), 409, "EXECUTION_FINISHED", "COMPLETED")
	})
}

func TestBadOutput_FailsItsStepAndTellsTheWorker(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(strict)
		session := e.register("w", "a.step")
		id := e.start("strict", "", `{"n":1}`)
		if r := e.complete(e.poll(session), `{"no":"id"}`); r.Accepted || r.Reason != "output violates the task contract" {
			e.Errorf("got %+v", r)
		}
		s := e.end(id, client.Failed)
		if s.Error.Code != "OUTPUT_CONTRACT_VIOLATION" || !strings.Contains(s.Error.Message, "work") || !strings.Contains(s.Error.Message, "id") {
			e.Errorf("the error is %+v", s.Error)
		}
	})
}

func TestBadInput_OfATaskThatBreaksItsContractFailsTheStep(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(replace(strict, `m: "${input.n}"`, `m: "x${input.n}"`))
		s := e.end(e.start("strict", "", `{"n":1}`), client.Failed)
		if s.Error.Code != "INPUT_CONTRACT_VIOLATION" || !strings.Contains(s.Error.Message, "work") || !strings.Contains(s.Error.Message, "/m") {
			e.Errorf("the error is %+v", s.Error)
		}
		e.pollNone(e.register("w", "a.step"))
	})
}
