package simulation

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// Tasks that simulated workers offer. The contract of the strict one can be
// broken in both directions.
const (
	taskPlain  = "sim.plain"
	taskStrict = "sim.strict"
	taskUndo   = "sim.undo"
)

// Program is one random workflow with the children that it may start.
type Program struct {
	Name     string
	Source   string   // JSON form of the definition
	Children []string // JSON forms, to be registered first
	Signals  []string
}

type object = map[string]any

// generator makes one random definition.
type generator struct {
	r       *rand.Rand
	ids     []string // of steps so far, for references
	signals object
	child   string // "name@version" of the child, "" where there is none
	depth   int
	budget  int // steps left
}

// Generate makes a random program; the same random numbers make the same.
func Generate(r *rand.Rand, name string) Program {
	p := Program{Name: name}
	childName := ""
	if chance(r, 35) {
		childName = name + "-kid"
		g := &generator{r: r, signals: object{}, budget: 1 + r.IntN(3)}
		p.Children = append(p.Children, g.definition(childName, true))
		childName += "@1.0.0"
		p.Signals = append(p.Signals, slices.Sorted(maps.Keys(g.signals))...)
	}
	g := &generator{r: r, signals: object{}, child: childName, budget: 2 + r.IntN(6)}
	p.Source = g.definition(name, false)
	p.Signals = append(p.Signals, slices.Sorted(maps.Keys(g.signals))...)
	return p
}

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func (g *generator) definition(name string, isChild bool) string {
	d := object{
		"name":    name,
		"version": "1.0.0",
		"tasks": object{
			taskPlain:  object{"version": "1.0.0"},
			taskUndo:   object{"version": "1.0.0"},
			taskStrict: object{"version": "1.0.0", "input": object{"type": "object"}, "output": object{"type": "object", "required": []string{"ok"}, "properties": object{"ok": object{"type": "boolean"}, "filled": object{"default": 7}}}},
		},
		"steps": g.list(),
	}
	if chance(g.r, 25) {
		d["timeout"] = pick(g.r, "3s", "20s", "2m")
	}
	if chance(g.r, 6) {
		d["limits"] = object{"max_history_events": 8 + g.r.IntN(20)}
	}
	if isChild && chance(g.r, 30) {
		d["input"] = object{"type": "object", "required": []string{"kid"}}
	}
	if len(g.signals) > 0 {
		d["signals"] = g.signals
	}
	switch g.r.IntN(10) {
	case 0:
		d["output"] = "${input.missing}" // fails: $output
	case 1, 2, 3, 4:
		d["output"] = object{"last": fmt.Sprintf("${steps.%s.output}", pick(g.r, g.ids...)), "n": "${input.n + 1}"}
	}
	d["queries"] = object{"state": fmt.Sprintf("steps.%s.status", g.ids[0])}
	for _, kind := range []string{"on_failure", "on_cancel", "on_timeout"} {
		if chance(g.r, 30) {
			d[kind] = g.handlers()
		}
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // plain maps and strings
	}
	return string(text)
}

func (g *generator) list() []any {
	var list []any
	for g.budget > 0 {
		list = append(list, g.entry())
		if chance(g.r, 20) && len(list) > 0 && g.depth > 0 {
			break
		}
	}
	if len(list) == 0 {
		g.budget++
		list = append(list, g.entry())
	}
	return list
}

// entry is a step or a group.
func (g *generator) entry() object {
	if g.depth < 2 && g.budget > 1 && chance(g.r, 22) {
		return g.group()
	}
	g.budget--
	return g.step()
}

func (g *generator) group() object {
	g.depth++
	defer func() { g.depth-- }()
	o := object{}
	if chance(g.r, 25) {
		o["when"] = g.condition() // before the members: it must not name them
	}
	switch g.r.IntN(3) {
	case 0:
		o["parallel"] = g.list()
	case 1:
		o["steps"] = g.list()
	default:
		branches := []any{object{"when": g.condition(), "steps": g.list()}}
		if g.budget > 0 {
			branches = append(branches, object{"otherwise": true, "steps": g.list()})
		}
		o["switch"] = branches
	}
	return o
}

func (g *generator) condition() string {
	conditions := []string{"input.flag", "input.n > 3", "input.items.size() > 1", "true", "input.nothing == 1"}
	if chance(g.r, 85) {
		conditions = conditions[:4]
	}
	if len(g.ids) > 0 {
		conditions = append(conditions, fmt.Sprintf("steps.%s.status == 'SUCCEEDED'", pick(g.r, g.ids...)))
	}
	return pick(g.r, conditions...)
}

func (g *generator) step() object {
	id := fmt.Sprintf("s%d", len(g.ids))
	o := object{"id": id}
	if chance(g.r, 15) {
		o["when"] = g.condition()
	}
	if len(g.ids) > 0 && chance(g.r, 15) {
		o["after"] = []string{pick(g.r, g.ids...)}
	} else if chance(g.r, 5) {
		o["after"] = []string{}
	}
	g.action(o)
	g.ids = append(g.ids, id)
	return o
}

func (g *generator) action(o object) {
	switch n := g.r.IntN(100); {
	case n < 50:
		g.task(o)
	case n < 58:
		g.fanOut(o)
	case n < 65:
		g.await(o)
	case n < 72:
		g.sleep(o)
	case n < 80:
		o["compute"] = object{"n": "${input.n}", "before": g.reference()}
	case n < 83:
		o["fail"] = object{"code": pick(g.r, "REJECTED", "EXPRESSION_ERROR"), "message": "no ${input.n}"}
	case n < 86:
		o["task"] = "http.request"
		o["with"] = object{"url": "http://example.test/"}
		g.options(o)
	case g.child != "":
		g.workflow(o)
	default:
		g.task(o)
	}
}

// reference is a template that reads an earlier step, safely or not.
func (g *generator) reference() any {
	if len(g.ids) == 0 {
		return "${input.n}"
	}
	id := pick(g.r, g.ids...)
	if chance(g.r, 5) {
		return fmt.Sprintf("${steps.%s.error.never}", id)
	}
	return fmt.Sprintf("${steps.%s.output}", id)
}

func (g *generator) task(o object) {
	o["task"] = pick(g.r, taskPlain, taskPlain, taskStrict)
	with := object{"n": "${input.n}", "ref": g.reference()}
	if chance(g.r, 3) {
		o["with"] = "${input.n}" // breaks the strict contract: it wants an object
	} else {
		o["with"] = with
	}
	g.options(o)
	if chance(g.r, 45) {
		g.compensate(o)
	}
}

func (g *generator) compensate(o object) {
	c := object{"task": taskUndo, "with": object{"key": "${idempotency_key}", "output": "${output}", "why": "${failure.reason}"}, "retry": g.retry()}
	if chance(g.r, 12) && g.child != "" {
		c = object{"workflow": g.child, "with": object{"kid": 1, "n": 1, "flag": true, "items": []int{}}}
	}
	if chance(g.r, 40) {
		c["when_uncertain"] = true
	}
	o["compensate"] = c
}

func (g *generator) options(o object) {
	if chance(g.r, 60) {
		o["retry"] = g.retry()
	}
	if chance(g.r, 40) {
		o["timeout"] = pick(g.r, "500ms", "2s", "${input.n > 3 ? '1s' : '30s'}", "1h")
	}
	if chance(g.r, 25) {
		o["queue_timeout"] = pick(g.r, "800ms", "5s", "1m")
	}
	if chance(g.r, 12) {
		o["at_most_once"] = true
	} else if chance(g.r, 20) {
		o["max_redeliveries"] = g.r.IntN(2)
	}
	g.catch(o)
}

func (g *generator) catch(o object) {
	switch g.r.IntN(6) {
	case 0:
		o["catch"] = []any{object{"codes": []string{"DECLINED"}, "output": object{"caught": "${error.code}"}}}
	case 1:
		o["catch"] = []any{object{"codes": []string{"EXPRESSION_ERROR"}}, object{"output": "${error.message}"}}
	}
}

func (g *generator) retry() any {
	if chance(g.r, 15) {
		return "none"
	}
	retry := object{
		"max_attempts":     1 + g.r.IntN(3),
		"initial_interval": pick(g.r, "50ms", "1s"),
		"backoff":          pick(g.r, 1, 2, 10),
		"jitter":           pick(g.r, 0.0, 0.5),
	}
	if chance(g.r, 20) {
		retry["no_retry"] = []string{"DECLINED"}
	}
	return retry
}

func (g *generator) fanOut(o object) {
	o["for"] = pick(g.r, "input.items", "input.items", "input.items", "[]", "input.n", "input.none")
	if chance(g.r, 50) {
		o["max_parallel"] = 1 + g.r.IntN(2)
	}
	switch {
	case chance(g.r, 25):
		o["compute"] = object{"item": "${item}", "index": "${index}"}
		return
	case chance(g.r, 20) && g.child != "":
		o["workflow"] = g.child
		o["with"] = object{"kid": "${item}", "n": "${index}", "flag": false, "items": []int{1}}
	default:
		o["task"] = pick(g.r, taskPlain, taskStrict)
		o["with"] = object{"item": "${item}", "index": "${index}"}
		g.options(o)
		if chance(g.r, 50) {
			o["compensate"] = object{"task": taskUndo, "with": object{"item": "${item}", "index": "${index}"}, "retry": "none"}
		}
		return
	}
}

func (g *generator) await(o object) {
	name := pick(g.r, "go", "stop")
	g.signals[name] = object{}
	o["await"] = name
	if chance(g.r, 70) {
		o["timeout"] = pick(g.r, "1s", "10s", "1h")
	}
	g.catch(o)
}

func (g *generator) sleep(o object) {
	if chance(g.r, 20) {
		o["until"] = pick(g.r, "2020-01-01T00:00:00Z", "2027-01-15T08:00:07Z")
		return
	}
	o["sleep"] = pick(g.r, "0s", "300ms", "3s", "${input.n > 3 ? '1s' : '30s'}")
}

func (g *generator) workflow(o object) {
	o["workflow"] = g.child
	with := object{"n": "${input.n}", "flag": true, "items": []int{1, 2}, "kid": true}
	if chance(g.r, 20) {
		delete(with, "kid")
	}
	o["with"] = with
	if chance(g.r, 30) {
		o["timeout"] = pick(g.r, "2s", "1h")
	}
	if chance(g.r, 35) {
		o["on_parent_close"] = pick(g.r, "cancel", "abandon")
	}
	if chance(g.r, 20) {
		g.compensate(o)
	}
	g.catch(o)
}

func (g *generator) handlers() []any {
	first := object{"id": "tell", "task": taskPlain, "with": object{"why": "${failure.message}"}, "retry": g.retry()}
	if chance(g.r, 20) {
		first["timeout"] = "1s"
	}
	list := []any{first}
	if chance(g.r, 40) {
		list = append(list, object{"id": "rest", "sleep": "1s"})
	}
	if chance(g.r, 40) {
		list = append(list, object{"id": "sum", "compute": object{"told": "${steps.tell.status}", "code": "${failure.code}"}, "when": g.pickCondition()})
	}
	if chance(g.r, 15) && g.child != "" {
		list = append(list, object{"id": "kid", "workflow": g.child, "with": object{"kid": 1, "n": 2, "flag": true, "items": []int{}}})
	}
	return list
}

func (g *generator) pickCondition() string {
	return pick(g.r, "true", "input.flag", "failure.code != ''")
}
