package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"perigee/engine/definition"
	"perigee/engine/history"
	"perigee/local/console"
)

// Prefixes of worker sessions that are no workers.
const (
	childSession   = "child:"
	builtinSession = "builtin:"
)

// words are the sentences about what a step does or waits for.
type words struct {
	e    *Execution
	zone *time.Location
}

// since is ", since 12s".
func (w words) since(ms int64) string {
	if ms == 0 {
		return ""
	}
	return ", since " + console.Duration(w.e.NowMS-ms)
}

// until is "15:04:05 (in 20s)", or says that the moment has passed.
func (w words) until(ms int64) string {
	if left := ms - w.e.NowMS; left >= 0 {
		return fmt.Sprintf("%s (in %s)", console.Near(ms, w.e.NowMS, w.zone), console.Duration(left))
	}
	return fmt.Sprintf("%s (due %s ago)", console.Near(ms, w.e.NowMS, w.zone), console.Duration(w.e.NowMS-ms))
}

// doing says what an unresolved step does or waits for.
func (w words) doing(s *Step) string {
	u := s.Unit
	switch s.Status() {
	case history.UnitPending:
		return w.notBegun(s)
	case history.UnitScheduled:
		return w.ready(s)
	case history.UnitDispatched:
		return w.dispatched(s, u)
	case history.UnitRetryWait:
		return w.retry(s, u)
	case history.UnitWaiting:
		return w.waiting(s, u)
	case history.UnitRunning:
		return ""
	}
	return "to be decided" + w.since(s.ChangeMS)
}

func (w words) notBegun(s *Step) string {
	if isUndo(s.Key) {
		return "waits its turn"
	}
	if w.e.State.Abort != nil && !isHandler(s.Key) || w.e.State.Status.Terminal() {
		return ""
	}
	if len(s.WaitsFor) == 0 {
		return "waits its turn"
	}
	return "waits for " + some(s.WaitsFor, 3)
}

// some joins names, and counts those past the first n.
func some(names []string, n int) string {
	if len(names) <= n+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// ready says which worker a task waits for, and whether there is one.
func (w words) ready(s *Step) string {
	c := call(s)
	again := ""
	if s.Unit.Attempt > 1 {
		again = fmt.Sprintf(", attempt %d", s.Unit.Attempt)
	}
	if s.Unit.Redelivery {
		again += ", again because its worker was lost"
	}
	if c == nil || c.Task == nil {
		return "waiting for a worker" + w.since(s.ChangeMS) + again
	}
	return "waiting for a worker that offers " + queue(c.Task) + w.since(s.ChangeMS) + again + w.nobody(c.Task)
}

func queue(c *definition.Contract) string {
	if c.Language == "any" {
		return c.Name + "@" + c.Version
	}
	return c.Queue()
}

// nobody says that no known worker takes the task.
func (w words) nobody(c *definition.Contract) string {
	if w.e.Workers == nil {
		return ""
	}
	offline := false
	for _, worker := range w.e.Workers {
		if !slices.Contains(worker.Tasks, c.Name+"@"+c.Version) || c.Language != "any" && c.Language != worker.Runtime {
			continue
		}
		if worker.Online {
			return ""
		}
		offline = true
	}
	if offline {
		return "; the workers that did are offline"
	}
	return "; no worker does"
}

// call is what the step calls: its compensation for one that undoes.
func call(s *Step) *definition.Call {
	switch {
	case s.Def == nil:
		return nil
	case isUndo(s.Key):
		return s.Def.Compensate
	}
	return s.Def.Call
}

func (w words) dispatched(s *Step, u *history.Unit) string {
	var b strings.Builder
	session, worker := text(u.WorkerSession), text(u.WorkerID)
	if child, ok := strings.CutPrefix(session, childSession); ok {
		fmt.Fprintf(&b, "child execution %s", child)
	} else if strings.HasPrefix(session, builtinSession) {
		b.WriteString("run by the server")
	} else {
		fmt.Fprintf(&b, "with worker %s", worker)
	}
	b.WriteString(w.since(number(u.DispatchedAtMS)))
	b.WriteString(w.silence(worker))
	if u.Attempt > 1 {
		fmt.Fprintf(&b, ", attempt %d", u.Attempt)
	}
	if u.Redelivery {
		b.WriteString(", handed out again")
	}
	if u.DeadlineMS != nil {
		fmt.Fprintf(&b, ", deadline %s", w.until(*u.DeadlineMS))
	}
	if w.e.State.Abort != nil && !isUndo(s.Key) && !isHandler(s.Key) {
		b.WriteString("; asked to stop")
	}
	if !u.Progress.IsNull() {
		b.WriteString("; progress " + brief(string(u.Progress)))
	}
	return b.String()
}

// silence says of a worker that has a task how long nothing came from it, once
// that is longer than its sessions last.
func (w words) silence(id string) string {
	for _, worker := range w.e.Workers {
		if worker.ID == id && !worker.Online {
			return ", silent for " + console.Duration(w.e.NowMS-worker.LastSeenMS)
		}
	}
	return ""
}

func (w words) retry(s *Step, u *history.Unit) string {
	next := u.Attempt + 1
	if n := len(s.Attempts); n > 0 {
		next = s.Attempts[n-1].Number + 1
	}
	return fmt.Sprintf("attempt %d at %s", next, w.until(number(u.WakeAtMS)))
}

func (w words) waiting(s *Step, u *history.Unit) string {
	if u.Signal == "" {
		return fmt.Sprintf("sleeps until %s", w.until(number(u.WakeAtMS)))
	}
	line := "waiting for signal " + u.Signal + w.since(s.ChangeMS)
	if u.WakeAtMS != nil {
		line += ", until " + w.until(*u.WakeAtMS)
	}
	return line
}

// failure is an error on one line.
func failure(e *history.TaskError) string {
	if e == nil {
		return ""
	}
	line := e.Code
	if e.Message != "" {
		line += ": " + e.Message
	}
	return console.Cut(console.Printable(line), 300)
}

// brief is a value on one line, cut where it is long.
func brief(value string) string { return console.Cut(console.Printable(value), 100) }

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func number(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}
