package definition

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse_ReferencesAreChecked(t *testing.T) {
	runSnippets(t, SeverityError, []snippetTest{
		{"unknown step", "steps:\n  - { id: reserve, sleep: 1s }\n  - { id: b, compute: \"1 + steps.reserved.attempt\" }\n", []string{"unknown_step 3:28"}},
		{"a handler's step is not seen from outside", "steps:\n  - { id: a, sleep: 1s }\non_failure:\n  - { id: h, sleep: 1s }\noutput: \"${steps.h.status}\"\n", []string{"unknown_step 5:12"}},
		{"unknown field of a step", "steps:\n  - { id: a, compute: { x: 1 } }\n  - { id: b, compute: steps.a.x }\n", []string{"unknown_name 3:23"}},
		{"steps alone", "steps:\n  - { id: a, compute: size(steps) }\n", []string{"steps_reference 2:28"}},
		{"steps with a computed key", "steps:\n  - { id: a, compute: \"steps[input.n]\" }\n", []string{"steps_reference 2:24"}},
		{"macro variable named like something", "steps:\n  - { id: a, compute: \"[1].map(input, input)\" }\n", []string{"shadowed_name 2:31"}},
		{"field of the input that is not listed", "steps:\n  - { id: a, compute: input.m }\n", []string{"unknown_field 2:23"}},
		{"optional selection of what is not listed", "steps:\n  - { id: a, compute: input.?m }\n", []string{"unknown_field 2:23"}},
		{"field of a task's output that is not listed", "steps:\n  - { id: a, task: do.typed }\n  - { id: b, compute: steps.a.output.ident }\n", []string{"unknown_field 3:23"}},
		{"field of a task without a schema", "steps:\n  - { id: a, task: do.it }\n  - { id: b, compute: steps.a.output.ident.x }\n", nil},
		{"field of a signal", "steps:\n  - { id: a, await: go, timeout: 1h }\n  - { id: b, compute: steps.a.output.no }\n", []string{"unknown_field 3:23"}},
		{"field of a computed object", "steps:\n  - { id: a, compute: { x: { y: 1 } } }\n  - { id: b, compute: steps.a.output.x.z + steps.a.output.y }\n", []string{"unknown_field 3:44"}},
		{"field of a sleep", "steps:\n  - { id: a, sleep: 1s }\n  - { id: b, compute: steps.a.output.x }\n", []string{"unknown_field 3:23"}},
		{"field of a fan-out", "steps:\n  - { id: a, for: input.list, task: do.typed }\n  - { id: b, compute: \"steps.a.output.id\" }\n  - { id: c, compute: \"steps.a.output[0].id + steps.a.output[0].ident\" }\n", []string{"unknown_field 3:24", "unknown_field 4:47"}},
		{"what a catch gives is not known", "steps:\n  - { id: a, task: do.typed, catch: [ { output: { declined: true } } ] }\n  - { id: b, compute: steps.a.output.declined }\n", nil},
		{"field of an item", "steps:\n  - { id: a, for: input.list, task: do.it, with: { a: \"${item.sku}\", b: \"${item.ean}\" } }\n", []string{"unknown_field 2:76"}},
		{"field of the item of a step's list", "steps:\n  - { id: a, compute: { list: [ 1 ] } }\n  - { id: b, for: \"${steps.a.output.list}\", compute: item.x }\n", nil},
		{"field of what is undone", "steps:\n  - { id: a, task: do.typed, compensate: { task: do.it, with: { a: \"${output.id}\", b: \"${output.ident}\", c: \"${failure.code}\", d: \"${idempotency_key}\" } } }\n", []string{"unknown_field 2:90"}},
		{"item and index in a compensation", "steps:\n  - { id: a, for: input.list, task: do.it, compensate: { task: do.it, with: { a: \"${item.sku}\", b: \"${index}\" } } }\n", nil},
		{"item outside for", "steps:\n  - { id: a, task: do.it, with: { a: \"${item}\" } }\n", []string{"unknown_name 2:41"}},
		{"item in when and for", "steps:\n  - { id: a, when: item.x, for: item.y, max_parallel: \"${item.z}\", compute: item }\n", []string{"unknown_name 2:20", "unknown_name 2:33", "unknown_name 2:58"}},
		{"output outside a compensation", "steps:\n  - { id: a, task: do.it, with: { a: \"${output.id}\" } }\n", []string{"unknown_name 2:41"}},
		{"failure in the main list", "steps:\n  - { id: a, compute: failure.code }\n", []string{"unknown_name 2:23"}},
		{"failure in a handler", "steps: [ { id: a, sleep: 1s } ]\non_failure:\n  - { id: h, when: failure.code == 'X', compute: failure.message }\n", nil},
		{"error outside a catch", "steps:\n  - { id: a, task: do.it, with: { a: \"${error.code}\" } }\n", []string{"unknown_name 2:41"}},
		{"fields of the execution", "steps:\n  - { id: a, compute: \"execution.id + execution.parent.step + execution.name\" }\n", []string{"unknown_name 2:63"}},
	})
}

// A fault in one expression of a value does not hide those of the others.
func TestParse_EachExpressionOfAValueIsChecked(t *testing.T) {
	runSnippets(t, SeverityError, []snippetTest{
		{"compute", "steps:\n  - { id: a, compute: { a: \"${input.m}\", b: \"${steps.zwei.output}\", c: \"${1 +}\" } }\n", []string{"unknown_field 2:31", "unknown_step 2:48", "expression_syntax 2:78"}},
		{"with", "steps:\n  - { id: a, task: do.it, with: { a: \"${input.m}\", b: [ \"${1 +} ${steps.zwei.output}\" ] } }\n", []string{"unknown_field 2:41", "expression_syntax 2:63", "unknown_step 2:67"}},
		{"one expression", "steps:\n  - { id: a, compute: \"input.m + oops\" }\n", []string{"unknown_field 2:24", "unknown_name 2:34"}},
		{"a brace that is missing", "steps:\n  - { id: a, task: do.it, with: { a: \"${input.m} ${input.n\" } }\n", []string{"unknown_field 2:41", "half_open_template 2:50"}},
		{"a computed key is no unknown step", "steps:\n  - { id: a, compute: \"[steps[input.n], input.m]\" }\n", []string{"steps_reference 2:25", "unknown_field 2:41"}},
		{"a cycle", "steps:\n  - { id: a, compute: { a: \"${1 +}\", b: \"${steps.b.output}\" } }\n  - { id: b, compute: 1 }\n", []string{"cycle 2:5", "expression_syntax 2:34"}},
	})
	runSnippets(t, SeverityWarning, []snippetTest{
		{"a catch whose output has a fault", "steps:\n  - { id: a, task: do.it, catch: [ { output: \"${1 +}\" } ] }\n  - { id: b, compute: steps.a.output.x }\n", nil},
	})
}

func TestParse_WarnsOfWhatMayBeMissing(t *testing.T) {
	runSnippets(t, SeverityWarning, []snippetTest{
		{"optional field", "steps:\n  - { id: a, task: do.typed }\n  - { id: b, compute: steps.a.output.id + steps.a.output.note }\n", []string{"may_be_absent 3:43"}},
		{"optional field, asked for", "steps:\n  - { id: a, task: do.typed }\n  - { id: b, compute: \"has(steps.a.output.note) ? steps.a.output.note : steps.a.output.?note.orValue(1)\" }\n", nil},
		{"step that may be skipped", "steps:\n  - { id: a, when: input.n > 1, task: do.typed }\n  - { id: b, compute: steps.a.output.id }\n", []string{"may_be_skipped 3:23"}},
		{"step that may be skipped, asked for", "steps:\n  - { id: a, when: input.n > 1, task: do.typed }\n  - { id: b, compute: \"steps.a.output.?id\" }\n  - { id: c, compute: \"steps.a.output == null ? 0 : steps.a.output.id\" }\n", nil},
		{"the whole output of a step that may be skipped", "steps:\n  - { id: a, when: input.n > 1, task: do.typed }\n  - { id: b, compute: \"[steps.a.output]\" }\n", nil},
		{"under the same condition", "steps:\n  - { id: a, when: input.n > 1, task: do.typed }\n  - { id: b, when: input.n > 1, compute: steps.a.output.id }\n  - when: input.n > 1\n    steps: [ { id: c, compute: steps.a.output.id } ]\n", nil},
		{"in one branch", "steps:\n  - switch:\n      - when: input.n > 1\n        steps: [ { id: a, task: do.typed }, { id: b, compute: steps.a.output.id } ]\n      - otherwise: true\n        steps: [ { id: c, sleep: 1s } ]\n  - { id: d, compute: steps.a.output.id }\n", []string{"may_be_skipped 7:23"}},
		{"caught failure without output", "steps:\n  - { id: a, task: do.typed, catch: [ {} ] }\n  - { id: b, compute: steps.a.output.id }\n", []string{"may_be_skipped 3:23"}},
		{"query before the step has run", "steps:\n  - { id: a, task: do.typed }\nqueries: { x: steps.a.output.id, y: \"steps.a.output.?id\" }\n", []string{"may_be_skipped 3:15"}},
		{"output of the definition", "steps:\n  - { id: a, task: do.typed }\noutput: \"${steps.a.output.id}\"\n", nil},
		{"compensation", "steps:\n  - { id: a, task: do.typed }\n  - { id: b, task: do.it, compensate: { task: do.it, with: { x: \"${steps.a.output.id}\", y: \"${steps.c.output.id}\" } } }\n  - { id: c, task: do.typed }\n", []string{"may_be_skipped 3:95"}},
		{"handler", "steps:\n  - { id: a, task: do.typed }\non_failure:\n  - { id: h, task: do.typed }\n  - { id: i, task: do.it, with: { x: \"${steps.a.output.id}\", y: \"${steps.h.output.id}\" } }\n", []string{"may_be_skipped 5:41"}},
	})
}

func TestParse_WarnsOfWhatTheContractWillRefuse(t *testing.T) {
	text := `name: a
version: "1.0.0"
timeout: 1h
defaults: { queue_timeout: 1h }
tasks: { t.a: { version: "1.0.0", input: { properties: { x: {}, y: {}, z: { default: 1 } }, required: [x, y, z] } } }
steps:
  - { id: a, task: t.a, with: { x: 1, yy: 2 } }
  - { id: b, task: t.a, with: "${input}" }
  - { id: c, task: t.a }
`
	d, faults := Parse([]byte(text), YAML)
	if d == nil {
		t.Fatal(faults)
	}
	var got []string
	for _, f := range faults {
		got = append(got, f.Error())
	}
	want := []string{
		`7:31: warning: task t.a requires "y" in its input, and with does not give it`,
		`7:39: warning: the input of task t.a lists no "yy" (did you mean y?)`,
		`9:20: warning: task t.a requires "x" in its input, and with does not give it`,
		`9:20: warning: task t.a requires "y" in its input, and with does not give it`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParse_WarnsOfTextThatMayBeMeantOtherwise(t *testing.T) {
	runSnippets(t, SeverityWarning, []snippetTest{
		{"comment right behind text", "steps:\n  - id: a\n    fail:\n      code: X\n      message: order #5 of ${input.n}\n", []string{"comment_cuts 5:22"}},
		{"comment right behind a description", "steps:\n  - id: a\n    description: order #5\n    sleep: 1s\n", []string{"comment_cuts 3:24"}},
		{"comment right behind an expression", "steps:\n  - id: a\n    compute: input.n #1\n", []string{"comment_cuts 3:22"}},
		{"comment further behind", "steps:\n  - id: a\n    compute: input.n  # the number\n", nil},
		{"comment behind quotes", "steps:\n  - id: a\n    compute: \"input.n\" # the number\n", nil},
		{"words that were booleans", "steps:\n  - { id: a, task: do.it, with: { x: yes, y: 'no', z: [Off, true] } }\n", []string{"boolean_word 2:38", "boolean_word 2:56"}},
		{"selection without ${ }", "steps:\n  - { id: a, task: do.it, with: { x: input.n, y: \"see input.n\" } }\noutput: steps.a.output\n", []string{"looks_like_text 2:38", "looks_like_text 3:9"}},
	})
}

func TestParse_WarnsOfWaitsWithoutEnd(t *testing.T) {
	text := `name: a
version: "1.0.0"
signals: { go: {}, never: {} }
tasks: { t.a: { version: "1.0.0" }, t.b: { version: "1.0.0" } }
retry_policies: { p: {} }
steps:
  - { id: w, await: go }
  - { id: a, task: t.a }
  - { id: b, task: t.a, queue_timeout: 1h, compensate: { task: t.a } }
  - { id: c, task: http.request, with: { url: x } }
`
	d, faults := Parse([]byte(text), YAML)
	if d == nil {
		t.Fatal(faults)
	}
	var got []string
	for _, f := range faults {
		got = append(got, f.Error())
	}
	want := []string{
		"1:1: warning: an execution may run without end (give the definition a timeout, such as timeout: 24h)",
		`4:37: warning: "t.b" is declared and never used`,
		`5:19: warning: "p" is declared and never used`,
		"7:21: warning: step w waits for its signal without end (give it a timeout)",
		"8:5: warning: 2 task(s), from here on, wait for a worker without end if none offers them (give them a queue_timeout, or all at once: defaults: { queue_timeout: 1h })",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParse_MessagesSayWhatToDo(t *testing.T) {
	tests := []struct{ text, message, hint string }{
		{"steps: [ { id: a, task: do.it, timout: 5s } ]", `a step has no key "timout"`, "did you mean timeout?"},
		{"steps: [ { id: a, taks: do.it } ]", "this entry says nothing to do", "taks: did you mean task?"},
		{"steps: [ { id: a, task: do.ti } ]", `no task "do.ti" is declared`, "did you mean do.it?"},
		{"steps: [ { id: a, task: quite.different } ]", `no task "quite.different" is declared`, "declare it under tasks"},
		{"steps: [ { id: a, await: og, timeout: 1h } ]", `no signal "og" is declared`, "did you mean go?"},
		{"steps: [ { id: a, task: do.it, retry: patent } ]", `no retry policy "patent" is declared`, "did you mean patient?"},
		{"steps: [ { id: reserve, sleep: 1s }, { id: b, compute: steps.resreve.status } ]", `compute: there is no step "resreve"`, "did you mean reserve?"},
		{"steps: [ { id: a, task: do.typed }, { id: b, compute: steps.a.output.nite } ]", `compute: steps.a.output has no field "nite"`, "did you mean note?"},
		{"steps: [ { id: a, when: input.n > 1, task: do.typed }, { id: b, compute: steps.a.output.id } ]", "compute: step a may be skipped, and then its output is null", "write steps.a.output.?id, with .orValue(…) for what to take then"},
		{"steps: [ { id: a, task: do.typed }, { id: b, compute: steps.a.output.note } ]", "compute: steps.a.output.note may be absent", "write steps.a.output.?note, with .orValue(…) for what to take then"},
		{"steps: [ { id: a, task: do.it, at_most_once: yes } ]", "at_most_once: expected true or false, got string", "write true or false: yes is text in YAML 1.2"},
		{"steps: [ { id: a, sleep: 30 } ]", "sleep: the number 30 has no unit", durationForms},
		{"steps: [ { id: a, sleep: 1s, after: b } ]", "after: expected a list of ids, got string", "write [b]"},
		{"steps: [ { id: a, workflow: pay } ]", "a child workflow is named with its full version", "write pay@1.0.0"},
	}
	for _, test := range tests {
		_, faults := Parse([]byte(head+test.text+"\n"), YAML)
		found := false
		for _, f := range faults {
			found = found || f.Message == test.message && f.Hint == test.hint
		}
		if !found {
			t.Errorf("%s\nwant %s (%s)\ngot %v", test.text, test.message, test.hint, faults)
		}
	}
}

func TestParse_AFaultInsideAStringHasItsPlace(t *testing.T) {
	runSnippets(t, SeverityError, []snippetTest{
		{"plain", "steps:\n  - { id: a, fail: { code: X, message: é ${input.x} } }\n", []string{"syntax 2:43"}},
		{"double quotes", "steps:\n  - { id: a, fail: { code: X, message: \"é\\u00e9\\n${1 + input.x}\" } }\n", []string{"unknown_field 2:56"}},
		{"double quotes with a pair", "steps:\n  - { id: a, fail: { code: X, message: \"\\ud83d\\ude00 ${input.x}\" } }\n", []string{"unknown_field 2:56"}},
		{"single quotes", "steps:\n  - { id: a, fail: { code: X, message: 'it''s ${input.x}' } }\n", []string{"unknown_field 2:49"}},
		{"literal block", "steps:\n  - id: a\n    fail:\n      code: X\n      message: |\n        first\n\n          second ${input.x}\n", []string{"unknown_field 8:20"}},
		{"folded block", "steps:\n  - id: a\n    compute: >-\n      1 +\n      input.x\n", []string{"unknown_field 5:7"}},
		{"plain on two lines", "steps:\n  - id: a\n    compute: 1 +\n      input.x\n", []string{"unknown_field 4:7"}},
		{"quotes on two lines", "steps:\n  - id: a\n    compute: \"1 +\n\n      2 + \\\n      input.x\"\n", []string{"unknown_field 6:7"}},
		{"half-open", "steps:\n  - { id: a, task: do.it, with: { x: [\"a ${input.n\"] } }\n", []string{"half_open_template 2:42"}},
		{"empty", "steps:\n  - { id: a, task: do.it, with: { \"a/b\": \"a ${ }\" } }\n", []string{"empty_template 2:45"}},
		{"escaped", "steps:\n  - { id: a, task: do.it, with: { x: \"a $${input.zzz\" } }\n", nil},
	})
}

func TestParse_PlacesInJSON(t *testing.T) {
	text := "{\"name\": \"a\",\n \"version\": \"1.0.0\", \"tasks\": {},\n \"steps\": [ {\"id\": \"é\\u00e9\", \"compute\": \"1 +\\n\\t input.x + stps\"}, {\"id\": 5, \"slep\": [true, null]} ] }"
	_, faults := Parse([]byte(text), JSON)
	var got []string
	for _, f := range faults {
		if f.Severity == SeverityError {
			got = append(got, strings.SplitN(f.Error(), ": ", 2)[0]+" "+f.Code+" "+f.Path)
		}
	}
	want := []string{"3:20 bad_name /steps/0/id", "3:61 unknown_name /steps/0/compute", "3:69 no_action /steps/1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParse_JSONFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "1:1 syntax",
		"{\"a\": 1,\n \"a\": 2}":            "2:2 duplicate_key",
		"{\"a\": \"\\ud800\"}":              "1:8 syntax",
		"name: a":                           "1:1 syntax",
		strings.Repeat("[", 65):             "1:65 syntax",
		strings.Repeat(" ", maxJSONBytes+1): "1:1 too_large",
		"[\"é\", \xff]":                     "1:7 syntax",
	} {
		_, faults := Parse([]byte(text), JSON)
		if len(faults) != 1 {
			t.Errorf("%.40q: %v", text, faults)
			continue
		}
		if got := strings.SplitN(faults[0].Error(), ": ", 2)[0] + " " + faults[0].Code; got != want {
			t.Errorf("%.40q: got %s, want %s", text, got, want)
		}
	}
}
