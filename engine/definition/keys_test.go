package definition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const oneStep = "steps: [ { id: a, sleep: 1s } ]\n"

func TestParse_TopLevelFaults(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"not an object", "[1]\n", "wrong_type 1:1"},
		{"name, version and steps are needed", "description: x\n", "missing_key 1:1|missing_key 1:1|missing_key 1:1"},
		{"unknown key", "name: a\nversion: \"1.0.0\"\n" + oneStep + "querys: {}\n", "unknown_key 4:1"},
		{"reserved key", "name: a\nversion: \"1.0.0\"\n" + oneStep + "hook: {}\n", "not_in_release 4:1"},
		{"version without quotes", "name: a\nversion: 1.10\n" + oneStep, "wrong_type 2:10"},
		{"version of two numbers", "name: a\nversion: \"1.10\"\n" + oneStep, "bad_version 2:10"},
		{"version with a build part", "name: a\nversion: 1.0.0+5\n" + oneStep, "bad_version 2:10"},
		{"name in capitals", "name: Orders\nversion: \"1.0.0\"\n" + oneStep, "bad_name 1:7"},
		{"name too long", "name: " + strings.Repeat("a", 65) + "\nversion: \"1.0.0\"\n" + oneStep, "bad_name 1:7"},
		{"name as a template", "name: ${input.x}\nversion: \"1.0.0\"\n" + oneStep, "literal_only 1:7"},
		{"no steps", "name: a\nversion: \"1.0.0\"\nsteps: []\n", "out_of_range 3:8"},
		{"steps are no list", "name: a\nversion: \"1.0.0\"\nsteps: { id: a, sleep: 1s }\n", "wrong_type 3:8"},
		{"timeout without unit", "name: a\nversion: \"1.0.0\"\ntimeout: 30\n" + oneStep, "bad_duration 3:10"},
		{"timeout of 0", "name: a\nversion: \"1.0.0\"\ntimeout: 0s\n" + oneStep, "bad_duration 3:10"},
		{"timeout as a template", "name: a\nversion: \"1.0.0\"\ntimeout: \"1h ${input.x}\"\n" + oneStep, "literal_only 3:14"},
		{"description is a number", "name: a\nversion: \"1.0.0\"\ndescription: 5\n" + oneStep, "wrong_type 3:14"},
		{"input is no schema", "name: a\nversion: \"1.0.0\"\ninput:\n  type: objekt\n" + oneStep, "bad_schema 4:9"},
		{"input is nothing", "name: a\nversion: \"1.0.0\"\ninput:\n" + oneStep, "wrong_type 3:7"},
		{"schema with a template", "name: a\nversion: \"1.0.0\"\ninput: { properties: { x: { default: \"${now}\" } } }\n" + oneStep, "literal_only 3:39"},
		{"signal named like a word", "name: a\nversion: \"1.0.0\"\nsignals: { in: {} }\n" + oneStep, "bad_name 3:12"},
		{"query that does not parse", "name: a\nversion: \"1.0.0\"\nqueries:\n  done: \"steps.a.status ==\"\n" + oneStep, "expression_syntax 4:27"},
		{"task without version", "name: a\nversion: \"1.0.0\"\ntasks: { a.b: {} }\n" + oneStep, "missing_key 3:10"},
		{"task with unknown key", "name: a\nversion: \"1.0.0\"\ntasks: { a.b: { version: 1.0.0, lang: go } }\n" + oneStep, "unknown_key 3:33"},
		{"task in capitals", "name: a\nversion: \"1.0.0\"\ntasks: { A.b: { version: 1.0.0 } }\n" + oneStep, "bad_name 3:10"},
		{"built-in task declared", "name: a\nversion: \"1.0.0\"\ntasks: { http.request: { version: 1.0.0 } }\n" + oneStep, "reserved_task 3:10"},
		{"engine's task declared", "name: a\nversion: \"1.0.0\"\ntasks: { perigee.x: { version: 1.0.0 } }\n" + oneStep, "reserved_task 3:10"},
		{"policy named none", "name: a\nversion: \"1.0.0\"\nretry_policies: { none: {} }\n" + oneStep, "bad_name 3:19"},
		{"policy with faults", "name: a\nversion: \"1.0.0\"\nretry_policies: { p: { max_attempts: 0, backoff: 0.5, jitter: 2, initial_interval: 5, no_retry: X, max: 1 } }\n" + oneStep,
			"out_of_range 3:38|out_of_range 3:50|out_of_range 3:63|bad_duration 3:84|wrong_type 3:97|unknown_key 3:100"},
		{"attempts as a word", "name: a\nversion: \"1.0.0\"\nretry_policies: { p: { max_attempts: unlimted } }\n" + oneStep, "wrong_type 3:38"},
		{"defaults with unknown key", "name: a\nversion: \"1.0.0\"\ndefaults: { with: {} }\n" + oneStep, "unknown_key 3:13"},
		{"defaults name no policy", "name: a\nversion: \"1.0.0\"\ndefaults: { retry: fast }\n" + oneStep, "unknown_name 3:20"},
		{"defaults as a template", "name: a\nversion: \"1.0.0\"\ndefaults: { timeout: \"${input.x}\" }\n" + oneStep, "literal_only 3:23"},
		{"limits", "name: a\nversion: \"1.0.0\"\nlimits: { max_fan_out: 0, max_payload_bytes: x, max_events: 1 }\n" + oneStep, "out_of_range 3:24|wrong_type 3:46|unknown_key 3:49"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, faults := Parse([]byte(test.text), YAML)
			if d != nil {
				t.Error("a definition came back")
			}
			var got []string
			for _, f := range faults {
				if f.Severity == SeverityError {
					got = append(got, fmt.Sprintf("%s %d:%d", f.Code, f.Line, f.Column))
				}
			}
			if diff := cmp.Diff(strings.Split(test.want, "|"), got); diff != "" {
				t.Errorf("%s\n%v", diff, faults)
			}
		})
	}
}

func TestParse_StepFaults(t *testing.T) {
	runSnippets(t, SeverityError, []snippetTest{
		{"no action", "steps:\n  - id: a\n    with: {}\n", []string{"no_action 2:5"}},
		{"misspelt action", "steps: [ { id: a, taks: do.it } ]\n", []string{"no_action 1:10"}},
		{"two actions", "steps: [ { id: a, sleep: 1s, task: do.it } ]\n", []string{"two_actions 1:30"}},
		{"no id", "steps: [ { sleep: 1s } ]\n", []string{"missing_key 1:10"}},
		{"id of the wrong form", "steps: [ { id: a-b, sleep: 1s } ]\n", []string{"bad_name 1:16"}},
		{"id that means something", "steps: [ { id: compensate, sleep: 1s } ]\n", []string{"bad_name 1:16"}},
		{"id as a number", "steps: [ { id: 5, sleep: 1s } ]\n", []string{"wrong_type 1:16"}},
		{"id twice", "steps:\n  - { id: a, sleep: 1s }\n  - parallel: [ { id: a, sleep: 1s } ]\n", []string{"duplicate_id 3:23"}},
		{"unknown key", "steps: [ { id: a, task: do.it, retries: 3 } ]\n", []string{"unknown_key 1:32"}},
		{"reserved keys", "steps:\n  - { id: a, sleep: 1s, hook: x }\n  - { id: b, repeat: {} }\n  - { continue_as_new: {} }\n", []string{"not_in_release 2:25", "not_in_release 3:14", "not_in_release 4:7"}},
		{"keys of another action", "steps: [ { id: a, sleep: 1s, retry: none, with: {} } ]\n", []string{"not_allowed 1:30", "not_allowed 1:43"}},
		{"retry of a child", "steps: [ { id: a, workflow: w@1.0.0, retry: none, queue_timeout: 1h } ]\n", []string{"not_allowed 1:38", "not_allowed 1:51"}},
		{"on_parent_close of a task", "steps: [ { id: a, task: do.it, on_parent_close: cancel } ]\n", []string{"not_allowed 1:32"}},
		{"for over await", "steps: [ { id: a, await: go, for: input.list, timeout: 1h } ]\n", []string{"not_allowed 1:30"}},
		{"max_parallel without for", "steps: [ { id: a, task: do.it, max_parallel: 3 } ]\n", []string{"not_allowed 1:32"}},
		{"max_parallel of 0", "steps: [ { id: a, task: do.it, for: input.list, max_parallel: 0 } ]\n", []string{"out_of_range 1:63"}},
		{"max_parallel as text", "steps: [ { id: a, task: do.it, for: input.list, max_parallel: \"3\" } ]\n", []string{"wrong_type 1:63"}},
		{"for over a number", "steps: [ { id: a, task: do.it, for: 5 } ]\n", []string{"wrong_type 1:37"}},
		{"when is a number", "steps: [ { id: a, sleep: 1s, when: 5 } ]\n", []string{"wrong_type 1:36"}},
		{"after is text", "steps: [ { id: a, sleep: 1s, after: b } ]\n", []string{"wrong_type 1:37"}},
		{"after an unknown step", "steps:\n  - { id: reserve, sleep: 1s }\n  - { id: b, after: [reserved], sleep: 1s }\n", []string{"unknown_step 3:22"}},
		{"unknown task", "steps: [ { id: a, task: do.that } ]\n", []string{"unknown_task 1:25"}},
		{"task as a template", "steps: [ { id: a, task: \"${input.n}\" } ]\n", []string{"literal_only 1:26"}},
		{"unknown policy", "steps: [ { id: a, task: do.it, retry: pateint } ]\n", []string{"unknown_name 1:39"}},
		{"retry is a number", "steps: [ { id: a, task: do.it, retry: 3 } ]\n", []string{"wrong_type 1:39"}},
		{"at_most_once in words", "steps: [ { id: a, task: do.it, at_most_once: yes } ]\n", []string{"wrong_type 1:46"}},
		{"negative redeliveries", "steps: [ { id: a, task: do.it, max_redeliveries: -1 } ]\n", []string{"out_of_range 1:50"}},
		{"timeouts", "steps: [ { id: a, task: do.it, timeout: 0s, queue_timeout: 5 } ]\n", []string{"bad_duration 1:41", "bad_duration 1:60"}},
		{"sleep", "steps:\n  - { id: a, sleep: 5 }\n  - { id: b, sleep: 5x }\n  - { id: c, sleep: [1s] }\n  - { id: d, sleep: 0s }\n", []string{"bad_duration 2:21", "bad_duration 3:21", "wrong_type 4:21"}},
		{"until", "steps:\n  - { id: a, until: tomorrow }\n  - { id: b, until: 5 }\n  - { id: c, until: 2027-01-01T00:00:00Z }\n", []string{"bad_moment 2:21", "wrong_type 3:21"}},
		{"unknown signal", "steps: [ { id: a, await: goo, timeout: 1h } ]\n", []string{"unknown_name 1:26"}},
		{"fail without parts", "steps:\n  - { id: a, fail: {} }\n  - { id: b, fail: { code: \"A B\", message: 5, why: x } }\n  - { id: c, fail: now }\n", []string{"missing_key 2:20", "missing_key 2:20", "bad_name 3:28", "wrong_type 3:44", "unknown_key 3:47", "wrong_type 4:20"}},
		{"child without version", "steps: [ { id: a, workflow: send-invoice } ]\n", []string{"bad_version 1:29"}},
		{"child with half a version", "steps: [ { id: a, workflow: send-invoice@1.0 } ]\n", []string{"bad_version 1:29"}},
		{"child with a wrong name", "steps: [ { id: a, workflow: Send@1.0.0 } ]\n", []string{"bad_name 1:29"}},
		{"on_parent_close", "steps: [ { id: a, workflow: w@1.0.0, on_parent_close: abandn } ]\n", []string{"out_of_range 1:55"}},
		{"compensation of a sleep", "steps: [ { id: a, sleep: 1s, compensate: { task: do.it } } ]\n", []string{"not_allowed 1:30"}},
		{"compensation without action", "steps: [ { id: a, task: do.it, compensate: { with: {} } } ]\n", []string{"no_action 1:44"}},
		{"compensation with unknown keys", "steps: [ { id: a, task: do.it, compensate: { task: do.it, catch: [], when_uncertain: 1 } } ]\n", []string{"unknown_key 1:59", "wrong_type 1:86"}},
		{"compensating child with retry", "steps: [ { id: a, task: do.it, compensate: { workflow: w@1.0.0, retry: none } } ]\n", []string{"not_allowed 1:65"}},
		{"entry is text", "steps: [ wait ]\n", []string{"wrong_type 1:10"}},
	})
}

func TestParse_GroupFaults(t *testing.T) {
	runSnippets(t, SeverityError, []snippetTest{
		{"empty group", "steps: [ { parallel: [] } ]\n", []string{"out_of_range 1:22"}},
		{"for over a group", "steps: [ { steps: [ { id: a, sleep: 1s } ], for: input.list } ]\n", []string{"not_in_release 1:45"}},
		{"catch on a group", "steps: [ { parallel: [ { id: a, sleep: 1s } ], catch: [] } ]\n", []string{"not_in_release 1:48"}},
		{"id on a group", "steps: [ { id: g, parallel: [ { id: a, sleep: 1s } ] } ]\n", []string{"not_allowed 1:12"}},
		{"unknown key on a group", "steps: [ { parallel: [ { id: a, sleep: 1s } ], wen: x } ]\n", []string{"unknown_key 1:48"}},
		{"group and action", "steps: [ { task: do.it, parallel: [ { id: a, sleep: 1s } ] } ]\n", []string{"two_actions 1:12"}},
		{"switch without when", "steps: [ { switch: [ { otherwise: true, steps: [ { id: a, sleep: 1s } ] } ] } ]\n", []string{"missing_key 1:20"}},
		{"branch without condition", "steps: [ { switch: [ { when: input.n > 1, steps: [ { id: a, sleep: 1s } ] }, { steps: [ { id: b, sleep: 1s } ] } ] } ]\n", []string{"missing_key 1:78"}},
		{"branch without steps", "steps: [ { switch: [ { when: input.n > 1 } ] } ]\n", []string{"missing_key 1:22"}},
		{"branch with both", "steps: [ { switch: [ { when: input.n > 1, otherwise: true, steps: [ { id: a, sleep: 1s } ] } ] } ]\n", []string{"two_actions 1:43"}},
		{"otherwise that is not true", "steps: [ { switch: [ { when: input.n > 1, steps: [ { id: a, sleep: 1s } ] }, { otherwise: false, steps: [ { id: b, sleep: 1s } ] } ] } ]\n", []string{"wrong_type 1:91"}},
		{"otherwise before the end", "steps:\n  - switch:\n      - { otherwise: true, steps: [ { id: b, sleep: 1s } ] }\n      - { when: input.n > 1, steps: [ { id: a, sleep: 1s } ] }\n", []string{"unreachable 3:11"}},
		{"unknown key of a branch", "steps: [ { switch: [ { when: input.n > 1, step: [], steps: [ { id: a, sleep: 1s } ] } ] } ]\n", []string{"unknown_key 1:43"}},
		{"condition of a branch does not parse", "steps:\n  - switch:\n      - { when: \"input.n >\", steps: [ { id: a, sleep: 1s } ] }\n", []string{"expression_syntax 3:27"}},
	})
}

func TestParse_HandlerFaults(t *testing.T) {
	runSnippets(t, SeverityError, []snippetTest{
		{"actions that do not go there", oneStep + "on_failure:\n  - { id: b, await: go }\n  - { id: c, fail: { code: X, message: y } }\n", []string{"not_allowed 3:14", "not_allowed 4:14"}},
		{"keys that do not go there", oneStep + "on_cancel:\n  - { id: b, task: do.it, for: input.list, after: [], catch: [ {} ], compensate: { task: do.it } }\n", []string{"not_allowed 3:27", "not_allowed 3:44", "not_allowed 3:55", "not_allowed 3:70"}},
		{"groups", oneStep + "on_timeout:\n  - parallel: [ { id: b, sleep: 1s } ]\n", []string{"not_allowed 3:5"}},
		{"an id of the main list is free", oneStep + "on_timeout:\n  - { id: a, sleep: 1s }\n", nil},
		{"the same id twice", oneStep + "on_timeout:\n  - { id: b, sleep: 1s }\n  - { id: b, sleep: 1s }\n", []string{"duplicate_id 4:11"}},
		{"item is not there", oneStep + "on_timeout:\n  - { id: b, compute: item }\n", []string{"unknown_name 3:23"}},
	})
}

func TestParse_CatchFaults(t *testing.T) {
	runSnippets(t, SeverityError, []snippetTest{
		{"behind one that takes any", "steps:\n  - id: a\n    task: do.it\n    catch:\n      - {}\n      - { codes: [X] }\n", []string{"unreachable 6:9"}},
		{"a code taken before", "steps: [ { id: a, task: do.it, catch: [ { codes: [X, Y] }, { codes: [Z, Y] } ] } ]\n", []string{"unreachable 1:73"}},
		{"no codes at all", "steps: [ { id: a, task: do.it, catch: [ { codes: [] } ] } ]\n", []string{"unreachable 1:50"}},
		{"codes that cannot be caught", "steps: [ { id: a, task: do.it, catch: [ { codes: [LIMIT_EXCEEDED, CANCELLED, EXPRESSION_ERROR] } ] } ]\n", []string{"uncatchable 1:51", "uncatchable 1:67"}},
		{"no list", "steps: [ { id: a, task: do.it, catch: { codes: [X] } } ]\n", []string{"wrong_type 1:39"}},
		{"unknown key", "steps: [ { id: a, task: do.it, catch: [ { code: X } ] } ]\n", []string{"unknown_key 1:43"}},
		{"on a sleep", "steps: [ { id: a, sleep: 1s, catch: [ {} ] } ]\n", []string{"not_allowed 1:30"}},
		{"error is in scope", "steps: [ { id: a, task: do.it, catch: [ { output: \"${error.code}\" } ] } ]\n", nil},
		{"error has these fields", "steps: [ { id: a, task: do.it, catch: [ { output: \"${error.kode}\" } ] } ]\n", []string{"unknown_field 1:54"}},
	})
}

func TestParse_HTTPRequest(t *testing.T) {
	runSnippets(t, SeverityError, []snippetTest{
		{"is not declared", "steps: [ { id: a, task: http.request, with: { url: \"${input.n}\", method: POST, headers: { A: x, B: { secret: TOKEN, prefix: \"Bearer \" } }, body: {} } } ]\n", nil},
		{"needs a url", "steps:\n  - { id: a, task: http.request }\n  - { id: b, task: http.request, with: {} }\n", []string{"missing_key 2:20", "missing_key 3:40"}},
		{"unknown key", "steps: [ { id: a, task: http.request, with: { url: x, verb: GET } } ]\n", []string{"unknown_key 1:55"}},
		{"secret as a template", "steps: [ { id: a, task: http.request, with: { url: x, headers: { A: { secret: \"${input.n}\", prefix: \"${input.n}\" } } } } ]\n", []string{"literal_only 1:80", "literal_only 1:102"}},
		{"secret with a wrong name", "steps: [ { id: a, task: http.request, with: { url: x, headers: { A: { secret: a/b, x: y }, B: {}, C: [1] } } } ]\n", []string{"bad_name 1:79", "unknown_key 1:84", "missing_key 1:95", "wrong_type 1:102"}},
		{"result", "steps:\n  - { id: a, task: http.request, with: { url: x } }\n  - { id: b, compute: \"steps.a.output.body.x + steps.a.output.code\" }\n", []string{"unknown_field 3:48"}},
	})
}
