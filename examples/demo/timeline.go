package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"perigee/sdk/go/client"
)

const (
	// slow is from when on a dispatch gets a line of its own beside its end.
	slow = 500 * time.Millisecond
	// maxValue is how many characters of a value are shown.
	maxValue = 60
)

// line is one line of a timeline.
type line struct {
	atMS int64
	what string // the unit
	text string
}

// timeline tells a history to a person: one line for what matters, times from
// the start, with what the demo did in between.
func timeline(events []client.Event, notes []note) []string {
	if len(events) == 0 {
		return nil
	}
	var lines []line
	for _, n := range notes { // first, since a note is the cause of what has its time
		lines = append(lines, line{n.at.UnixMilli(), "", "-- " + n.text + " --"})
	}
	for i := range events {
		if what, text := describe(events, i); text != "" {
			lines = append(lines, line{events[i].TimestampMS, what, text})
		}
	}
	sort.SliceStable(lines, func(i, j int) bool { return lines[i].atMS < lines[j].atMS })
	start := events[0].TimestampMS
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = fmt.Sprintf("%6.2f s  %-16s %s", float64(l.atMS-start)/1000, l.what, l.text)
	}
	return out
}

// describe gives the unit and the text of event i; no text: it has no line.
func describe(events []client.Event, i int) (what, text string) {
	e := &events[i]
	what = unitName(e.Step)
	switch e.Type {
	case "WorkflowCreated":
		return "", fmt.Sprintf("%s %s starts", e.Workflow, e.Version)
	case "StepScheduled":
		return what, ifNot(!e.Redelivery, fmt.Sprintf("attempt %d is handed out again", e.Attempt))
	case "StepDispatched":
		if quickly(events, i) {
			return what, ""
		}
		return what, "taken by " + e.WorkerID
	case "StepSucceeded":
		return what, succeeded(events, i)
	case "StepAttemptFailed":
		return what, fmt.Sprintf("attempt %d failed: %s", e.Attempt, failure(e.Error))
	case "StepAttemptUncertain":
		return what, fmt.Sprintf("attempt %d is lost: %s", e.Attempt, e.Reason)
	case "RetryScheduled":
		return what, fmt.Sprintf("attempt %d follows in %.1f s", e.NextAttempt, float64(e.DelayMS)/1000)
	case "StepFailed":
		return what, "FAILED"
	case "StepRecovered":
		return what, "recovered from " + failure(e.Error)
	case "StepSkipped":
		return what, "skipped: " + e.Reason
	case "StepCancelled":
		return what, "cancelled"
	case "SignalAwaitStarted":
		return what, "waits for the signal " + e.Signal
	case "SignalReceived":
		return "", "signal " + e.Name + " " + brief(e.Payload)
	case "SignalDelivered":
		return what, "has its signal"
	case "CancelRequested":
		return "", "cancel requested: " + e.Reason
	case "CompensationStarted":
		return "", "undo, newest first: " + strings.Join(e.Steps, ", ")
	case "CompensationCompleted":
		return "", "all is undone"
	case "CompensationFailed":
		return what, "could not be undone: " + failure(e.Error)
	case "WorkflowCompleted":
		return "", "COMPLETED " + brief(e.Output)
	case "WorkflowFailed":
		return "", "FAILED " + failure(e.Error)
	case "WorkflowCancelled":
		return "", "CANCELLED"
	case "WorkflowTimedOut":
		return "", "TIMED OUT"
	}
	return what, ""
}

// succeeded tells who did it and how long it took; what no worker did (a
// computed value, the end of a `for` step) tells its value alone.
func succeeded(events []client.Event, i int) string {
	e := &events[i]
	for j := i - 1; j >= 0; j-- {
		if d := &events[j]; d.Type == "StepDispatched" && d.Step == e.Step {
			return strings.TrimSpace(fmt.Sprintf("done by %s in %d ms  %s", d.WorkerID, e.TimestampMS-d.TimestampMS, brief(e.Output)))
		}
	}
	for j := i - 1; j >= 0; j-- {
		if events[j].Type == "StepFanOut" && events[j].Step == e.Step {
			return fmt.Sprintf("%d of %[1]d done", len(events[j].Items))
		}
	}
	return "is " + brief(e.Output)
}

// quickly reports whether the dispatch i succeeded soon, so that the line of
// its end says it all.
func quickly(events []client.Event, i int) bool {
	d := &events[i]
	for j := i + 1; j < len(events); j++ {
		if e := &events[j]; e.Step == d.Step {
			return e.Type == "StepSucceeded" && e.TimestampMS-d.TimestampMS < slow.Milliseconds()
		}
	}
	return false
}

// unitName says "undo x" for compensations and "on_failure x" for handlers.
func unitName(key string) string {
	if rest, is := strings.CutPrefix(key, "compensate:"); is {
		return "undo " + rest
	}
	return strings.Replace(key, ":", " ", 1)
}

func failure(e *client.TaskError) string {
	if e == nil {
		return ""
	}
	return e.Code + ": " + e.Message
}

// brief is a value on one short line; {} and null are not worth it.
func brief(v json.RawMessage) string {
	var buf bytes.Buffer
	if json.Compact(&buf, v) != nil {
		return ""
	}
	text := []rune(buf.String())
	if s := string(text); s == "{}" || s == "null" {
		return ""
	}
	if len(text) > maxValue {
		return string(text[:maxValue-1]) + "…"
	}
	return string(text)
}
