package decide

import (
	"fmt"
	"strings"
	"testing"

	"perigee/engine/expr"
	"perigee/engine/history"
)

// BenchmarkSimpleCEL is the measure of the one below it.
func BenchmarkSimpleCEL(b *testing.B) {
	program, problems := expr.Expression("input.n > 1", expr.Scope{})
	if program == nil {
		b.Fatal(problems)
	}
	v := &expr.Vars{Input: `{"n":2}`}
	for b.Loop() {
		if ok, err := program.Bool(v, expr.Bounds{}); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}

// BenchmarkDecideRoundInA20StepWorkflow is a call in the middle of a sequence
// of 20 steps: clone, a result, all rounds. The target is 200 simple CEL
// evaluations at most.
func BenchmarkDecideRoundInA20StepWorkflow(b *testing.B) { benchmarkRound(b, 20) }

// BenchmarkDecideRoundInA500StepWorkflow should take hardly longer.
func BenchmarkDecideRoundInA500StepWorkflow(b *testing.B) { benchmarkRound(b, 500) }

func benchmarkRound(b *testing.B, steps int) {
	var source strings.Builder
	source.WriteString("name: long\nversion: \"1.0.0\"\ntasks: { a.one: { version: \"1.0.0\" } }\nsteps:\n")
	for i := range steps {
		fmt.Fprintf(&source, "  - { id: s%d, when: \"input.n > 1\", task: a.one, with: { n: \"${input.n}\" }, timeout: 30s, queue_timeout: 1h }\n", i)
	}
	m := begin(b, parse(b, source.String()), `{"n":2}`)
	middle := steps / 2
	for i := range middle {
		unit := fmt.Sprintf("s%d", i)
		handOut(m, unit, unit)
		m.Result(unit, unit, Result{})
		m.Run()
		m = m.Clone()
	}
	unit := fmt.Sprintf("s%d", middle)
	handOut(m, unit, "t")
	for b.Loop() {
		c := m.Clone()
		c.Result(unit, "t", Result{Output: `{"n":1}`})
		if c.Run(); len(c.Records()) != 2 {
			b.Fatal(lines(c.Records()))
		}
	}
}

// BenchmarkNewOfA20StepWorkflow is what a call pays that has no warm machine.
func BenchmarkNewOfA20StepWorkflow(b *testing.B) {
	p := parse(b, fmt.Sprintf(strings.Replace(wide, "output:", "#", 1), 20))
	m := begin(b, p, "{}")
	for b.Loop() {
		New(p, m.State().Clone())
	}
}

// BenchmarkFinishOneElement is a call that ends one element of a fan-out: what
// it costs must not depend on how many there are.
func BenchmarkFinishOneElement(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("Of%d", n), func(b *testing.B) {
			m := begin(b, parse(b, fmt.Sprintf(strings.Replace(wide, "output:", "#", 1), n)), "{}")
			unit := history.ElementKey("each", n/2)
			handOut(m, unit, "t")
			for b.Loop() {
				c := m.Clone()
				c.Result(unit, "t", Result{Output: `{"n":1}`})
				if c.Run(); len(c.Records()) != 1 {
					b.Fatal(lines(c.Records()))
				}
				c.HeadWake()
			}
		})
	}
}
