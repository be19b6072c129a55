package decide

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"perigee/engine/definition"
)

// The tasks, signals and child that random definitions use.
const generatedHead = `name: random
version: "1.0.0"
signals: { go: {}, stop: {} }
queries: { all: "input" }
tasks:
  t.plain: { version: "1.0.0" }
  t.typed: { version: "1.0.0", output: { type: object, properties: { n: { type: integer, default: 1 } } } }
  t.undo: { version: "1.0.0" }
`

const generatedChild = `name: kid
version: "1.0.0"
input: { type: object, properties: { n: { type: integer } } }
steps: [ { id: only, compute: 1 } ]
`

// generator writes a random definition, line by line.
type generator struct {
	t     *rapid.T
	lines []string
	ids   []string // of the main steps so far
	n     int
}

// drawProgram gives a random definition with random limits. Every action, group
// and key that decide knows is among what it draws from.
func drawProgram(t *rapid.T) Program {
	child, _ := definition.Parse([]byte(generatedChild), definition.YAML)
	g := &generator{t: t, lines: []string{generatedHead}}
	if g.chance(4) {
		g.line(0, "timeout: %s", g.pick("20s", "3m"))
	}
	if g.chance(8) {
		g.line(0, "limits: { max_history_events: %d }", rapid.IntRange(5, 60).Draw(t, "limit"))
	}
	g.line(0, "steps:")
	g.steps(1, rapid.IntRange(1, 5).Draw(t, "steps"), 2)
	if g.chance(2) {
		g.line(0, "output: %s", g.pick(`"${input}"`, `"${steps.s0.output}"`, `"${[steps.s0.output][1]}"`))
	}
	for _, kind := range []string{"on_failure", "on_cancel", "on_timeout"} {
		if g.chance(3) {
			g.handler(kind)
		}
	}
	source := strings.Join(g.lines, "\n")
	d, faults := definition.Parse([]byte(source), definition.YAML)
	if d == nil {
		t.Fatalf("%s\n%v", source, faults)
	}
	t.Log(source)
	return Program{
		Definition: d,
		Children:   map[string]*definition.Definition{"kid@1.0.0": child},
		Limits: Limits{
			MaxFanOut: 3, MaxHistoryEvents: 2000, MaxPayloadBytes: 400, MaxJoinBytes: 300, MaxRedeliveries: 1,
			CancelGraceMS: int64(rapid.SampledFrom([]int{0, 5000, 600_000}).Draw(t, "grace")), DefaultAttemptTimeoutMS: 60_000,
		},
	}
}

func (g *generator) chance(in int) bool { return rapid.IntRange(1, in).Draw(g.t, "chance") == 1 }

func (g *generator) pick(of ...string) string { return rapid.SampledFrom(of).Draw(g.t, "pick") }

func (g *generator) line(depth int, format string, args ...any) {
	g.lines = append(g.lines, strings.Repeat("  ", depth)+fmt.Sprintf(format, args...))
}

// steps writes n entries of a list, groups among them down to depth levels.
func (g *generator) steps(indent, n, depth int) {
	for range n {
		switch kind := rapid.IntRange(0, 11).Draw(g.t, "entry"); {
		case depth > 0 && kind == 0:
			g.line(indent, "- parallel:")
			g.steps(indent+2, rapid.IntRange(1, 3).Draw(g.t, "members"), depth-1)
		case depth > 0 && kind == 1:
			g.line(indent, "- switch:")
			g.line(indent+2, "- when: %s", g.condition())
			g.line(indent+3, "steps:")
			g.steps(indent+4, 1, depth-1)
			g.line(indent+2, "- otherwise: true")
			g.line(indent+3, "steps:")
			g.steps(indent+4, 1, depth-1)
		default:
			g.step(indent)
		}
	}
}

func (g *generator) condition() string {
	return g.pick(`"input.n > 1"`, `"input.n < 2"`, `"false"`, `"true"`, `"input.nothing"`, `"size(input.list) > 1"`)
}

func (g *generator) step(indent int) {
	id := fmt.Sprintf("s%d", g.n)
	g.n++
	g.line(indent, "- id: %s", id)
	in := indent + 1
	if g.chance(4) {
		g.line(in, "when: %s", g.condition())
	}
	if len(g.ids) > 0 && g.chance(4) {
		g.line(in, "after: %s", g.pick("[]", "["+g.pick(g.ids...)+"]"))
	}
	switch g.pick("task", "task", "task", "task", "workflow", "sleep", "await", "compute", "fail") {
	case "task":
		g.task(in)
	case "workflow":
		g.line(in, "workflow: kid@1.0.0")
		g.line(in, `with: { n: %s }`, g.pick("1", `"${input.n}"`, "x"))
		g.maybe(in, "timeout: %s", "5s", "2m")
		g.maybe(in, "on_parent_close: %s", "abandon", "cancel")
		g.fanOut(in)
		g.catch(in)
		g.compensate(in)
	case "sleep":
		g.line(in, "%s", g.pick("sleep: 0s", "sleep: 3s", "sleep: 10s", `sleep: "${input.text}"`, `until: "2027-01-15T08:00:30Z"`, `until: "2020-01-01T00:00:00Z"`))
	case "await":
		g.line(in, "await: %s", g.pick("go", "stop"))
		g.maybe(in, "timeout: %s", "1s", "8s")
		g.catch(in)
	case "compute":
		g.line(in, "compute: %s", g.pick(`"input.n + 1"`, `"input.nothing"`, "{ at: \"${now}\" }", `"size(input.list)"`))
		g.fanOut(in)
		g.catch(in)
	case "fail":
		g.line(in, `fail: { code: STOP, message: "because of ${input.n}" }`)
	}
	g.ids = append(g.ids, id)
}

func (g *generator) maybe(indent int, format string, values ...string) {
	if g.chance(2) {
		g.line(indent, format, g.pick(values...))
	}
}

func (g *generator) task(in int) {
	g.line(in, "task: %s", g.pick("t.plain", "t.plain", "t.typed"))
	with := []string{`{ n: "${input.n}" }`, "{ n: 1 }", `{ now: "${now}" }`}
	if len(g.ids) > 0 {
		with = append(with, fmt.Sprintf(`{ got: "${steps.%s.output}" }`, g.pick(g.ids...)), fmt.Sprintf(`{ got: "${[steps.%s.output][1]}" }`, g.pick(g.ids...)))
	}
	g.maybe(in, "with: %s", with...)
	g.maybe(in, "timeout: %s", "4s", "30s", `"${input.text}"`)
	g.maybe(in, "queue_timeout: %s", "2s", "1m")
	g.retry(in)
	g.maybe(in, "max_redeliveries: %s", "0", "2")
	if g.chance(4) {
		g.line(in, "at_most_once: true")
	}
	g.fanOut(in)
	g.catch(in)
	g.compensate(in)
}

func (g *generator) retry(in int) {
	g.maybe(in, "retry: %s", "none", "{ max_attempts: 2, initial_interval: 1s }", "{ max_attempts: unlimited, initial_interval: 0s }", "{ no_retry: [BROKEN] }")
}

func (g *generator) fanOut(in int) {
	if g.chance(3) {
		g.line(in, "for: %s", g.pick("input.list", "input.list", "[]", "[1, 2]", "input.n", "[1, 2, 3, 4]"))
		g.maybe(in, "max_parallel: %s", "1", "2", `"${input.n}"`)
	}
}

func (g *generator) catch(in int) {
	g.maybe(in, "catch: %s", "[ {} ]", `[ { output: "${error.code}" } ]`, "[ { codes: [BROKEN, TIMEOUT], output: 1 } ]", `[ { output: "${error.details.deep}" } ]`, "[ { codes: [EXPRESSION_ERROR] }, {} ]")
}

func (g *generator) compensate(in int) {
	if !g.chance(2) {
		return
	}
	g.line(in, "compensate:")
	if g.chance(5) {
		g.line(in+1, "workflow: kid@1.0.0")
	} else {
		g.line(in+1, "task: t.undo")
		g.retry(in + 1)
		g.maybe(in+1, "queue_timeout: %s", "1m")
	}
	g.maybe(in+1, "with: %s", `{ was: "${output}" }`, `{ was: "${[output][1]}" }`, `{ key: "${idempotency_key}", why: "${failure.code}" }`)
	g.maybe(in+1, "timeout: %s", "5s")
	g.maybe(in+1, "when_uncertain: %s", "true")
}

func (g *generator) handler(kind string) {
	g.line(0, "%s:", kind)
	for i := range rapid.IntRange(1, 3).Draw(g.t, "handler steps") {
		g.line(1, "- id: h%d", i)
		g.maybe(2, "when: %s", `"failure.code == 'STOP'"`, `"true"`)
		g.line(2, "%s", g.pick(`task: t.plain`, `compute: "failure.message"`, "sleep: 3s", `compute: "input.nothing"`, "workflow: kid@1.0.0"))
	}
}
