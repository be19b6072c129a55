package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"perigee/sdk/go/client"
)

// outage is how long the killed server stays away: longer than the charge
// under way, so that the worker ends it meanwhile and has to keep its result.
const outage = 4 * time.Second

// order is one act: an order, what is done to its world meanwhile, and how it
// should end.
type order struct {
	id, story string
	total     int
	card      string
	skus      []string
	meanwhile func(ctx context.Context, s *stage, id string) error // nil: nothing
	expect    func(r *result)
}

func orders() []order {
	return []order{
		{
			id: "order-1", story: "all goes well", total: 80, card: "tok_visa", skus: []string{"teapot", "kettle"},
			expect: func(r *result) {
				r.ended(client.Completed)
				r.chargedOnce()
				r.shipped(2)
			},
		},
		{
			id: "order-2", story: "the card is declined: everything is undone in reverse order", total: 120, card: "tok_declined",
			skus:   []string{"teapot", "kettle", "samovar"},
			expect: expectUndone,
		},
		{
			id: "order-3", story: "over 1000: it waits for an approval, which comes as a signal", total: 2400, card: "tok_visa",
			skus: []string{"espresso-machine"}, meanwhile: approve,
			expect: func(r *result) {
				r.ended(client.Completed)
				r.that("it was approved before it was charged", r.comesBefore("SignalDelivered", "approve", "StepScheduled", "charge"))
				r.chargedOnce()
				r.shipped(1)
			},
		},
		{
			id: "order-4", story: "the worker is killed with -9 while it charges; another one takes over", total: 60, card: "tok_slow_bank",
			skus: []string{"teapot"}, meanwhile: killWorker,
			expect: func(r *result) {
				r.ended(client.Completed)
				r.that("the same attempt was handed out again, to payments-2", r.redelivered("charge", "payments-1", "payments-2"))
				r.chargedOnce()
				r.shipped(1)
			},
		},
		{
			id: "order-5", story: "the server is killed with -9 while a worker charges, and started again", total: 90, card: "tok_slow_bank",
			skus: []string{"teapot", "kettle"}, meanwhile: killServer,
			expect: func(r *result) {
				r.ended(client.Completed)
				r.that("the charge ended under the new server", r.succeededAfterOutage("charge"))
				r.chargedOnce()
				r.shipped(2)
			},
		},
	}
}

func (o order) input() json.RawMessage {
	type item struct {
		SKU      string `json:"sku"`
		Quantity int    `json:"quantity"`
	}
	in := struct {
		OrderID string `json:"order_id"`
		Total   int    `json:"total"`
		Card    string `json:"card"`
		Items   []item `json:"items"`
	}{OrderID: o.id, Total: o.total, Card: o.card}
	for _, sku := range o.skus {
		in.Items = append(in.Items, item{sku, 1})
	}
	text, err := json.Marshal(in)
	if err != nil {
		panic(err) // strings and numbers
	}
	return text
}

// play runs one order, prints its timeline and tells whether it ended as it
// should.
func (s *stage) play(ctx context.Context, number int, o order) (bool, error) {
	fmt.Printf("\n%d. %s: %s\n", number, o.id, o.story)
	s.notes = nil
	if _, err := s.client.Start(ctx, client.StartRequest{Workflow: "order-fulfilment", ExecutionID: o.id, Input: o.input()}); err != nil {
		return false, err
	}
	if o.meanwhile != nil {
		if err := o.meanwhile(ctx, s, o.id); err != nil {
			return false, err
		}
	}
	state, err := s.client.Wait(ctx, o.id)
	if err != nil {
		return false, err
	}
	var events []client.Event
	for e, err := range s.client.Events(ctx, o.id, false) {
		if err != nil {
			return false, err
		}
		events = append(events, e)
	}
	for _, line := range timeline(events, s.notes) {
		fmt.Println("  " + line)
	}
	r := &result{order: o, state: state, events: events, notes: s.notes}
	if r.bank, err = readBook(s.bankBook(), o.id); err != nil {
		return false, err
	}
	if r.warehouse, err = readBook(s.warehouseBook(), o.id); err != nil {
		return false, err
	}
	r.that("its history has no gap", gapless(events))
	o.expect(r)
	for _, c := range r.checks {
		fmt.Println("  " + c.String())
	}
	return r.ok(), nil
}

// approve sends the signal once the order waits for it.
func approve(ctx context.Context, s *stage, id string) error {
	for e, err := range s.client.Events(ctx, id, true) {
		if err != nil {
			return err
		}
		if e.Type == "SignalAwaitStarted" {
			break
		}
	}
	if err := pause(ctx, 500*time.Millisecond); err != nil { // a person thinks
		return err
	}
	s.note("a person approves")
	_, err := s.client.Signal(ctx, id, "approval", json.RawMessage(`{"approved":true,"by":"kim"}`), id+"-approval")
	return err
}

// charging waits until the bank has booked the order's charge, which its
// worker has not reported yet.
func charging(ctx context.Context, s *stage, id string) error {
	return s.until(ctx, "the bank has booked the charge of "+id, func() (bool, error) {
		book, err := readBook(s.bankBook(), id)
		return len(book.with("charge")) > 0, err
	})
}

func killWorker(ctx context.Context, s *stage, id string) error {
	if err := charging(ctx, s, id); err != nil {
		return err
	}
	s.payments.kill()
	s.note("payments-1 (pid %d) is killed with -9; the bank has booked, the server does not know", s.payments.pid())
	if err := s.startPayments("payments-2"); err != nil {
		return err
	}
	s.note("payments-2 is started in its place")
	return nil
}

func killServer(ctx context.Context, s *stage, id string) error {
	if err := charging(ctx, s, id); err != nil {
		return err
	}
	s.server.kill()
	s.note("the server (pid %d) is killed with -9; the worker charges on", s.server.pid())
	if err := pause(ctx, outage); err != nil {
		return err
	}
	if err := s.restartServer(ctx); err != nil {
		return err
	}
	s.note("a new server (pid %d) opens the same database", s.server.pid())
	return nil
}

// expectUndone is the end of an order whose card is declined.
func expectUndone(r *result) {
	r.ended(client.Failed)
	code := ""
	if r.state.Error != nil {
		code = r.state.Error.Code
	}
	r.that("because of CARD_DECLINED", found(code == "CARD_DECLINED", code))
	r.that("nothing was charged", found(len(r.bank.with("charge")) == 0, r.bank.with("charge").ids()))
	var done []string // what the history says was done, newest first
	for _, e := range r.events {
		if id := madeBy(e); id != "" {
			done = append([]string{id}, done...)
		}
	}
	undone := r.warehouse.with("release", "void").objects()
	r.that("the warehouse undid all, newest first", found(strings.Join(done, " ") == undone && len(done) >= 3, undone))
	r.that("people were told, once", found(len(r.bank.with("alert")) == 1, r.bank.with("alert").ids()))
}

// madeBy is the id of the reservation or label that a step made, or "".
func madeBy(e client.Event) string {
	if e.Type != "StepSucceeded" {
		return ""
	}
	var out struct{ Reservation, Label string }
	if json.Unmarshal(e.Output, &out) != nil {
		return ""
	}
	return out.Reservation + out.Label
}
