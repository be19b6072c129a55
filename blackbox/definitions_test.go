package blackbox_test

import (
	"slices"
	"strings"
	"testing"

	"perigee/sdk/go/client"
)

// everywhere has an expression in every field that takes a value.
const everywhere = `
name: everywhere
version: "1.0.0"
signals: { go: {} }
queries: { q: "${input.n}" }
tasks: { a.step: { version: "1.0.0" } }
steps:
  - { id: with, task: a.step, with: { a: "${input.n}", b: [ "${input.n}", "x${input.n}y" ] }, timeout: "${input.wait}", queue_timeout: "${input.wait}", when: "${input.n == 1}",
      catch: [ { codes: [NO], output: { caught: "${error.code}" } } ],
      compensate: { task: a.step, with: { o: "${output}" }, timeout: "${input.wait}", queue_timeout: "${input.wait}" } }
  - { id: nap, sleep: "${input.nap}" }
  - { id: until, sleep: { until: x } }
  - { id: each, for: "${[input.n]}", max_parallel: "${input.n}", compute: "${item + index}" }
  - { id: text, compute: "${input.n + 1}" }
  - { id: object, compute: { v: "${input.n + 1}", w: [ "${input.n}" ], t: "n is ${input.n}" } }
  - { id: wait, await: go, timeout: "${input.wait}", catch: [ { output: "${error.code}" } ] }
  - { id: no, when: "${input.n == 2}", fail: { code: NO, message: "n is ${input.n}" } }
output: { o: "${steps.object.output}", e: "${steps.each.output}", literal: "$${input.n}" }
on_failure: [ { id: alert, task: a.step, with: { m: "${failure.message}" } } ]
`

// expressions is the definition with `until` written as the format wants it.
var expressions = replace(everywhere, "sleep: { until: x }", `until: "${string(timestamp('2020-01-01T00:00:00Z'))}"`)

func TestDefinition_EveryFieldThatTakesAValueTakesAnExpression(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(expressions)
		id := e.start("everywhere", "", `{"n":1,"wait":"10s","nap":"1ms"}`)
		session := e.register("w", "a.step")
		task := e.poll(session)
		if want := `{"a":1,"b":[1,"x1y"]}`; string(task.Input) != want || task.TimeoutMS != 10_000 {
			e.Errorf("input %s, timeout %d ms", task.Input, task.TimeoutMS)
		}
		e.fail(task, "NO", false)
		e.until(id, "SignalAwaitStarted(wait)")
		e.signal(id, "go", `{}`, "")
		s := e.end(id, client.Completed)
		if want := `{"e":[1],"literal":"${input.n}","o":{"t":"n is 1","v":2,"w":[1]}}`; string(s.Output) != want {
			e.Errorf("output %s, want %s", s.Output, want)
		}
	})
}

func TestDefinition_HalfOpenExpressionsAreRefusedWhereTheyStand(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		for i, c := range []struct{ whole, half, path string }{
			{`a: "${input.n}"`, `a: "${input.n"`, "/steps/0/with/a"},
			{`"x${input.n}y"`, `"x${input.n"`, "/steps/0/with/b/1"},
			{`timeout: "${input.wait}"`, `timeout: "${input.wait"`, "/steps/0/timeout"},
			{`when: "${input.n == 1}"`, `when: "${input.n == 1"`, "/steps/0/when"},
			{`caught: "${error.code}"`, `caught: "${error.code"`, "/steps/0/catch/0/output/caught"},
			{`o: "${output}"`, `o: "${output"`, "/steps/0/compensate/with/o"},
			{`sleep: "${input.nap}"`, `sleep: "${input.nap"`, "/steps/1/sleep"},
			{`00Z'))}"`, `00Z'))"`, "/steps/2/until"},
			{`for: "${[input.n]}"`, `for: "${[input.n]"`, "/steps/3/for"},
			{`max_parallel: "${input.n}"`, `max_parallel: "${input.n"`, "/steps/3/max_parallel"},
			{`compute: "${input.n + 1}"`, `compute: "${input.n + 1"`, "/steps/4/compute"},
			{`v: "${input.n + 1}"`, `v: "${input.n + 1"`, "/steps/5/compute/v"},
			{`message: "n is ${input.n}"`, `message: "n is ${input.n"`, "/steps/7/fail/message"},
			{`o: "${steps.object.output}"`, `o: "${steps.object.output"`, "/output/o"},
			{`m: "${failure.message}"`, `m: "${failure.message"`, "/on_failure/0/with/m"},
			{`q: "${input.n}"`, `q: "${input.n"`, "/queries/q"},
			{`a: "${input.n}"`, `a: "${}"`, "/steps/0/with/a"},
		} {
			_, err := e.api.RegisterDefinition(e.ctx(), []byte(replace(expressions, c.whole, c.half)), client.YAML)
			faults := slices.DeleteFunc(client.Faults(err), func(f client.Fault) bool { return f.Severity != "error" })
			if client.CodeOf(err) != "INVALID_DEFINITION" || len(faults) == 0 {
				e.Errorf("%d: %s was answered %v", i, c.half, err)
				continue
			}
			if f := faults[0]; f.Path != c.path || f.Line == 0 || !strings.Contains(f.Message, "${") {
				e.Errorf("%s: the first fault is %+v, want one at %s", c.half, f, c.path)
			}
		}
	})
}

func TestDefinition_NeverChangesOnceRegistered(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		first, err := e.api.RegisterDefinition(e.ctx(), []byte(oneStep), client.YAML)
		if err != nil || !first.Created {
			e.Fatalf("%+v, %v", first, err)
		}
		again, err := e.api.RegisterDefinition(e.ctx(), []byte("# a comment\n"+oneStep), client.YAML)
		if err != nil || again.Created || again.DefinitionHash != first.DefinitionHash {
			e.Errorf("the same content again: %+v, %v", again, err)
		}
		_, err = e.api.RegisterDefinition(e.ctx(), []byte(replace(oneStep, "id: work", "description: other, id: work")), client.YAML)
		if client.CodeOf(err) != "DEFINITION_CONFLICT" {
			e.Errorf("other content under the same version: %v", err)
		}
		got, err := e.api.Definition(e.ctx(), "one", "")
		if err != nil || got.DefinitionHash != first.DefinitionHash {
			e.Errorf("it is now %+v, %v", got, err)
		}
	})
}
