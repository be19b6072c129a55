package decide

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"perigee/engine/exactjson"
	"perigee/engine/history"
)

const beginning = 1_800_000_000_000

// TestMachine_RandomExecutions drives random definitions with random commands
// and clock steps. After each call it holds the incremental machine to one made
// anew of the folded history, Wake to Decide, and the history to the invariants.
func TestMachine_RandomExecutions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDriver(t)
		for range rapid.IntRange(3, 40).Draw(t, "calls") {
			d.checkFresh()
			d.checkWake()
			d.checkLateTick()
			if d.m.State().Status.Terminal() {
				d.checkTerminal()
				return
			}
			d.call()
		}
		d.windUp()
	})
}

// driver holds one execution, with all of its history.
type driver struct {
	t       *rapid.T
	program Program
	m       *Machine
	now     int64
	records []history.Record
	more    bool
	rules   *invariants
	tokens  int
}

func newDriver(t *rapid.T) *driver {
	d := &driver{t: t, program: drawProgram(t), now: beginning}
	d.m = New(d.program, history.New("e"))
	d.rules = newInvariants(d.program)
	input := rapid.SampledFrom([]string{
		`{"n":1,"list":[1,2],"text":"5s"}`, `{"n":2,"list":[],"text":"0s"}`, `{"n":3,"list":[{"n":1.50},null,"x"],"text":7}`, `{"n":1,"list":null}`,
	}).Draw(t, "input")
	d.apply(func(m *Machine) {
		m.Create(history.WorkflowCreated{Workflow: "random", Version: "1.0.0", DefinitionHash: "sha256:0", Input: exactjson.Value(input)})
	})
	return d
}

// call draws one command or step of the clock.
func (d *driver) call() {
	t := d.t
	switch rapid.IntRange(0, 13).Draw(t, "command") {
	case 0, 1, 2:
		d.dispatch()
	case 3, 4:
		d.result(Result{Output: exactjson.Value(rapid.SampledFrom([]string{`{"n":1}`, `{"n":2}`, `{"n":"x"}`, `null`}).Draw(t, "output"))})
	case 5:
		d.result(Result{Error: &history.TaskError{Code: rapid.SampledFrom([]string{"BROKEN", "TIMEOUT", "OTHER"}).Draw(t, "code"), Message: "m", Retryable: rapid.Bool().Draw(t, "retryable")}})
	case 6:
		d.lose()
	case 7:
		name := rapid.SampledFrom([]string{"go", "stop"}).Draw(t, "signal")
		d.apply(func(m *Machine) { m.Signal(name, "1", "") })
	case 8:
		d.endChild()
	case 9:
		if rapid.IntRange(0, 4).Draw(t, "cancel") == 0 {
			d.apply(func(m *Machine) { m.Cancel("enough") })
		}
	case 10:
		d.later(int64(rapid.SampledFrom([]int{1, 999, 1000, 10_000, 100_000}).Draw(t, "ms")))
	default:
		d.toWake()
	}
}

func (d *driver) later(ms int64) {
	d.now += ms
	d.apply(func(*Machine) {})
}

// toWake goes to the next moment at which something is decided.
func (d *driver) toWake() {
	at, ok := d.m.Wake()
	if ok {
		d.now = max(d.now, at)
		d.apply(func(*Machine) {})
	}
}

// apply makes a call on a clone, on a machine made of the history, and once
// more on another clone: all three have to say the same.
func (d *driver) apply(command func(*Machine)) {
	before := dump(d.m)
	m, again := d.m.Clone(), d.m.Clone()
	fresh := New(d.program, history.Fold("e", d.records))
	var more [3]bool
	for i, machine := range []*Machine{m, again, fresh} {
		machine.At(d.now)
		command(machine)
		more[i] = machine.Run()
	}
	if diff := cmp.Diff(before, dump(d.m)); diff != "" {
		d.t.Fatalf("a clone changed its original:\n%s", diff)
	}
	if diff := cmp.Diff(lines(m.Records()), lines(again.Records())); diff != "" {
		d.t.Fatalf("the same call decided otherwise (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(lines(fresh.Records()), lines(m.Records())); diff != "" {
		d.t.Fatalf("the incremental machine decided otherwise (-fresh +incremental):\n%s", diff)
	}
	if more[0] != more[1] || more[0] != more[2] {
		d.t.Fatalf("more: %v", more)
	}
	d.m, d.more = m, more[0]
	d.records = append(d.records, m.Records()...)
	for _, r := range m.Records() {
		d.t.Log(line(r))
		d.rules.see(d.t, r)
	}
}

func lines(records []history.Record) []string {
	all := make([]string, len(records))
	for i, r := range records {
		all[i] = line(r)
	}
	return all
}

func line(r history.Record) string {
	return fmt.Sprintf("%d +%d %s %s", r.Seq, r.TimestampMS-beginning, r.Event.Type(), history.AppendFields(nil, r.Event))
}

// units lists the keys of the units of a status.
func (d *driver) units(status history.UnitStatus) []string {
	var keys []string
	for key, u := range d.m.State().Units() {
		if u.Status == status {
			keys = append(keys, key)
		}
	}
	return keys
}

func (d *driver) dispatch() {
	probe := d.m.Clone()
	probe.At(d.now)
	ready := slices.DeleteFunc(d.units(history.UnitScheduled), func(u string) bool {
		_, row := probe.Row(u)
		return !row || !probe.Startable(u)
	})
	if len(ready) == 0 {
		return
	}
	unit := rapid.SampledFrom(ready).Draw(d.t, "unit")
	d.tokens++
	token := fmt.Sprintf("t%d", d.tokens)
	d.apply(func(m *Machine) {
		row, _ := m.Row(unit)
		deadline := m.Now() + row.TimeoutMS
		m.Dispatch(unit, history.StepDispatched{Token: token, WorkerID: "w", WorkerSession: "s", DeadlineMS: &deadline})
	})
}

// issued draws a unit that was handed to a worker, and one of its tokens.
func (d *driver) issued() (unit, token string, ok bool) {
	var units []string
	for key, u := range d.m.State().Units() {
		if len(u.Tokens) > 0 && !u.WithChild() {
			units = append(units, key)
		}
	}
	if len(units) == 0 {
		return "", "", false
	}
	unit = rapid.SampledFrom(units).Draw(d.t, "unit")
	return unit, rapid.SampledFrom(d.m.State().Unit(unit).Tokens).Draw(d.t, "token").Token, true
}

func (d *driver) result(r Result) {
	unit, token, ok := d.issued()
	if !ok {
		return
	}
	d.apply(func(m *Machine) { m.Result(unit, token, r) })
	// What was accepted stays accepted.
	probe := d.m.Clone()
	probe.At(d.now)
	first, second := probe.Clone().Result(unit, token, r), probe.Result(unit, token, r)
	if first != second {
		d.t.Fatalf("the same report got %+v and %+v", first, second)
	}
}

func (d *driver) lose() {
	unit, token, ok := d.issued()
	if !ok {
		return
	}
	reason := rapid.SampledFrom([]string{ReasonUnregistered, ReasonNeverReceived}).Draw(d.t, "reason")
	d.apply(func(m *Machine) {
		if reason == ReasonUnregistered || !m.AtMostOnce(unit) {
			m.Lost(unit, token, reason)
		}
		m.Progress(unit, token, "1")
	})
}

func (d *driver) endChild() {
	running := slices.DeleteFunc(d.units(history.UnitDispatched), func(u string) bool { return !d.m.State().Unit(u).WithChild() })
	if len(running) == 0 {
		return
	}
	unit := rapid.SampledFrom(running).Draw(d.t, "unit")
	end := rapid.SampledFrom([]ChildEnd{
		{Status: history.Completed, Workflow: "kid", Output: "1"},
		{Status: history.Failed, Workflow: "kid", Error: &history.TaskError{Code: "BROKEN"}},
		{Status: history.Cancelled, Workflow: "kid"}, {Status: history.TimedOut, Workflow: "kid"}, {},
	}).Draw(d.t, "end")
	d.apply(func(m *Machine) { m.ChildEnded(unit, history.ChildID("e", unit), end) })
}

// checkFresh holds indexes and served state to those of the folded history.
func (d *driver) checkFresh() {
	fresh := New(d.program, history.Fold("e", d.records))
	fresh.At(d.now)
	if diff := cmp.Diff(dump(fresh), dump(d.m)); diff != "" {
		d.t.Fatalf("the incremental machine differs (-fresh +incremental):\n%s", diff)
	}
}

// checkWake holds Wake to Decide: before it nothing, at it something.
func (d *driver) checkWake() {
	state := d.m.State()
	at, ok := Wake(d.program, state)
	decides := func(now int64) bool { return len(Decide(d.program, state, now)) > 0 }
	switch {
	case !ok && decides(math.MaxInt64/2):
		d.t.Fatal("there is no wake-up, and yet there is something to decide")
	case ok && !decides(at):
		d.t.Fatalf("nothing is decided at the wake-up +%d", at-beginning)
	case ok && at > state.UpdatedAtMS && decides(at-1):
		d.t.Fatalf("something is decided before the wake-up +%d", at-beginning)
	}
	if d.more != (ok && at <= state.UpdatedAtMS) && d.now == state.UpdatedAtMS {
		d.t.Fatalf("more is %t, the wake-up +%d at +%d", d.more, at-beginning, d.now-beginning)
	}
	probe := d.m.Clone()
	if head, there := probe.HeadWake(); !d.more && (there && !ok || there && head < at) {
		d.t.Fatalf("the head wakes at +%d, before +%d", head-beginning, at-beginning)
	}
}

// checkLateTick holds one late tick to many in time: what had started gets the
// same. It says nothing where the execution is aborted on the way, since what
// starts after a moment may bring that on, and starts later with a late tick.
func (d *driver) checkLateTick() {
	end := d.now + int64(rapid.SampledFrom([]int{2000, 9000, 40_000}).Draw(d.t, "late"))
	inTime, late := d.m.Clone(), d.m.Clone()
	for range 200 {
		at, ok := inTime.Wake()
		if !ok || at > end {
			break
		}
		inTime.At(at)
		inTime.Run()
	}
	late.At(end)
	for late.Run() {
	}
	if inTime.aborting() || late.aborting() {
		return
	}
	for key, u := range d.m.State().Units() {
		if opened(u.Status) == 1 && u.Status != history.UnitRunning {
			if diff := cmp.Diff(firstOf(inTime.Records(), key), firstOf(late.Records(), key)); diff != "" {
				d.t.Fatalf("%s (-in time +at +%d):\n%s", key, end-beginning, diff)
			}
		}
	}
}

// firstOf tells what first happened to a unit, without when.
func firstOf(records []history.Record, unit string) string {
	for _, r := range records {
		if r.Event.Unit() == unit {
			if e, ok := r.Event.(history.RetryScheduled); ok {
				e.FireAtMS = 0
				r.Event = e
			}
			return fmt.Sprintf("%s %s", r.Event.Type(), history.AppendFields(nil, r.Event))
		}
	}
	return "nothing"
}

func (d *driver) checkTerminal() {
	m := d.m.Clone()
	m.At(math.MaxInt64 / 2)
	m.Cancel("late")
	if m.Run(); len(m.Records()) > 0 {
		d.t.Fatalf("a terminal execution decided %v", lines(m.Records()))
	}
	if _, ok := m.Wake(); ok {
		d.t.Fatal("a terminal execution has a wake-up")
	}
}

// windUp lets time pass until nothing is left to decide: an execution must not
// go on for ever by itself, and a cancelled one must end.
func (d *driver) windUp() {
	d.apply(func(m *Machine) { m.Cancel("the test is over") })
	for range 500 {
		if d.m.State().Status.Terminal() {
			d.checkFresh()
			d.checkTerminal()
			return
		}
		ready, children := d.units(history.UnitScheduled), d.units(history.UnitDispatched)
		switch {
		case len(ready) > 0 && history.IsCleanup(ready[0]):
			d.tokens++
			token := fmt.Sprintf("t%d", d.tokens)
			d.apply(func(m *Machine) {
				m.Dispatch(ready[0], history.StepDispatched{Token: token, WorkerID: "w", WorkerSession: "s"})
				m.Result(ready[0], token, Result{Output: `{"n":1}`})
			})
		case len(children) > 0 && d.m.State().Unit(children[0]).WithChild():
			d.apply(func(m *Machine) { m.ChildEnded(children[0], history.ChildID("e", children[0]), ChildEnd{}) })
		default:
			if _, ok := d.m.Wake(); !ok {
				d.t.Fatalf("the execution is %s and waits for nothing", d.m.State().Status)
			}
			d.toWake()
		}
	}
	d.t.Fatal("a cancelled execution does not end")
}

// dump is a machine's state and indexes in a form that can be compared.
func dump(m *Machine) string {
	var b strings.Builder
	b.Write(m.State().AppendJSON(nil))
	b.Write(m.State().AppendSnapshot(nil))
	fmt.Fprintf(&b, "\nmain %v done %d startable %x compensated %d\nopen", m.main, m.done, m.startable, m.compensated)
	m.open.tree.Scan(func(u openUnit) bool {
		fmt.Fprintf(&b, " %s=%s", m.key(u.ref), u.status)
		return true
	})
	for _, set := range []momentSet{m.headMoments, m.taskMoments} {
		b.WriteString("\nmoments")
		set.tree.Scan(func(at moment) bool {
			fmt.Fprintf(&b, " %s+%d", m.key(at.ref), at.atMS-beginning)
			return true
		})
	}
	for _, step := range slices.Sorted(maps.Keys(m.fans)) {
		if f := m.fans[step]; f.next > 0 {
			fmt.Fprintf(&b, "\nfan %d next %d open %d ok %d", step, f.next, f.open, f.ok)
		}
	}
	return b.String()
}
