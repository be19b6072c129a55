package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"perigee/engine"
	"perigee/engine/decide"
	"perigee/engine/definition"
	"perigee/engine/expr"
	"perigee/engine/history"
	"perigee/store"
	"perigee/store/sqlite"
)

// pure measures what needs no database: the fold, the decision, and the memory
// of a call of the engine.
func (s *suite) pure(ctx context.Context) error {
	s.say("fold, decision, memory of a call")
	if err := s.fold(ctx); err != nil {
		return fmt.Errorf("fold: %w", err)
	}
	if err := s.decide(); err != nil {
		return fmt.Errorf("decide: %w", err)
	}
	allocations, bytes, err := callMemory(ctx)
	if err != nil {
		return fmt.Errorf("memory of a call: %w", err)
	}
	s.sheet.add(callAllocs, "", allocations, "allocations")
	s.sheet.add(callBytes, "", bytes, "bytes")
	return nil
}

// compared times functions in turns, so that a noisy moment meets all of them,
// and gives the least nanoseconds of each: noise only adds.
func compared(fs ...func()) []float64 {
	least := make([]float64, len(fs))
	for round := range 15 {
		for i, f := range fs {
			n := 0
			began := time.Now()
			for time.Since(began) < 20*time.Millisecond {
				f()
				n++
			}
			took := float64(time.Since(began).Nanoseconds()) / float64(n)
			if round == 0 || took < least[i] {
				least[i] = took
			}
		}
	}
	return least
}

// fold compares folding the history of 300 steps with decoding the same bytes:
// as a history is served and replayed, and as a store keeps it, which was checked
// when it was written and is only taken apart.
func (s *suite) fold(ctx context.Context) error {
	events, err := someHistory(ctx)
	if err != nil {
		return err
	}
	var failed error
	decode := func() []history.Record {
		records := make([]history.Record, 0, len(events))
		for _, e := range events {
			event, err := history.DecodeFields(history.Type(e.Type), e.Data)
			if err != nil {
				failed = err
			}
			records = append(records, history.Record{Seq: e.Seq, TimestampMS: e.AtMS, Event: event})
		}
		return records
	}
	served := make([][]byte, len(events))
	for i, e := range events {
		served[i] = history.AppendStored(nil, e.Seq, e.AtMS, e.Type, e.Data)
	}
	read := func() []history.Record {
		records := make([]history.Record, 0, len(served))
		for _, text := range served {
			r, err := history.DecodeRecord(text)
			if err != nil {
				failed = err
			}
			records = append(records, r)
		}
		return records
	}
	took := compared(func() { decode() }, func() { history.Fold("folded", decode()) }, func() { read() }, func() { history.Fold("folded", read()) })
	for i, name := range []string{decodeTime, foldTime, readTime, replayTime} {
		s.sheet.add(name, "", took[i]/float64(len(events)), "ns/event")
	}
	return failed
}

// someHistory is what the engine writes for 300 steps in a row.
func someHistory(ctx context.Context) ([]store.Event, error) {
	k, err := openStack(ctx, sqlite.Memory, engine.Options{})
	if err != nil {
		return nil, err
	}
	defer k.close()
	if err := k.register(ctx, sequential(300)); err != nil {
		return nil, err
	}
	session, err := k.session(ctx)
	if err != nil {
		return nil, err
	}
	if err := k.start(ctx, sequentialName(300), "folded"); err != nil {
		return nil, err
	}
	if err := k.through(ctx, session, func(int, time.Duration) {}); err != nil {
		return nil, err
	}
	return k.store.History(ctx, "folded", 0, 10_000, 0)
}

// decide compares a call's decision in the middle of 20 steps with the
// evaluation of one simple expression.
func (s *suite) decide() error {
	program, problems := expr.Expression("input.n > 1", expr.Scope{})
	if program == nil {
		return fmt.Errorf("%v", problems)
	}
	vars := &expr.Vars{Input: `{"n":2}`}
	machine, err := halfWay()
	if err != nil {
		return err
	}
	var failed error
	took := compared(func() {
		if ok, err := program.Bool(vars, expr.Bounds{}); err != nil || !ok {
			failed = errors.Join(errors.New("the expression is not true"), err)
		}
	}, func() {
		m := machine.Clone()
		m.Result("s10", "token", decide.Result{Output: `{"n":1}`})
		if m.Run(); len(m.Records()) != 2 {
			failed = fmt.Errorf("decided %d events, expected 2", len(m.Records()))
		}
	})
	s.sheet.add(celTime, "", took[0], "ns")
	s.sheet.add(roundTime, "", took[1], "ns")
	return failed
}

// halfWay is an execution of 20 steps of which the eleventh is with a worker.
func halfWay() (*decide.Machine, error) {
	var source strings.Builder
	fmt.Fprintf(&source, preamble, "half-way")
	for i := range 20 {
		fmt.Fprintf(&source, "  - { id: s%d, when: \"input.n > 1\", task: bench.step, with: { n: \"${input.n}\" }, timeout: 30s, queue_timeout: 1h }\n", i)
	}
	d, faults := definition.Parse([]byte(source.String()), definition.YAML)
	if d == nil {
		return nil, fmt.Errorf("%v", faults)
	}
	const began = 1_800_000_000_000
	m := decide.New(decide.Program{Definition: d, Limits: decide.Limits{MaxHistoryEvents: 50_000, MaxPayloadBytes: 1 << 20}}, history.New("e"))
	m.At(began)
	m.Create(history.WorkflowCreated{Workflow: d.Name, Version: d.Version, DefinitionHash: d.Hash, Input: `{"n":2}`})
	m.Run()
	for i := range 11 {
		unit := fmt.Sprintf("s%d", i)
		m.Dispatch(unit, history.StepDispatched{Token: "token", WorkerID: "w", WorkerSession: "s"})
		if i == 10 {
			break
		}
		m.Result(unit, "token", decide.Result{Output: `{"n":1}`})
		m.Run()
	}
	return m.Clone(), nil
}

// callMemory is what one call allocates in the engine that takes in a result
// and hands out the next step, on a store that does nothing.
func callMemory(ctx context.Context) (allocations, bytes float64, err error) {
	st, err := sqlite.Open(ctx, sqlite.Options{Path: sqlite.Memory})
	if err != nil {
		return 0, 0, err
	}
	defer st.Close()
	if _, _, err := st.Migrate(ctx); err != nil {
		return 0, 0, err
	}
	store := &idle{Store: st}
	k, err := newStack(store, engine.Options{})
	if err != nil {
		return 0, 0, err
	}
	const steps = 100
	if err := k.register(ctx, chain(steps)); err != nil {
		return 0, 0, err
	}
	session, err := k.session(ctx)
	if err != nil {
		return 0, 0, err
	}
	if err := k.start(ctx, chainName(steps), "idle"); err != nil {
		return 0, 0, err
	}
	var before, after runtime.MemStats
	const from, to = 20, 60 // no snapshot falls between
	err = k.through(ctx, session, func(n int, _ time.Duration) {
		switch n {
		case from - 1:
			store.quiet = true
		case from:
			runtime.ReadMemStats(&before)
		case to:
			runtime.ReadMemStats(&after)
		}
	})
	if err != nil {
		return 0, 0, err
	}
	calls := float64(to - from)
	return float64(after.Mallocs-before.Mallocs) / calls, float64(after.TotalAlloc-before.TotalAlloc) / calls, nil
}

// idle is a store that stops writing once it is told: loads then answer with
// the head of the last commit, where a warm engine finds what it expects.
type idle struct {
	store.Store
	quiet bool
	head  store.Head
}

func (s *idle) Load(ctx context.Context, r store.LoadRequest) (store.Loaded, error) {
	if !s.quiet {
		return s.Store.Load(ctx, r)
	}
	head := s.head
	return store.Loaded{NowMS: time.Now().UnixMilli(), Head: &head}, nil
}

func (s *idle) Commit(ctx context.Context, c store.Commit) error {
	s.head = c.Head
	if !s.quiet {
		return s.Store.Commit(ctx, c)
	}
	return nil
}
