package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"perigee/sdk/go/client"
)

// result is an order that has ended, with what the outside world knows of it.
type result struct {
	order           order
	state           *client.State
	events          []client.Event
	notes           []note
	bank, warehouse book
	checks          []check
}

// check is one thing that should be so.
type check struct {
	what    string
	finding finding
}

// finding is whether it is so, and what was found.
type finding struct {
	ok  bool
	got string
}

func found(ok bool, got string) finding { return finding{ok, got} }

func (c check) String() string {
	verdict := "ok    "
	if !c.finding.ok {
		verdict = "WRONG "
	}
	if c.finding.got == "" {
		return verdict + c.what
	}
	return fmt.Sprintf("%s%s (%s)", verdict, c.what, c.finding.got)
}

func (r *result) that(what string, f finding) { r.checks = append(r.checks, check{what, f}) }

func (r *result) ok() bool {
	for _, c := range r.checks {
		if !c.finding.ok {
			return false
		}
	}
	return len(r.checks) > 0
}

func (r *result) ended(want client.Status) {
	r.that("it ended "+string(want), found(r.state.Status == want, ifNot(r.state.Status == want, string(r.state.Status))))
}

func (r *result) chargedOnce() {
	charges := r.bank.with("charge")
	r.that("the bank's book has one charge", found(len(charges) == 1, charges.ids()))
}

func (r *result) shipped(n int) {
	parcels := r.warehouse.with("ship")
	r.that(fmt.Sprintf("the warehouse shipped %d", n), found(len(parcels) == n, parcels.ids()))
}

// comesBefore finds whether the first event of one type and step comes before
// the first of another; both have to be there.
func (r *result) comesBefore(type1, step1, type2, step2 string) finding {
	first, second := r.find(type1, step1), r.find(type2, step2)
	if first == nil || second == nil {
		return found(false, fmt.Sprintf("%s of %s or %s of %s is missing", type1, step1, type2, step2))
	}
	return found(first.Seq < second.Seq, fmt.Sprintf("events %d and %d", first.Seq, second.Seq))
}

func (r *result) find(eventType, step string) *client.Event {
	for i := range r.events {
		if e := &r.events[i]; e.Type == eventType && e.Step == step {
			return e
		}
	}
	return nil
}

// redelivered finds whether one attempt of a step went to these workers in
// turn, the second time marked as a redelivery.
func (r *result) redelivered(step string, workers ...string) finding {
	var got []string
	attempt, marked := uint32(0), false
	for _, e := range r.events {
		switch {
		case e.Step != step:
		case e.Type == "StepScheduled":
			marked = marked || e.Redelivery
			attempt = max(attempt, e.Attempt)
		case e.Type == "StepDispatched":
			got = append(got, e.WorkerID)
		}
	}
	ok := marked && attempt == 1 && slices.Equal(got, workers)
	return found(ok, fmt.Sprintf("attempt %d went to %s", attempt, strings.Join(got, ", ")))
}

// succeededAfterOutage finds whether a step succeeded once the server was back
// from the outage that the first note tells of.
func (r *result) succeededAfterOutage(step string) finding {
	e := r.find("StepSucceeded", step)
	if e == nil || len(r.notes) == 0 {
		return found(false, "it did not succeed")
	}
	late := time.UnixMilli(e.TimestampMS).Sub(r.notes[0].at)
	return found(late >= outage, fmt.Sprintf("%.1f s after the kill", late.Seconds()))
}

// gapless finds whether the sequence numbers are 1, 2, 3 … up to a terminal
// event.
func gapless(events []client.Event) finding {
	for i := range events {
		if events[i].Seq != uint64(i+1) {
			return found(false, fmt.Sprintf("event %d has number %d", i+1, events[i].Seq))
		}
	}
	if len(events) == 0 || !events[len(events)-1].Terminal() {
		return found(false, "no end")
	}
	return found(true, fmt.Sprintf("%d events", len(events)))
}

// ifNot is text where something is not so.
func ifNot(ok bool, text string) string {
	if ok {
		return ""
	}
	return text
}
