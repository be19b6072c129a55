package main

import (
	"context"
	"fmt"
	"log"

	"perigee/sdk/go/worker"
)

// warehouse is what this worker does. Every action goes through the ledger
// under the task's idempotency key, so that it is done once however often the
// task is handed out.
type warehouse struct{ book *ledger }

// reserve takes an item off the shelf. No order gets the last unicorn.
func (w warehouse) reserve(_ context.Context, t *worker.Task) (any, error) {
	var in struct {
		Order    string
		SKU      string
		Quantity int
	}
	if err := t.Decode(&in); err != nil {
		return nil, err
	}
	if in.SKU == "unicorn" {
		return nil, worker.Fail("OUT_OF_STOCK", fmt.Sprintf("no %s on the shelves", in.SKU), nil)
	}
	id, err := w.book.once(t.IdempotencyKey, entry{Action: "reserve", Order: in.Order, What: in.SKU})
	if err != nil {
		return nil, err
	}
	log.Printf("%s: reserved %d x %s: %s", in.Order, in.Quantity, in.SKU, id)
	return map[string]string{"reservation": id}, nil
}

func (w warehouse) release(_ context.Context, t *worker.Task) (any, error) {
	var in struct{ Order, Reservation string }
	if err := t.Decode(&in); err != nil {
		return nil, err
	}
	if _, err := w.book.once(t.IdempotencyKey, entry{Action: "release", Order: in.Order, What: in.Reservation}); err != nil {
		return nil, err
	}
	log.Printf("%s: put %s back", in.Order, in.Reservation)
	return nil, nil
}

func (w warehouse) label(_ context.Context, t *worker.Task) (any, error) {
	var in struct{ Order string }
	if err := t.Decode(&in); err != nil {
		return nil, err
	}
	id, err := w.book.once(t.IdempotencyKey, entry{Action: "label", Order: in.Order})
	if err != nil {
		return nil, err
	}
	log.Printf("%s: printed %s", in.Order, id)
	return map[string]string{"label": id}, nil
}

func (w warehouse) void(_ context.Context, t *worker.Task) (any, error) {
	var in struct{ Order, Label string }
	if err := t.Decode(&in); err != nil {
		return nil, err
	}
	if _, err := w.book.once(t.IdempotencyKey, entry{Action: "void", Order: in.Order, What: in.Label}); err != nil {
		return nil, err
	}
	log.Printf("%s: voided %s", in.Order, in.Label)
	return nil, nil
}

func (w warehouse) ship(_ context.Context, t *worker.Task) (any, error) {
	var in struct{ Order, SKU, Label string }
	if err := t.Decode(&in); err != nil {
		return nil, err
	}
	id, err := w.book.once(t.IdempotencyKey, entry{Action: "ship", Order: in.Order, What: in.SKU})
	if err != nil {
		return nil, err
	}
	log.Printf("%s: shipped %s with %s: %s", in.Order, in.SKU, in.Label, id)
	return map[string]string{"parcel": id}, nil
}
