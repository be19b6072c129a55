package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"perigee/engine"
	"perigee/sdk/go/client"
	"perigee/store"
	"perigee/store/sqlite"
)

// cost is what one call costs the database.
type cost struct{ RoundTrips, Statements, Commits int64 }

// bill is the cost of each call of a sequence's life. The figures do not depend
// on the machine.
type bill struct {
	Start, Poll, EmptyPoll cost
	Complete               cost // without asking for more
	CompleteWithNext       cost // which hands out the next step
	Read                   cost
}

// countCalls runs a sequence call by call.
func countCalls(ctx context.Context, k *stack) (bill, error) {
	var b bill
	if err := k.register(ctx, sequential(5)); err != nil {
		return b, err
	}
	session, err := k.session(ctx)
	if err != nil {
		return b, err
	}
	// A first execution fills the caches, as on every server that is up.
	if err := k.start(ctx, sequentialName(5), "warm"); err != nil {
		return b, err
	}
	if err := k.through(ctx, session, func(int, time.Duration) {}); err != nil {
		return b, err
	}
	var task engine.Assignment
	for _, step := range []struct {
		into *cost
		call func() error
	}{
		{&b.EmptyPoll, func() error {
			_, err := k.engine.Poll(ctx, engine.PollRequest{SessionID: session})
			return err
		}},
		{&b.Start, func() error { return k.start(ctx, sequentialName(5), "counted") }},
		{&b.Poll, func() (err error) { task, err = k.poll(ctx, session); return err }},
		{&b.CompleteWithNext, func() error {
			next, err := k.complete(ctx, task, session)
			if err == nil && next == nil {
				err = fmt.Errorf("the result brought no next task")
			}
			if err == nil {
				task = *next
			}
			return err
		}},
		{&b.Complete, func() error { _, err := k.complete(ctx, task, ""); return err }},
		{&b.Read, func() error { _, err := k.engine.Execution(ctx, "counted", 0); return err }},
	} {
		before := k.store.Stats()
		if err := step.call(); err != nil {
			return b, err
		}
		*step.into = difference(before, k.store.Stats())
	}
	return b, nil
}

func difference(before, after store.Stats) cost {
	return cost{after.RoundTrips - before.RoundTrips, after.Statements - before.Statements, after.Commits - before.Commits}
}

// countWorkflows runs n of a workflow, some at once, through HTTP with a worker
// of the library, and gives what all of them cost together.
func countWorkflows(ctx context.Context, k *stack, source, workflow string, n, atOnce int) (cost, error) {
	if err := k.register(ctx, source); err != nil {
		return cost{}, err
	}
	c, stop, err := k.serve(ctx, 32)
	if err != nil {
		return cost{}, err
	}
	defer stop()
	run := func(i int) (float64, error) { return 0, runOne(ctx, c, workflow, workflow, i) }
	if _, err := run(-1); err != nil {
		return cost{}, err
	}
	before := k.store.Stats()
	_, err = together(n, atOnce, run)
	return difference(before, k.store.Stats()), err
}

// runOne runs a workflow to its end; its id is made of a name and a number.
func runOne(ctx context.Context, c *client.Client, workflow, name string, i int) error {
	id := fmt.Sprintf("%s-%d", name, i)
	input, err := client.Encode(newDocument(id))
	if err != nil {
		return err
	}
	started, err := c.Start(ctx, client.StartRequest{Workflow: workflow, ExecutionID: id, Input: input, Wait: 25 * time.Second})
	if err == nil && started.Status != client.Completed {
		err = fmt.Errorf("execution %s ended as %q", id, started.Status)
	}
	return err
}

// calls prints what single calls cost on each store, counted, and what a long
// history adds to them.
func (s *suite) calls(ctx context.Context) error {
	for _, store := range s.options.stores {
		s.say("%s: calls, counted", store)
		where, err := s.database(ctx, store)
		if err != nil {
			return err
		}
		k, err := openStack(ctx, where, engine.Options{})
		if err != nil {
			return err
		}
		err = s.callsOn(ctx, store, k)
		k.close()
		if err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
	}
	return s.longHistory(ctx)
}

func (s *suite) callsOn(ctx context.Context, store string, k *stack) error {
	b, err := countCalls(ctx, k)
	if err != nil {
		return err
	}
	for _, call := range []struct {
		name string
		cost cost
	}{
		{"start", b.Start}, {"poll that finds work", b.Poll}, {"poll that finds none", b.EmptyPoll},
		{"complete", b.Complete}, {"complete with next", b.CompleteWithNext}, {"read", b.Read},
	} {
		s.sheet.add(call.name+": round trips", store, float64(call.cost.RoundTrips), "")
		s.sheet.add(call.name+": statements", store, float64(call.cost.Statements), "")
		s.sheet.add(call.name+": commits", store, float64(call.cost.Commits), "")
	}
	n := 100
	total, err := countWorkflows(ctx, k, sequential(3), sequentialName(3), n, 1)
	if err != nil {
		return err
	}
	s.sheet.add("commits of a lone 3-step workflow", store, float64(total.Commits)/float64(n), "commits")
	s.sheet.add("round trips of a lone 3-step workflow", store, float64(total.RoundTrips)/float64(n), "")
	n = 10
	if total, err = countWorkflows(ctx, k, fanOut(100), fanOutName(100), n, 1); err != nil {
		return err
	}
	s.sheet.add(fanCommits, store, float64(total.Commits)/float64(n), "commits")
	s.sheet.add("round trips of a fan-out of 100", store, float64(total.RoundTrips)/float64(n), "")
	return nil
}

// longHistory compares calls early and late in a history of 10 001 events, of a
// warm and of a cold process. The database is in memory: nothing else is slow.
func (s *suite) longHistory(ctx context.Context) error {
	s.say("calls at 10 000 events")
	const elements = 3333 // three events each
	k, err := openStack(ctx, sqlite.Memory, engine.Options{})
	if err != nil {
		return err
	}
	defer k.close()
	if err := k.register(ctx, chain(elements)); err != nil {
		return err
	}
	session, err := k.session(ctx)
	if err != nil {
		return err
	}
	if err := k.start(ctx, chainName(elements), "long"); err != nil {
		return err
	}
	var early, late []float64
	var cold error
	err = k.through(ctx, session, func(n int, took time.Duration) {
		switch {
		case n >= 25 && n < 75:
			early = append(early, float64(took.Microseconds()))
		case n >= elements-60 && n < elements-10:
			late = append(late, float64(took.Microseconds()))
		}
		if n == elements/2 {
			cold = s.coldCalls(ctx, k.store, coldHalf)
		}
		if n == elements-5 {
			cold = errors.Join(cold, s.coldCalls(ctx, k.store, coldFull))
		}
	})
	if err != nil || cold != nil {
		return fmt.Errorf("long history: %w", errors.Join(err, cold))
	}
	s.sheet.add(warmEarly, "sqlite", median(early), "µs")
	s.sheet.add(warmLate, "sqlite", median(late), "µs")
	return nil
}

// coldCalls measures a read by a process that has nothing in memory but the
// definition. How far the last snapshot lies back differs, by as much as the
// snapshot has at most.
func (s *suite) coldCalls(ctx context.Context, st store.Store, name string) error {
	k, err := newStack(st, engine.Options{CacheBytes: -1})
	if err != nil {
		return err
	}
	var took []float64
	for range 9 {
		began := time.Now()
		if _, err := k.engine.Execution(ctx, "long", 0); err != nil {
			return err
		}
		took = append(took, float64(time.Since(began).Microseconds()))
	}
	s.sheet.add(name, "sqlite", slices.Min(took), "µs")
	return nil
}
