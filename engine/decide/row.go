package decide

import (
	"perigee/engine/definition"
	"perigee/engine/history"
)

// HTTPQueue is the queue of the built-in task http.request; the server itself
// claims from it.
const HTTPQueue = "http.request@1.0.0/builtin"

// BuiltinTimeoutMS bounds an attempt of a built-in task whose step sets no
// timeout, and is more than a call of http.request ever takes.
const BuiltinTimeoutMS = 5 * 60_000

// QueueRow is what the queue needs to know of a ready unit, beside its state.
type QueueRow struct {
	Queue           string
	TaskName        string
	ContractVersion string
	TimeoutMS       int64 // of the attempt
	QueueDueMS      int64 // when its queue time-out passes, 0: never
}

// Row gives the queue's view of a unit that waits for a worker or is with
// one; false for units that never have a task row.
func (m *Machine) Row(unit string) (QueueRow, bool) {
	r, ok := m.locate(unit)
	if !ok {
		return QueueRow{}, false
	}
	c, u := m.call(r), m.state.Unit(unit)
	if c == nil || c.Workflow != "" || u == nil || u.Status != history.UnitScheduled && u.Status != history.UnitDispatched {
		return QueueRow{}, false
	}
	row := queueOf(c)
	v := m.vars(r)
	v.NowMS = deref(u.ScheduledAtMS)
	attempt, queue, fail := m.callTimes(c, v)
	if fail == nil {
		row.TimeoutMS = attempt
		if queue > 0 {
			row.QueueDueMS = addMS(deref(u.ScheduledAtMS), queue)
		}
	}
	return row, true
}

func queueOf(c *definition.Call) QueueRow {
	if c.Builtin != "" {
		return QueueRow{Queue: HTTPQueue, TaskName: c.Builtin, ContractVersion: "1.0.0"}
	}
	return QueueRow{Queue: c.Task.Queue(), TaskName: c.Task.Name, ContractVersion: c.Task.Version}
}

// Calls names what a unit calls: a task, or a child workflow as name@version; ""
// where it calls nothing.
func (m *Machine) Calls(unit string) string {
	r, ok := m.locate(unit)
	if c := m.call(r); ok && c != nil {
		return c.Name()
	}
	return ""
}

// AtMostOnce reports whether a unit's attempts must never be repeated.
func (m *Machine) AtMostOnce(unit string) bool {
	r, ok := m.locate(unit)
	c := m.call(r)
	return ok && c != nil && c.AtMostOnce
}

// Startable reports whether a ready unit may be handed out now: an execution
// that winds down hands out cleanup units only, and a queue time-out that has
// passed is not undone.
func (m *Machine) Startable(unit string) bool {
	r, ok := m.locate(unit)
	u := m.state.Unit(unit)
	if !ok || u == nil || u.Status != history.UnitScheduled || m.state.Status.Terminal() {
		return false
	}
	at, _, due := m.momentOf(r, u)
	return (!m.aborting() || r.cleanup()) && (!due || at > m.now)
}
