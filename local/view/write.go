package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"perigee/engine/history"
	"perigee/local/console"
)

// Options say how to write a view.
type Options struct {
	Paint console.Palette
	Zone  *time.Location // nil: UTC
	All   bool           // every element of every `for`, and whole values
}

// manyElements is from where on the elements of a `for` are folded: only those
// that are under way or went wrong are listed, at most shownElements of them.
const (
	manyElements  = 5
	shownElements = 10
)

// Write writes the view as text: a headline, the steps, what is undone, the
// handlers and how it ended.
func Write(out io.Writer, e *Execution, o Options) error {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	t := &writer{words: words{e, o.Zone}, o: o}
	t.headline()
	t.section("", e.Steps)
	if len(e.Undo) > 0 {
		t.section("Undone in reverse order", e.Undo)
	}
	if len(e.Handlers) > 0 {
		t.section("After that, on_"+e.handlerKind(), e.Handlers)
	}
	t.signals()
	t.ending()
	_, err := io.WriteString(out, t.b.String())
	return err
}

func (e *Execution) handlerKind() string {
	if e.State.Handlers != nil {
		return e.State.Handlers.Kind
	}
	kind, _, _ := strings.Cut(e.Handlers[0].Key, ":")
	return strings.TrimPrefix(kind, handlerPrefix)
}

type writer struct {
	words
	o Options
	b strings.Builder
}

func (t *writer) line(format string, args ...any) { fmt.Fprintf(&t.b, format+"\n", args...) }

// headline says what it is, how it stands and since when.
func (t *writer) headline() {
	s, paint := t.e.State, t.o.Paint
	end, verb := t.e.NowMS, "for"
	if s.FinishedAtMS != nil {
		end, verb = *s.FinishedAtMS, "after"
	}
	t.line("%s  %s@%s  %s %s %s", paint.Text(console.Bold, s.ID), s.Workflow, s.Version,
		paint.Text(StatusStyle(string(s.Status)), string(s.Status)), verb, console.Duration(end-t.e.StartedMS))
	line := fmt.Sprintf("started %s, %d events", console.Moment(t.e.StartedMS, t.zone), s.LastSeq)
	if t.e.EndsAtMS > 0 {
		line += ", times out " + t.until(t.e.EndsAtMS)
	}
	if s.Parent != nil {
		line += fmt.Sprintf(", child of %s (%s)", s.Parent.ExecutionID, s.Parent.Step)
	}
	t.line("%s", paint.Text(console.Dim, line))
	if a := s.Abort; a != nil && !s.Status.Terminal() {
		t.line("%s", paint.Text(console.Yellow, "winding down: "+abortText(a)))
	}
	if s.Unknown > 0 {
		t.line("%s", paint.Text(console.Yellow, fmt.Sprintf("%d events are of a newer release and not shown", s.Unknown)))
	}
}

func abortText(a *history.Abort) string {
	switch a.Kind {
	case history.AbortFailed:
		return failure(a.Error)
	case history.AbortTimedOut:
		return "it ran out of time"
	}
	if a.Reason == "" {
		return "cancelled"
	}
	return "cancelled: " + brief(a.Reason)
}

// StatusStyle is how the status of an execution or a step is shown.
func StatusStyle(status string) console.Style {
	switch status {
	case "COMPLETED", "SUCCEEDED":
		return console.Green
	case "FAILED", "TIMED_OUT":
		return console.Red
	case "COMPENSATING", "RETRY_WAIT", "ATTEMPT_FAILED", "UNCERTAIN", "CANCELLED":
		return console.Yellow
	case "PENDING", "SKIPPED":
		return console.Dim
	}
	return console.Cyan
}

// statusWords are the statuses of steps for people.
var statusWords = map[history.UnitStatus]string{
	history.UnitPending:       "not begun",
	history.UnitRunning:       "running",
	history.UnitScheduled:     "ready",
	history.UnitDispatched:    "running",
	history.UnitAttemptFailed: "failed once",
	history.UnitUncertain:     "worker lost",
	history.UnitRetryWait:     "retry",
	history.UnitWaiting:       "waiting",
	history.UnitSucceeded:     "done",
	history.UnitSkipped:       "skipped",
	history.UnitFailed:        "failed",
	history.UnitCancelled:     "cancelled",
}

// section writes a table of steps, with their attempts and elements.
func (t *writer) section(title string, steps []*Step) {
	t.line("")
	if title != "" {
		t.line("%s", t.o.Paint.Text(console.Bold, title))
	}
	var table console.Table
	if len(steps) == 0 {
		t.line("%s", t.o.Paint.Text(console.Dim, "no step has begun; the definition was not found"))
		return
	}
	for _, s := range steps {
		t.step(&table, s, "")
	}
	_ = table.Write(&t.b, t.o.Paint, "") // a strings.Builder takes all
}

// step adds a line for a step, and below it what there is to say.
func (t *writer) step(table *console.Table, s *Step, indent string) {
	status := s.Status()
	word := statusWords[status]
	if status == history.UnitPending && (t.e.State.Abort != nil || t.e.State.Status.Terminal()) && !isUndo(s.Key) {
		word = "never begun"
	}
	style := StatusStyle(status.String())
	table.Cells(
		console.Cell{Text: mark(status), Style: style},
		console.Cell{Text: indent + shortKey(s.Key)},
		console.Cell{Text: word, Style: style},
		console.Cell{Text: t.took(s), Style: console.Dim},
		console.Cell{Text: t.about(s)},
	)
	for _, a := range t.worthShowing(s) {
		table.Cells(console.Cell{}, console.Cell{Text: indent + "  " + attemptName(a), Style: console.Dim}, console.Cell{Text: outcomeWord(a), Style: console.Dim},
			console.Cell{Text: t.attemptTook(a), Style: console.Dim}, console.Cell{Text: attemptText(a), Style: console.Dim})
	}
	t.elements(table, s, indent+"  ")
}

// shortKey is a key without what the title of its section says.
func shortKey(key string) string {
	if isHandler(key) {
		_, key, _ = strings.Cut(key, ":")
	}
	return strings.TrimPrefix(key, undoPrefix)
}

func mark(s history.UnitStatus) string {
	switch s {
	case history.UnitSucceeded:
		return "✓"
	case history.UnitFailed:
		return "✗"
	case history.UnitSkipped, history.UnitCancelled:
		return "–"
	case history.UnitPending:
		return "·"
	case history.UnitRetryWait, history.UnitAttemptFailed, history.UnitUncertain:
		return "↻"
	}
	return "▸"
}

// took is how long the step has taken.
func (t *writer) took(s *Step) string {
	switch {
	case s.BeganMS == 0 || s.Status() == history.UnitSkipped:
		return ""
	case s.EndedMS > 0:
		return console.Duration(s.EndedMS - s.BeganMS)
	}
	return console.Duration(t.e.NowMS - s.BeganMS)
}

func (t *writer) attemptTook(a Attempt) string {
	if a.ToMS == 0 {
		return console.Duration(t.e.NowMS - a.FromMS)
	}
	return console.Duration(a.ToMS - a.FromMS)
}

// about is the remark behind a step.
func (t *writer) about(s *Step) string {
	switch u := s.Unit; s.Status() {
	case history.UnitSkipped:
		return s.Skipped
	case history.UnitFailed:
		return failure(u.Error)
	case history.UnitCancelled:
		return ""
	case history.UnitSucceeded:
		return t.aboutSuccess(s, u)
	}
	if len(s.Elements) > 0 {
		return t.counts(s)
	}
	return t.doing(s)
}

func (t *writer) aboutSuccess(s *Step, u *history.Unit) string {
	switch {
	case u.Recovered:
		return "caught " + failure(u.Error)
	case len(s.Elements) > 0:
		return t.counts(s)
	case len(s.Attempts) == 1 && s.Attempts[0].Outcome == Succeeded && !strings.HasPrefix(text(u.WorkerSession), childSession):
		return "by " + s.Attempts[0].Worker
	case strings.HasPrefix(text(u.WorkerSession), childSession):
		return "child execution " + strings.TrimPrefix(text(u.WorkerSession), childSession)
	}
	return ""
}

// counts says how the elements of a `for` stand.
func (t *writer) counts(s *Step) string {
	var done, failed, running, waiting, rest int
	for _, el := range s.Elements {
		switch el.Status() {
		case history.UnitSucceeded:
			done++
		case history.UnitFailed:
			failed++
		case history.UnitDispatched:
			running++
		case history.UnitScheduled, history.UnitRetryWait, history.UnitAttemptFailed, history.UnitUncertain:
			waiting++
		default:
			rest++
		}
	}
	parts := []string{fmt.Sprintf("%d of %d done", done, len(s.Elements))}
	for _, c := range []struct {
		n    int
		word string
	}{{running, "running"}, {waiting, "waiting"}, {failed, "failed"}, {rest, "not begun or cancelled"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	return strings.Join(parts, ", ")
}

// elements lists the elements of a `for`: all of few; of many, those that are
// under way or went wrong.
func (t *writer) elements(table *console.Table, s *Step, indent string) {
	all := t.o.All || len(s.Elements) <= manyElements
	shown := 0
	for _, el := range s.Elements {
		if all || shown < shownElements && remarkable(el) {
			t.step(table, el, indent)
			shown++
		}
	}
	if left := len(s.Elements) - shown; left > 0 {
		table.Cells(console.Cell{}, console.Cell{Text: fmt.Sprintf("%s… %d more (--all)", indent, left), Style: console.Dim}, console.Cell{})
	}
}

func remarkable(s *Step) bool {
	switch s.Status() {
	case history.UnitSucceeded, history.UnitPending, history.UnitSkipped, history.UnitCancelled:
		return false
	}
	return true
}

// worthShowing are the attempts of a step, but for what its own line says: how
// one alone went well, and what the engine said of its failure.
func (t *writer) worthShowing(s *Step) []Attempt {
	list := s.Attempts
	if n := len(list); n > 0 && list[n-1].Worker == "" && (s.Status() == history.UnitFailed || s.Unit != nil && s.Unit.Recovered) {
		list = list[:n-1]
	}
	if len(list) == 1 {
		switch list[0].Outcome {
		case Succeeded, UnderWay, Cancelled:
			return nil
		}
	}
	return list
}

func attemptName(a Attempt) string {
	name := fmt.Sprintf("attempt %d", a.Number)
	if a.Redelivery {
		name += " again"
	}
	return name
}

func outcomeWord(a Attempt) string {
	if a.Outcome == UnderWay {
		return "running"
	}
	return string(a.Outcome)
}

// attemptText says who had an attempt and how it went. Where nobody had it the
// engine speaks itself: no signal or no worker came in time, for example.
func attemptText(a Attempt) string {
	switch {
	case a.Worker == "":
		return failure(a.Error)
	case a.Late:
		return a.Worker + ", after it had been given up"
	case a.Error != nil:
		return a.Worker + ": " + failure(a.Error)
	case a.Reason != "":
		return a.Worker + ": " + brief(a.Reason)
	}
	return a.Worker
}

// signals lists what nobody has taken yet.
func (t *writer) signals() {
	if len(t.e.Signals) == 0 {
		return
	}
	t.line("\n%s", t.o.Paint.Text(console.Bold, "Signals that no step has taken"))
	var table console.Table
	for _, signal := range t.e.Signals {
		table.Row(signal.Name, console.Near(signal.ReceivedAtMS, t.e.NowMS, t.zone), brief(string(signal.Payload)))
	}
	_ = table.Write(&t.b, t.o.Paint, "  ")
}

// ending says how it ended.
func (t *writer) ending() {
	s := t.e.State
	if !s.Status.Terminal() {
		return
	}
	t.line("")
	if s.Status == history.Completed {
		output := string(s.Output.OrNull())
		if !t.o.All {
			output = console.Cut(output, 500)
		}
		t.line("output  %s", console.Printable(output))
		return
	}
	switch {
	case s.Error != nil:
		t.line("error   %s", t.o.Paint.Text(console.Red, failure(s.Error)))
	case s.Abort != nil:
		t.line("reason  %s", abortText(s.Abort))
	}
	if s.Compensation != nil {
		t.line("undone  %s", undoneText(*s.Compensation, t.e))
	}
}

// undoneText says what was undone, and of which steps nobody knows whether they
// were done: these may have left something behind.
func undoneText(c history.CompensationOutcome, e *Execution) string {
	open := e.unknown()
	text := "not everything: see the failed steps above"
	switch {
	case c == history.CompensationNone:
		text = "there was nothing to undo"
	case c == history.CompensationDone && len(open) == 0:
		text = "all that has a compensation"
	case c == history.CompensationDone:
		text = some(e.State.CompensationOrder, namedSteps)
	}
	switch len(open) {
	case 0:
		return text
	case 1:
		return text + "; the outcome of " + open[0] + " is unknown"
	}
	return text + "; the outcomes of " + some(open, namedSteps) + " are unknown"
}

// namedSteps is how many steps a line names before it counts the rest.
const namedSteps = 5

// unknown names the steps and elements of which an attempt may have done the
// task although it was not seen to succeed, and that nothing undid.
func (e *Execution) unknown() []string {
	var keys []string
	for _, s := range e.Steps {
		for _, one := range append([]*Step{s}, s.Elements...) {
			u := one.Unit
			if u != nil && u.OutcomeUnknown && u.SucceededSeq == nil && !slices.Contains(e.State.CompensationOrder, one.Key) {
				keys = append(keys, one.Key)
			}
		}
	}
	return keys
}
