package simulation

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/store"
)

// Options shape one run. The zero value of a field means its default.
type Options struct {
	Turns        int // 40
	Processes    int // engines on one store; 3
	Workers      int // 3
	FaultPercent int // of store calls that fail, before and again after; 4
	// Prefix keeps the runs on one store apart.
	Prefix string
}

// World is one run: processes, workers and clients on one store.
type World struct {
	opts    Options
	store   store.Store
	rand    *rand.Rand
	now     int64
	program Program

	processes []*process
	workers   []*worker
	depth     int  // of calls inside calls
	faults    bool // whether the store fails
	starting  bool

	ids      []string // executions started by clients
	models   map[string]*model
	order    []string // of models, as they were found
	defs     map[string]*definition.Definition
	promised []promise
	counts   map[string]int
	told     map[string]engine.Ended // what an engine said has ended, by its name
	trace    strings.Builder
	seq      int
	err      error // the first broken invariant
}

// process is one engine: what it keeps in memory is lost when it crashes.
type process struct {
	engine *engine.Engine
	busy   bool
}

// promise is an answer that must be true whatever crashes afterwards.
type promise struct {
	execution string
	what      string
	holds     func(m *model) bool
}

const simulationEpoch = 1_800_000_000_000

// NewWorld prepares a run of a program on a migrated store.
func NewWorld(st store.Store, seed uint64, p Program, opts Options) (*World, error) {
	setDefault(&opts.Turns, 40)
	setDefault(&opts.Processes, 3)
	setDefault(&opts.Workers, 3)
	setDefault(&opts.FaultPercent, 4)
	w := &World{
		opts: opts, store: st, program: p,
		rand:   rand.New(rand.NewPCG(seed, 0x7065726967)),
		now:    simulationEpoch,
		models: map[string]*model{},
		defs:   map[string]*definition.Definition{},
		counts: map[string]int{},
		told:   map[string]engine.Ended{},
	}
	for range opts.Processes {
		w.processes = append(w.processes, &process{engine: w.newEngine()})
	}
	return w, w.register()
}

func setDefault(field *int, value int) {
	if *field == 0 {
		*field = value
	}
}

func (w *World) newEngine() *engine.Engine {
	e, err := engine.New(&faultyStore{w.store, w}, engine.Options{
		SessionTimeout:    4_000_000_000,
		HeartbeatInterval: 1_000_000_000,
		CancelGrace:       5_000_000_000,
		MaxRedeliveries:   2,
		MaxFanOut:         6,
		MaxHistoryEvents:  400,
		MaxPayloadBytes:   4096,
		Clock:             func() int64 { return w.now },
		NewID:             w.newID,
		Random:            randomBytes{w.rand},
		HTTPRequest:       w.httpRequest,
		Ended:             w.ended,
	})
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}

// newID gives ids that sort in the order in which they were made.
func (w *World) newID() string {
	w.seq++
	return fmt.Sprintf("%s-%06d", w.opts.Prefix, w.seq)
}

type randomBytes struct{ r *rand.Rand }

func (b randomBytes) Read(p []byte) (int, error) {
	for i := 0; i < len(p); i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], b.r.Uint64())
		copy(p[i:], word[:])
	}
	return len(p), nil
}

func (w *World) httpRequest(context.Context, exactjson.Value) (exactjson.Value, *engine.Failure) {
	if chance(w.rand, 40) {
		return "", &engine.Failure{TaskError: history.TaskError{Code: "HTTP_ERROR", Message: "status 503", Retryable: true}}
	}
	return `{"status":200,"headers":{},"body":"ok"}`, nil
}

func (w *World) register() error {
	ctx, e := context.Background(), w.processes[0].engine
	for _, source := range append(append([]string(nil), w.program.Children...), w.program.Source) {
		r, err := e.RegisterDefinition(ctx, []byte(source), definition.JSON)
		if err != nil {
			return fmt.Errorf("the generator made a wrong definition: %w\n%s", err, source)
		}
		info, err := e.Definition(ctx, r.Name, r.Version)
		if err != nil {
			return err
		}
		if w.defs[r.Hash], err = definition.Load(info.Canonical); err != nil {
			return err
		}
	}
	return nil
}

// Run plays the turns and then lets everything come to its end. It returns the
// first invariant that broke.
func (w *World) Run() error {
	w.faults = true
	w.start()
	for range w.opts.Turns {
		w.turn()
		if w.check(false); w.err != nil {
			return w.err
		}
	}
	w.faults = false
	if w.drain(); w.err == nil {
		w.check(true)
	}
	return w.err
}

// Counts says what a run reached: event types, rules, faults.
func (w *World) Counts() map[string]int { return w.counts }

// Trace is all that the run's histories hold, in the order in which it was
// first seen. The same seed gives the same trace.
func (w *World) Trace() string { return w.trace.String() }

func (w *World) count(what string) { w.counts[what]++ }

// fail records the first broken invariant.
func (w *World) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// use lends a process that is in no call; nil where all are.
func (w *World) use(call func(e *engine.Engine)) bool {
	first := w.rand.IntN(len(w.processes))
	for i := range w.processes {
		p := w.processes[(first+i)%len(w.processes)]
		if p.busy {
			continue
		}
		p.busy = true
		call(p.engine)
		p.busy = false
		return true
	}
	return false
}

// interleave lets another process do something in the middle of a call.
func (w *World) interleave() {
	if !w.faults || w.depth >= 2 || !chance(w.rand, 12) {
		return
	}
	w.depth++
	w.count("race: another call in between")
	w.act()
	w.depth--
}

// turn is one step of the world.
func (w *World) turn() {
	switch n := w.rand.IntN(100); {
	case n < 18:
		w.advanceClock()
	case n < 22:
		w.crash()
	default:
		w.act()
	}
}

// advanceClock moves the time on: a little, or far enough for timeouts.
func (w *World) advanceClock() {
	w.now += pick(w.rand, int64(1), 40, 400, 1000, 2500, 7000, 61_000)
}

// crash makes a process lose all that it has in memory.
func (w *World) crash() {
	p := w.processes[w.rand.IntN(len(w.processes))]
	if !p.busy {
		w.count("fault: crash")
		p.engine.Close()
		p.engine = w.newEngine()
	}
}

// act is one thing that somebody does.
func (w *World) act() {
	switch n := w.rand.IntN(100); {
	case n < 30:
		w.workerPolls()
	case n < 62:
		w.workerReports()
	case n < 72:
		w.tick()
	case n < 78:
		w.workerBeats()
	case n < 82:
		w.workerLeaves()
	case n < 88:
		w.signal(false)
	case n < 90:
		w.cancel()
	case n < 93:
		w.workerProgress()
	case n < 96:
		w.builtins()
	case n < 98:
		w.start()
	default:
		w.query()
	}
}

func (w *World) tick() {
	w.use(func(e *engine.Engine) { w.tolerate(e.Tick(context.Background(), 20)) })
}

// tolerate takes an error that a fault explains, and no other.
func (w *World) tolerate(_ any, err error) bool {
	if err == nil {
		return true
	}
	switch engine.CodeOf(err) {
	case engine.Unavailable, engine.Conflict, engine.UnknownSession, engine.ExecutionFinished,
		engine.NotFound, engine.QueryFailed, engine.ResourceExhausted, engine.PayloadTooLarge:
		w.count("answer: " + string(engine.CodeOf(err)))
		return false
	}
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknownOutcome) {
		w.fail("an error that no fault explains: %v (cause %v)", err, errors.Unwrap(err))
	}
	return false
}

// start begins an execution, and repeats the call where its answer was lost.
func (w *World) start() {
	if len(w.ids) >= 2 || w.starting {
		return // one start at a time: the id names one input
	}
	w.starting = true
	defer func() { w.starting = false }()
	id := fmt.Sprintf("%s-x%d", w.opts.Prefix, len(w.ids))
	n := w.rand.IntN(8)
	input := fmt.Sprintf(`{"n":%d,"flag":%t,"items":%s,"none":null}`, n, chance(w.rand, 50), pick(w.rand, "[]", "[1]", "[1,2.50,{}]", `["a","b","c","d","e"]`, "[1,2,3,4,5,6,7]"))
	for try := range 20 {
		done := w.use(func(e *engine.Engine) {
			s, err := e.Start(context.Background(), engine.StartRequest{Workflow: w.program.Name, ExecutionID: id, Input: exactjson.Value(input)})
			if !w.tolerate(s, err) {
				return
			}
			w.ids = append(w.ids, id)
			w.watch(id)
			w.promise(id, "start", func(m *model) bool { return m.state.LastSeq > 0 })
		})
		if !done || len(w.ids) > 0 && w.ids[len(w.ids)-1] == id || w.err != nil {
			return
		}
		if try == 18 {
			w.faults = false
			defer func() { w.faults = true }()
		}
	}
}

func (w *World) someID() (string, bool) {
	if len(w.order) == 0 {
		return "", false
	}
	return w.order[w.rand.IntN(len(w.order))], true
}

func (w *World) signal(all bool) {
	id, ok := w.someID()
	if !ok || len(w.program.Signals) == 0 {
		return
	}
	name := pick(w.rand, w.program.Signals...)
	signalID := ""
	if chance(w.rand, 60) || all {
		signalID = w.newID()
	}
	payload := exactjson.Value(fmt.Sprintf(`{"k":%d}`, w.rand.IntN(5)))
	for range 3 {
		answered := false
		w.use(func(e *engine.Engine) {
			seq, err := e.Signal(context.Background(), id, name, payload, signalID)
			if engine.CodeOf(err) == engine.UnknownSignal {
				answered = true // children declare none
				return
			}
			if answered = w.tolerate(seq, err); answered {
				w.promise(id, "signal", func(m *model) bool { return m.signals[seq] == name })
			}
			answered = answered || engine.CodeOf(err) != engine.Unavailable
		})
		if answered || signalID == "" {
			return
		}
	}
}

func (w *World) cancel() {
	id, ok := w.someID()
	if !ok || !chance(w.rand, 60) {
		return
	}
	w.use(func(e *engine.Engine) {
		if s, err := e.Cancel(context.Background(), id, "enough"); w.tolerate(s, err) {
			w.promise(id, "cancel", func(m *model) bool { return m.state.Abort != nil || m.state.Status.Terminal() })
		}
	})
}

func (w *World) query() {
	if id, ok := w.someID(); ok {
		w.use(func(e *engine.Engine) { w.tolerate(e.Query(context.Background(), id, "state")) })
	}
}

func (w *World) builtins() {
	w.use(func(e *engine.Engine) {
		tasks, err := e.ClaimBuiltins(context.Background(), 1+w.rand.IntN(2))
		if !w.tolerate(tasks, err) {
			return
		}
		for _, t := range tasks {
			if !w.faults || !chance(w.rand, 20) { // else the process dies with it
				e.RunBuiltin(context.Background(), t)
			}
		}
	})
}

// promise remembers an answer that must stay true.
func (w *World) promise(id, what string, holds func(*model) bool) {
	w.promised = append(w.promised, promise{id, what, holds})
}

// drain lets honest workers and a running clock bring everything to its end.
func (w *World) drain() {
	for range 400 {
		w.workerPolls()
		for _, wk := range w.workers {
			for len(wk.held) > 0 && w.err == nil {
				w.reportHonestly(wk, wk.held[0])
			}
		}
		w.builtins()
		w.signal(true)
		w.tick()
		if w.check(false); w.err != nil || w.allEnded() {
			return
		}
		w.now += pick(w.rand, int64(200), 1500, 8000, 120_000)
	}
	w.fail("not ended after a long time: %s", w.openExecutions())
}

func (w *World) allEnded() bool { return w.openExecutions() == "" && len(w.order) > 0 }

func (w *World) openExecutions() string {
	var open []string
	for _, id := range w.order {
		m := w.models[id]
		if m.state.Status.Terminal() {
			continue
		}
		units := ""
		for key, u := range m.state.Units() {
			if !u.Status.Resolved() {
				units += fmt.Sprintf(" %s=%s", key, u.Status)
			}
		}
		open = append(open, fmt.Sprintf("%s (%s, abort %v:%s)", id, m.state.Status, m.state.Abort != nil, units))
	}
	return strings.Join(open, "; ")
}
