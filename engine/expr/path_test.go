package expr

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkPath holds a path that is followed against what CEL makes of it.
func checkPath(t *testing.T, e *expression) (followed bool) {
	t.Helper()
	act := newActivation(sample())
	direct, followed := e.follow(act, defaultCost)
	if !followed {
		return false
	}
	computed, err := e.compute(newActivation(sample()), defaultCost)
	if err != nil {
		t.Errorf("%s: followed to %v, but CEL says %v", e.source, direct, err)
		return true
	}
	a, b := resultWriter{limit: maxResult}, resultWriter{limit: maxResult}
	if errA, errB := a.value(direct), b.value(computed); errA != nil || errB != nil || string(a.dst) != string(b.dst) {
		t.Errorf("%s: followed to %s (%v), computed as %s (%v)", e.source, a.dst, errA, b.dst, errB)
	}
	if typeName(direct) != typeName(computed) {
		t.Errorf("%s: followed to a %s, computed as a %s", e.source, typeName(direct), typeName(computed))
	}
	return true
}

func TestPath_LeadsWhereCELDoes(t *testing.T) {
	want := map[string]bool{
		"input": true, " input.total ": true, "input.big": true, "input.esc": true, "input.items": true, "input.map.é": false, `input.map["a"]`: true,
		"input['map'].z": true, "input.nothing": true, "input.nothing.more": false, "input.missing": false, "input.items.sku": false, "input.items[0]": false,
		"steps.reserve.output": true, `steps["reserve"].output.qty`: true, "steps.reserve.status": true, "steps.reserve.attempt": true, "steps.skipped.output": true,
		"steps.unknown.output": true, "steps.skipped.output.id": false, "steps.reserve": true, "execution.id": true, "execution.parent.step": true, "execution.started_at": true,
		"execution": true, "now": true, "item.sku": true, "index": true, "output.id": true, "failure.reason": true, "error.code": true, "idempotency_key": true,
		"input.total + 1": false, "-input.n": false, "input.?total": false, "true": false, "null": false, "input.flag": true, `input["\u0061"]`: false, "has(input.s)": false,
	}
	got := map[string]bool{}
	for source := range want {
		e := &expression{source: source, scope: everything}
		got[source] = checkPath(t, e)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is followed (-want +got):\n%s", diff)
	}
}

func TestPath_IsNotTakenWhereCostsAreBoundedTightly(t *testing.T) {
	e := &expression{source: "input.total", scope: everything}
	if _, followed := e.follow(newActivation(sample()), pathCost-1); followed {
		t.Error("a path was followed below the cost that CEL may bound")
	}
}

func BenchmarkPath(b *testing.B) {
	vars := sample()
	b.ReportAllocs()
	for b.Loop() {
		p := LoadTemplate(`"${steps.reserve.output}"`, everything)
		if _, err := p.Eval(vars, Bounds{}); err != nil {
			b.Fatal(err)
		}
	}
}
