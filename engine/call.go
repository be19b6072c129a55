package engine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"

	"perigee/engine/decide"
	"perigee/engine/history"
	"perigee/store"
)

// maxTries bounds how often a call loads and decides again after a lost race.
const maxTries = 8

// pass is the one pass of a call over an execution: load, fold, apply the
// commands, decide, commit. It sets each job's err. The first try takes no
// lock; after a lost race the head is locked while deciding, so that contention
// becomes a queue and not a storm.
func (p *attempt) pass(ctx context.Context) {
	for _, j := range p.jobs {
		p.looks = p.looks || j.looks
	}
	defer p.releaseAll()
	if p.guess(ctx) {
		return
	}
	var err error
	for try := range maxTries {
		if try == 1 && p.viaInbox(ctx) {
			return
		}
		if err = p.try(ctx, try); err == nil {
			p.settle()
			return
		}
		if again, fatal := p.again(ctx, err); !again {
			p.fail(fatal)
			return
		}
		if p.onlyLooks() {
			p.fail(nil)
			return
		}
	}
	p.fail(&Error{Code: Conflict, Message: fmt.Sprintf("the execution changed %d times while the call tried to write; repeat it with the same ids", maxTries), RetryAfter: retryAfter, Cause: err})
}

// attempt is one pass: what it decides from, and what it decided.
type attempt struct {
	engine *Engine
	id     string
	jobs   []*job
	looks  bool
	taken  map[string]bool // child ids found to exist -> whether they are ours
	whole  bool            // the snapshot cannot be read: all events are asked for

	// Of the latest try.
	loaded  store.Loaded
	base    *decide.Machine // as loaded
	machine *decide.Machine
	tags    map[string]string // of an execution that is created
	next    []store.Task      // dispatched in this very commit
	handed  []*handover       // of next, what goes to polls that wait
	commit  *store.Commit
	size    size // of what the machine was made from
}

// try loads, decides and commits once.
func (p *attempt) try(ctx context.Context, try int) error {
	req, warm := p.request()
	decideNow := func(l store.Loaded) (*store.Commit, error) { return p.decide(l, warm) }
	if try > 0 {
		return p.engine.store.WithHeadLocked(ctx, req, decideNow)
	}
	l, err := p.engine.store.Load(ctx, req)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	p.engine.clock.learn(l.NowMS)
	p.loaded = l
	if l.Head != nil {
		// Under the lock of a later try nothing may be read: know it before.
		if _, err := p.engine.program(ctx, l.Head.DefinitionHash); err != nil {
			return err
		}
	}
	c, err := decideNow(l)
	if err != nil || c == nil {
		return err
	}
	return p.engine.store.Commit(ctx, *c)
}

// request asks for the execution, beyond what is warm of it.
func (p *attempt) request() (store.LoadRequest, warmState) {
	req, warm := p.engine.loadRequest(p.id)
	req.DueTasks = p.looks
	if p.whole {
		req.SnapshotFormat = store.NoSnapshot
	}
	return req, warm
}

// loadRequest asks for what is not warm of an execution.
func (e *Engine) loadRequest(id string) (store.LoadRequest, warmState) {
	req := store.LoadRequest{ID: id, SnapshotFormat: history.Format, NowMS: e.nowMS()}
	warm, ok := e.states.get(id)
	if ok {
		req.Known = warm.seen
	}
	return req, warm
}

// decide applies the jobs to what was loaded and decides to the fixpoint. A
// nil commit says that there is nothing to write.
func (p *attempt) decide(l store.Loaded, warm warmState) (c *store.Commit, err error) {
	defer caught(p.id, &err)
	p.releaseAll()
	p.loaded, p.commit, p.next = l, nil, nil
	if p.machine, p.size, err = p.engine.materialize(p.id, &l, warm, p.jobs); err != nil || p.machine == nil {
		return nil, err
	}
	p.base = p.machine.Clone()
	p.machine.At(l.NowMS)
	p.takeReports()
	p.applyJobs(&l)
	for id, linked := range p.taken {
		p.machine.TakenChild(id, linked)
	}
	more := p.machine.Run()
	for _, j := range p.jobs {
		if j.next = nil; j.after != nil && j.err == nil {
			j.next = j.after(p)
			p.next = append(p.next, j.next...)
		}
	}
	p.handOver()
	p.commit = p.build(more)
	return p.commit, nil
}

// applyJobs applies the commands in their order, each to what those before it
// have left. Of those that meet where there is no execution yet, only a start is
// one: another comes too early, and a start that was refused leaves nothing to
// the next, which may be of another workflow.
func (p *attempt) applyJobs(l *store.Loaded) {
	p.tags = nil
	for _, j := range p.jobs {
		if p.machine.State().LastSeq == 0 {
			if j.create == nil {
				j.err = errorf(NotFound, "execution %q not found", p.id)
				continue
			}
			p.machine = decide.New(j.create(), history.New(p.id))
			p.machine.At(l.NowMS)
			p.tags = j.tags
		}
		j.err = j.apply(p.machine, l)
	}
}

// takeReports applies the results that lie in the inbox, before anything else.
func (p *attempt) takeReports() {
	for _, r := range p.loaded.Reported {
		unit, ok := unitOf(p.id, r.Key)
		if !ok {
			continue
		}
		p.machine.Result(unit, r.TokenHash, resultOf(r))
	}
}

// caught makes a panic over an execution an error like those of its history: one
// that is damaged must not end the process. It is to be deferred.
func caught(id string, err *error) {
	if r := recover(); r != nil {
		*err = &decisionError{fmt.Errorf("deciding about %s: %v\n%s", id, r, debug.Stack())}
	}
}

// materialize makes the machine of what was loaded: from the warm one, from a
// snapshot, or from the start. Where the execution does not exist and a job may
// create it the machine is an empty one; else every job fails and it is nil.
func (e *Engine) materialize(id string, l *store.Loaded, warm warmState, jobs []*job) (m *decide.Machine, s size, err error) {
	defer caught(id, &err)
	if l.Head == nil {
		for _, j := range jobs {
			if j.create != nil {
				return decide.New(j.create(), history.New(id)), size{}, nil
			}
		}
		for _, j := range jobs {
			j.err = errorf(NotFound, "execution %q not found", id)
		}
		return nil, size{}, nil
	}
	records, err := recordsOf(l.Events)
	if err != nil {
		return nil, size{}, err
	}
	s = warm.size
	if warm.machine != nil && warm.seen.Incarnation == l.Head.Incarnation && warm.seen.Seq <= l.Head.LastSeq && l.Snapshot == nil {
		m = warm.machine.Clone() // a store may ask for the decision again
		for _, r := range records {
			m.Replay(r)
		}
	} else if m, s, err = e.coldMachine(id, l, records); err != nil {
		return nil, size{}, err
	}
	if m.State().Unknown > 0 {
		return nil, size{}, errorf(NewerHistory, "the history of %q holds events of a newer release; upgrade this server", id)
	}
	if m.State().LastSeq != l.Head.LastSeq {
		return nil, size{}, &decisionError{fmt.Errorf("the history of %s ends at %d, its head says %d", id, m.State().LastSeq, l.Head.LastSeq)}
	}
	return m, s.plus(l.Events), nil
}

// coldMachine makes a machine without a warm one, linear in the state's size.
func (e *Engine) coldMachine(id string, l *store.Loaded, records []history.Record) (*decide.Machine, size, error) {
	program, ok := e.programs.byHash(l.Head.DefinitionHash)
	if !ok {
		return nil, size{}, &needProgram{l.Head.DefinitionHash}
	}
	state, s := history.New(id), size{}
	if l.Snapshot != nil {
		var err error
		if state, err = history.ReadSnapshot(l.Snapshot.Data); err != nil {
			e.log.Warn("a snapshot cannot be read; the whole history is", "execution_id", id, "error", err)
			return nil, size{}, errUnreadable
		}
		s.snapshot = len(l.Snapshot.Data)
	}
	state.ApplyAll(records)
	return decide.New(program, state), s, nil
}

// errUnreadable asks for an execution without its snapshot. A new one takes its
// place soon.
var errUnreadable = errors.New("the snapshot cannot be read")

// needProgram asks for a definition that is not in memory: while a head is
// locked nothing may be read.
type needProgram struct{ hash string }

func (e *needProgram) Error() string { return "definition " + e.hash + " is not in memory" }

func recordsOf(events []store.Event) ([]history.Record, error) {
	records := make([]history.Record, len(events))
	for i, ev := range events {
		event, err := history.DecodeFields(history.Type(ev.Type), ev.Data)
		if err != nil {
			return nil, &decisionError{fmt.Errorf("read event %d: %w", ev.Seq, err)}
		}
		records[i] = history.Record{Seq: ev.Seq, TimestampMS: ev.AtMS, Event: event}
	}
	return records, nil
}

// decisionError is a fault of ours, or of the stored history: no retry helps.
// The execution is parked with back-off, so that it cannot become a loop.
type decisionError struct{ cause error }

func (e *decisionError) Error() string { return e.cause.Error() }
func (e *decisionError) Unwrap() error { return e.cause }

// again says whether a failed try is worth another, and else what to answer.
func (p *attempt) again(ctx context.Context, err error) (again bool, fatal error) {
	var lost *store.LostError
	var child *store.ChildExistsError
	var broken *decisionError
	var need *needProgram
	switch {
	case errors.As(err, &need):
		_, err := p.engine.program(ctx, need.hash)
		return err == nil, fromStore(err, "definition")
	case errors.Is(err, errUnreadable):
		again, p.whole = !p.whole, true
		return again, fromStore(err, "execution")
	case errors.As(err, &lost):
		return true, nil
	case errors.As(err, &child):
		err := p.learnChildren(ctx)
		return err == nil, fromStore(err, "execution")
	case errors.Is(err, store.ErrBusy):
		// A lock was not to be had in time, or a deadlock was resolved.
		return ctx.Err() == nil, fromStore(err, "execution")
	case errors.Is(err, store.ErrUnknownOutcome):
		// The commands' ids are in what was written: the next load shows them.
		p.engine.states.drop(p.id)
		return ctx.Err() == nil, fromStore(err, "execution")
	case errors.As(err, &broken), errors.Is(err, store.ErrTooLarge) && p.onlyLooks():
		p.engine.park(ctx, p, err)
		return false, &Error{Code: Internal, Message: "the execution could not be decided; the server's log says why, `perigee doctor` shows it", Cause: err}
	}
	return false, fromStore(err, "execution")
}

// learnChildren finds out which of the children to create exist already, and
// whether they are this execution's own.
func (p *attempt) learnChildren(ctx context.Context) error {
	if p.taken == nil {
		p.taken = map[string]bool{}
	}
	for _, c := range p.machine.Children() {
		l, err := p.engine.store.Load(ctx, store.LoadRequest{ID: c.ID, NowMS: p.engine.nowMS()})
		if err != nil {
			return fmt.Errorf("load the child %s: %w", c.ID, err)
		}
		if l.Head != nil {
			p.taken[c.ID] = l.Head.ParentID == c.Parent.ExecutionID && l.Head.ParentStep == c.Parent.Step
		}
	}
	return nil
}

// settle follows up on a commit in this process: the machine is kept warm and
// those who wait are woken.
func (p *attempt) settle() {
	if p.machine == nil {
		return
	}
	e := p.engine
	state := p.machine.State()
	switch {
	case p.commit == nil:
		if p.loaded.Head != nil && !state.Status.Terminal() {
			e.states.put(p.warm(*p.loaded.Head, p.size))
		}
		return
	case state.Status.Terminal():
		e.states.drop(p.id)
	default:
		after := p.size.plus(p.commit.Events)
		if s := p.commit.Snapshot; s != nil {
			after = size{snapshot: len(s.Data)}
		}
		e.states.put(p.warm(p.commit.Head, after))
	}
	p.handedOver()
	p.tellEnded()
	if len(p.commit.Events) > 0 {
		var end *history.State
		if state.Status.Terminal() {
			end = state
		}
		e.hub.changed(p.id, end)
	}
	for _, t := range p.commit.Inserted {
		if t.State == store.TaskReady {
			e.lulls.stir()
			e.hub.wakeQueue(t.Queue)
		}
		e.hub.dueAt(t.DueAtMS)
	}
	e.hub.dueAt(p.commit.Head.DueAtMS)
}

// warm is what is kept of the machine for the next call.
func (p *attempt) warm(head store.Head, s size) warmState {
	seen := store.Seen{Incarnation: head.Incarnation, Seq: head.LastSeq}
	return warmState{id: p.id, seen: seen, machine: p.machine.Clone(), size: s, head: &head}
}

func (p *attempt) onlyLooks() bool {
	for _, j := range p.jobs {
		if !j.looks {
			return false
		}
	}
	return true
}

// fail gives every job the same error, or none: nothing was written.
func (p *attempt) fail(err error) {
	p.commit = nil
	for _, j := range p.jobs {
		j.err, j.next = err, nil
	}
}

// newIncarnation makes the number that tells two executions of one id apart.
func newIncarnation() int64 {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("engine: no randomness for an incarnation: " + err.Error())
	}
	return int64(binary.BigEndian.Uint64(b[:])>>1) | 1
}
