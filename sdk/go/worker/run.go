package worker

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"perigee/sdk/go/client"
)

const (
	// stopGrace is how long handlers have to return once their context ended
	// because of ErrStopping.
	stopGrace = 5 * time.Second
	// goodbyeTimeout bounds the last call. Without it the attempts would be handed
	// out again after the session time-out.
	goodbyeTimeout = 5 * time.Second
	// heldPolls is how many polls are open at once, where the server holds them.
	heldPolls = 6
	// gatherTime is how long the largest of several polls waits for slots that
	// become free one after the other.
	gatherTime = 2 * time.Millisecond
	// idleFloor is the shortest pause after a poll that brought nothing, so that a
	// server that does not hold polls is not asked in a circle.
	idleFloor = 50 * time.Millisecond
)

// run is one call of Worker.Run.
type run struct {
	worker  *Worker
	log     *slog.Logger
	slots   chan struct{} // one token for each task that may still be taken
	chains  sync.WaitGroup
	reports reports

	registering chan struct{} // holds one token: one registration at a time

	mu      sync.Mutex
	session client.Registration
	contact time.Time // of the last answer that shows the server a live session
	held    map[string]*holding
}

func newRun(w *Worker) *run {
	r := &run{
		worker: w,
		log:    w.opts.Logger.With("worker_id", w.opts.WorkerID),
		slots:  make(chan struct{}, w.opts.Concurrency),
		held:   make(map[string]*holding, w.opts.Concurrency),

		registering: make(chan struct{}, 1),
	}
	r.registering <- struct{}{}
	r.reports = reports{run: r, max: w.opts.Reports, underWay: map[*call]bool{}, busy: map[string]bool{}}
	for range w.opts.Concurrency {
		r.slots <- struct{}{}
	}
	return r
}

// work is Worker.Run.
func (r *run) work(ctx context.Context) error {
	if err := r.register(ctx, ""); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	// Tasks and the calls about them outlive ctx: they end in drain.
	tasks, stopTasks := context.WithCancelCause(context.WithoutCancel(ctx))
	calls, stopCalls := context.WithCancel(context.WithoutCancel(ctx))
	taking, stopTaking := context.WithCancelCause(ctx)
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		if err := r.heartbeats(calls); err != nil {
			stopTaking(err)
		}
	}()

	err := r.poll(taking, tasks, calls)
	if err == nil && ctx.Err() == nil {
		err = context.Cause(taking)
	}
	stopTaking(nil)
	r.drain(stopTasks)
	stopTasks(nil)
	stopCalls()
	<-beating
	r.goodbye(ctx)
	return err
}

// register opens a session in place of the one that the server does not know,
// unless another goroutine already has. Who waits for that one waits no longer
// than its own ctx.
func (r *run) register(ctx context.Context, unknown string) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.registering:
	}
	defer func() { r.registering <- struct{}{} }()
	if r.sessionID() != unknown {
		return nil
	}
	reg, err := r.worker.server.Register(ctx, client.RegisterRequest{
		WorkerID:  r.worker.opts.WorkerID,
		Runtime:   r.worker.opts.Runtime,
		SDK:       sdkName,
		Contracts: r.worker.contracts(),
	})
	if err != nil {
		return fmt.Errorf("register worker %s: %w", r.worker.opts.WorkerID, err)
	}
	r.log.Info("registered", "tasks", r.worker.contracts())
	for _, warning := range reg.Warnings {
		r.log.Warn("registration: " + warning)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session, r.contact = reg, time.Now()
	return nil
}

func (r *run) sessionID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session.WorkerSessionID
}

// holdsPolls reports whether the server holds polls until there is work.
func (r *run) holdsPolls() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session.MaxWaitMS > 0
}

func (r *run) sawServer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.contact = time.Now()
}

// poll takes work until ctx ends (nil) or the server refuses (its error). Where
// polls are held there are several, so that one is open while the others bring
// their tasks: what is started meanwhile is handed to it and need not be claimed.
func (r *run) poll(ctx, tasks, calls context.Context) error {
	n := 1
	if r.holdsPolls() {
		n = min(heldPolls, r.worker.opts.Concurrency)
	}
	taking, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var polls sync.WaitGroup
	for i := range n {
		size := sizeOf(i, n, r.worker.opts.Concurrency)
		polls.Go(func() { stop(r.pollAgain(taking, tasks, calls, size)) }) // one that is refused speaks for all
	}
	polls.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(taking)
}

// pollSize says how many tasks a poll asks for at most, and how long it waits for
// more slots to become free before it does.
type pollSize struct {
	most   int
	gather time.Duration
}

// sizeOf is the size of the i-th of n polls. The first asks for as many tasks as
// it can, which is good for work that is there in plenty, the others at once and
// for few, which is enough for what has just begun.
func sizeOf(i, n, concurrency int) pollSize {
	few := max(1, concurrency/(3*n))
	switch {
	case n == 1:
		return pollSize{most: min(maxTasks, concurrency)}
	case i == 0:
		return pollSize{most: min(maxTasks, concurrency-(n-1)*few), gather: gatherTime}
	}
	return pollSize{most: min(maxTasks, few)}
}

// pollAgain asks for tasks for free slots, so many at a time, and starts a chain for
// each, again and again. Slots that keep busy through `next` never come back
// here, so a busy worker does not poll.
func (r *run) pollAgain(ctx, tasks, calls context.Context, size pollSize) error {
	for {
		free := r.takeSlots(ctx, size.most, size.gather)
		if free == 0 {
			return nil
		}
		session, asked := r.sessionID(), time.Now()
		polled, err := r.worker.server.Poll(ctx, client.PollRequest{SessionID: session, Wait: pollWait, MaxTasks: free})
		for _, t := range polled.Tasks {
			free--
			r.chains.Go(func() { r.chain(ctx, tasks, calls, t) })
		}
		r.giveSlots(free)
		// The tasks go first: somebody waits for their results, nobody for the
		// next poll.
		runtime.Gosched()
		switch {
		case ctx.Err() != nil:
			return nil
		case client.CodeOf(err) == client.CodeUnknownSession:
			if err := r.register(ctx, session); err != nil && ctx.Err() == nil {
				return err
			}
			continue
		case err != nil:
			return fmt.Errorf("poll: %w", err)
		}
		r.sawServer()
		pause := time.Duration(polled.NextPollMS) * time.Millisecond
		if len(polled.Tasks) == 0 && time.Since(asked) < idleFloor {
			pause = max(pause, idleFloor)
		}
		if pause > 0 && !sleep(ctx, pause) {
			return nil
		}
	}
}

// takeSlots waits for a free slot, and then for a moment for others that become
// free, and takes them up to a number. 0: ctx ended.
func (r *run) takeSlots(ctx context.Context, most int, moment time.Duration) int {
	select {
	case <-ctx.Done():
		return 0
	case <-r.slots:
	}
	var over <-chan time.Time
	if moment > 0 {
		over = time.After(moment)
	}
	for n := 1; ; n++ {
		if n == most {
			return n
		}
		select {
		case <-r.slots:
			continue
		default:
		}
		if moment == 0 {
			return n
		}
		select {
		case <-r.slots:
		case <-over:
			return n
		}
	}
}

// giveSlots frees slots. A server that gave more than it was asked for does not
// make more of them.
func (r *run) giveSlots(n int) {
	for range n {
		select {
		case r.slots <- struct{}{}:
		default:
		}
	}
}

// drain waits for the tasks under way, ends their contexts when the time is
// over, and gives up on handlers that do not listen.
func (r *run) drain(stopTasks context.CancelCauseFunc) {
	idle := make(chan struct{})
	go func() {
		r.chains.Wait()
		close(idle)
	}()
	if within(idle, r.worker.opts.DrainTimeout) {
		return
	}
	stopTasks(ErrStopping)
	if !within(idle, stopGrace) {
		r.log.Warn("stopped without waiting longer for handlers; their attempts are handed out again", "tasks", len(r.tokens()))
	}
}

// goodbye ends the session, so that what is still held is handed out again at
// once instead of after the session time-out.
func (r *run) goodbye(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTimeout)
	defer cancel()
	if err := r.worker.server.Unregister(ctx, r.sessionID()); err != nil && client.CodeOf(err) != client.CodeUnknownSession {
		r.log.Warn("unregister", "error", err)
	}
}

// sleep waits and reports whether the context lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// within reports whether done was closed before d was over.
func within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
