package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
	"perigee/engine/history"
	"perigee/store"
	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
)

const wide = `
name: wide
version: "1.0.0"
input: { type: object, properties: { items: { type: array } } }
tasks: { a.step: { version: "1.0.0" } }
steps: [ { id: all, for: input.items, task: a.step, with: { n: "${item}" } } ]
output: "${steps.all.output}"
`

func TestConcurrency_AFanOutIsJoinedOnce(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, open func(t *testing.T) store.Store) {
		const engines, workers = 4, 8
		c := newCluster(t, open, engines, engine.Options{}, wide)
		c.start("wide", "e", fanned(*fanOut))
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		for i := range engines * workers {
			running.Go(func() { c.worker(ctx, c.of(i), fmt.Sprint("w", i), i%2 == 0) })
		}
		began := time.Now()
		state := c.ended("e")
		t.Logf("%s; through the inbox: %d of %d results, in %d drains; %d times the head was busy",
			time.Since(began).Round(time.Millisecond), c.stores[0].reported.Load(), *fanOut, c.stores[0].drained.Load(), c.stores[0].busy.Load())
		stop()
		running.Wait()
		if state.Status != history.Completed {
			t.Fatalf("it is %s: %+v", state.Status, state.Error)
		}
		times := map[string]int{}
		for _, e := range c.events("e") {
			times[e.Type]++
		}
		want := map[string]int{
			"WorkflowCreated": 1, "WorkflowStarted": 1, "StepFanOut": 1, "WorkflowCompleted": 1,
			"StepScheduled": *fanOut, "StepDispatched": *fanOut, "StepSucceeded": *fanOut + 1,
		}
		if diff := cmp.Diff(want, times); diff != "" {
			t.Error(diff)
		}
		if c.stores[0].reported.Load() == 0 {
			t.Error("no result went through the inbox")
		}
		c.healthy()
	})
}

const signalled = `
name: signalled
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
signals: { go: {}, stop: {} }
steps: [ { id: last, await: stop } ]
`

func TestConcurrency_WritersOfOneExecutionAllGetThrough(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, open func(t *testing.T) store.Store) {
		const writers, each = 16, 10
		c := newCluster(t, open, 4, engine.Options{}, signalled)
		c.start("signalled", "e", `{}`)
		seqs := make([][]uint64, writers)
		atOnce(writers, func(i int) {
			for n := range each {
				seq, err := c.of(i).Signal(t.Context(), "e", "go", `{}`, fmt.Sprint("s", i, "-", n))
				if err != nil {
					t.Errorf("writer %d: %v", i, err)
				}
				seqs[i] = append(seqs[i], seq)
			}
		})
		answered := slices.Concat(seqs...)
		slices.Sort(answered)
		if diff := cmp.Diff(c.seqsOf("e", "SignalReceived"), answered); diff != "" {
			t.Errorf("answers (+) and history (-):\n%s", diff)
		}
		if len(answered) != writers*each || len(slices.Compact(answered)) != writers*each {
			t.Errorf("%d answers, want %d different ones", len(answered), writers*each)
		}
		c.healthy()
	})
}

func (c *cluster) seqsOf(id, eventType string) []uint64 {
	c.t.Helper()
	var seqs []uint64
	for _, e := range c.events(id) {
		if e.Type == eventType {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

func TestConcurrency_IdenticalStartsAreOneExecution(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, open func(t *testing.T) store.Store) {
		c := newCluster(t, open, 4, engine.Options{}, signalled)
		for round := range 5 {
			id := fmt.Sprint("e", round)
			var created atomic.Int64
			atOnce(50, func(i int) {
				s, err := c.of(i).Start(t.Context(), engine.StartRequest{Workflow: "signalled", ExecutionID: id})
				if err != nil {
					t.Errorf("start %d: %v", i, err)
				}
				if s.Created {
					created.Add(1)
				}
			})
			if n := created.Load(); n != 1 {
				t.Errorf("%d starts created it", n)
			}
			if diff := cmp.Diff([]uint64{1}, c.seqsOf(id, "WorkflowCreated")); diff != "" {
				t.Error(diff)
			}
		}
		c.healthy()
	})
}

// A signal that meets the end is in the history, or refused.
func TestConcurrency_ASignalAtTheEndIsTakenOrRefused(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, open func(t *testing.T) store.Store) {
		c := newCluster(t, open, 4, engine.Options{}, strings.Replace(signalled, "await: stop", "task: a.step", 1))
		session := c.register(c.engines[0], "w")
		taken := 0
		for round := range 5 {
			id := fmt.Sprint("e", round)
			c.start("signalled", id, `{}`)
			p, err := c.engines[0].Poll(t.Context(), engine.PollRequest{SessionID: session})
			if err != nil || len(p.Tasks) != 1 {
				t.Fatalf("%+v, %v", p, err)
			}
			seqs := make([]uint64, 51)
			atOnce(len(seqs), func(i int) {
				if i == len(seqs)/2 {
					answer, err := c.of(i).Results(t.Context(), engine.ResultsRequest{Results: []engine.Result{{Token: p.Tasks[0].Token}}})
					if err != nil || !answer.Acks[0].Accepted {
						t.Errorf("the last result: %+v, %v", answer, err)
					}
					return
				}
				seq, err := c.of(i).Signal(t.Context(), id, "go", `{}`, "")
				if err != nil && engine.CodeOf(err) != engine.ExecutionFinished {
					t.Errorf("signal %d: %v", i, err)
				}
				seqs[i] = seq
			})
			slices.Sort(seqs)
			answered := slices.DeleteFunc(seqs, func(seq uint64) bool { return seq == 0 })
			if diff := cmp.Diff(c.seqsOf(id, "SignalReceived"), answered, sameWhereEmpty); diff != "" {
				t.Errorf("answers (+) and history (-):\n%s", diff)
			}
			if s := c.ended(id); s.Status != history.Completed {
				t.Errorf("it is %s", s.Status)
			}
			taken += len(answered)
		}
		t.Logf("%d of 250 signals came before the end", taken)
		c.healthy()
	})
}

var sameWhereEmpty = cmp.Transformer("", func(s []uint64) []uint64 { return append([]uint64{}, s...) })

const hurried = `
name: hurried
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps: [ { id: only, task: a.step, timeout: 1s, retry: none } ]
`

// Whichever comes first stands: what was answered accepted is never undone, and
// what was refused never counts.
func TestConcurrency_ADeadlineAndAResultHaveOneOutcome(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, open func(t *testing.T) store.Store) {
		c := newCluster(t, open, 4, engine.Options{}, hurried)
		c.now.Store(epoch)
		session := c.register(c.engines[0], "w")
		id := func(i int) string { return fmt.Sprint("e", i) }
		atOnce(8, func(lane int) {
			for i := lane; i < *races; i += 8 {
				if _, err := c.of(i).Start(t.Context(), engine.StartRequest{Workflow: "hurried", ExecutionID: id(i)}); err != nil {
					t.Error(err)
				}
			}
		})
		tokens := map[string]string{}
		for len(tokens) < *races && !t.Failed() {
			p, err := c.engines[0].Poll(t.Context(), engine.PollRequest{SessionID: session, MaxTasks: 32})
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range p.Tasks {
				tokens[task.ExecutionID] = task.Token
			}
		}
		c.now.Add(1000) // every deadline is now
		accepted := make([]bool, *races)
		sweeping := atomic.Bool{}
		sweeping.Store(true)
		var sweeps sync.WaitGroup
		for i := range 2 {
			sweeps.Go(func() {
				for sweeping.Load() {
					if _, err := c.of(i).Tick(t.Context(), 10); err != nil {
						t.Error(err)
					}
				}
			})
		}
		atOnce(8, func(lane int) {
			for i := *races - 1 - lane; i >= 0; i -= 8 { // from the end: the sweeps come from the front
				answer, err := c.of(lane).Results(t.Context(), engine.ResultsRequest{Results: []engine.Result{{Token: tokens[id(i)]}}})
				if err != nil {
					t.Error(err)
					continue
				}
				accepted[i] = answer.Acks[0].Accepted
			}
		})
		sweeping.Store(false)
		sweeps.Wait()
		n := 0
		for i, ok := range accepted {
			want, outcome := history.Failed, "StepAttemptFailed"
			if ok {
				want, outcome = history.Completed, "StepSucceeded"
				n++
			}
			if s := c.ended(id(i)); s.Status != want {
				t.Errorf("%s is %s, and its result was accepted: %v", id(i), s.Status, ok)
			}
			if len(c.seqsOf(id(i), "StepSucceeded"))+len(c.seqsOf(id(i), "StepAttemptFailed")) != 1 || len(c.seqsOf(id(i), outcome)) != 1 {
				t.Errorf("%s has not one outcome, %s", id(i), outcome)
			}
		}
		t.Logf("%d of %d results came before the deadline", n, *races)
		c.healthy()
	})
}

// Polls run out of time while commits reserve them, callers hang up, answers
// are lost: a live worker's heartbeat finds what it never got.
func TestConcurrency_PollsThatComeAndGoLoseNoTask(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, open func(t *testing.T) store.Store) {
		c := newCluster(t, open, 2, engine.Options{HeartbeatInterval: 500 * time.Millisecond, SessionTimeout: time.Hour}, chain(2))
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		holders := &holders{of: map[string]string{}}
		for i := range 8 {
			running.Go(func() { c.restlessWorker(ctx, c.of(i), fmt.Sprint("w", i), holders) })
		}
		atOnce(4, func(lane int) {
			for i := lane; i < *orders; i += 4 {
				if _, err := c.of(i).Start(t.Context(), engine.StartRequest{Workflow: "chain", ExecutionID: fmt.Sprint("e", i)}); err != nil {
					t.Error(err)
				}
			}
		})
		began := time.Now()
		redelivered := 0
		for i := range *orders {
			id := fmt.Sprint("e", i)
			if s := c.ended(id); s.Status != history.Completed {
				t.Errorf("%s is %s", id, s.Status)
			}
			for _, e := range c.events(id) {
				if e.Type == "StepAttemptUncertain" {
					redelivered++
					if !strings.Contains(e.Data, "never received") {
						t.Errorf("%s: %s", id, e.Data)
					}
				}
			}
		}
		stop()
		running.Wait()
		t.Logf("%d tasks were lost with their answers and redelivered; the last end came %s after the last start", redelivered, time.Since(began).Round(time.Millisecond))
		c.healthy()
	})
}

// holders knows which worker each token was given to.
type holders struct {
	mu sync.Mutex
	of map[string]string
}

func (h *holders) give(t *testing.T, token, worker string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other, taken := h.of[token]; taken && other != worker {
		t.Errorf("one task was given to %s and to %s", other, worker)
	}
	h.of[token] = worker
}

// restlessWorker polls for moments only, hangs up, and does not get every answer.
// What it holds it tells in its heartbeats.
func (c *cluster) restlessWorker(ctx context.Context, e *engine.Engine, name string, given *holders) {
	session := c.register(e, name)
	random := rand.New(rand.NewPCG(1, uint64(len(name))+uint64(name[1])))
	var mu sync.Mutex
	held := map[string]bool{}
	hold := func(token string, holds bool) {
		mu.Lock()
		defer mu.Unlock()
		if held[token] = holds; !holds {
			delete(held, token)
		}
	}
	var beats sync.WaitGroup
	beats.Go(func() { c.beat(ctx, e, session, &mu, held) })
	for ctx.Err() == nil {
		call, hangUp := context.WithCancel(ctx)
		wait := time.Duration(random.IntN(20)) * time.Millisecond
		if random.IntN(4) == 0 {
			call, hangUp = context.WithTimeout(ctx, wait/2) // before the poll is over
		}
		p, err := e.Poll(call, engine.PollRequest{SessionID: session, Wait: wait, MaxTasks: 1 + random.IntN(2)})
		gone := call.Err() != nil
		hangUp()
		if err != nil && !gone {
			c.t.Errorf("%s polls: %v", name, err)
		}
		for _, task := range p.Tasks {
			given.give(c.t, task.Token, name)
			if gone || random.IntN(20) == 0 {
				continue // the answer does not arrive
			}
			hold(task.Token, true)
			answer, err := e.Results(context.WithoutCancel(ctx), engine.ResultsRequest{Results: []engine.Result{{Token: task.Token}}})
			if err != nil || !answer.Acks[0].Accepted && answer.Acks[0].Reason != "duplicate result; step already resolved" {
				c.t.Errorf("%s reports: %+v, %v", name, answer, err)
			}
			hold(task.Token, false)
		}
	}
	beats.Wait()
}

// beat sends heartbeats until ctx ends.
func (c *cluster) beat(ctx context.Context, e *engine.Engine, session string, mu *sync.Mutex, held map[string]bool) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		mu.Lock()
		tokens := []string{}
		for token := range held {
			tokens = append(tokens, token)
		}
		mu.Unlock()
		if _, err := e.Heartbeat(ctx, session, tokens); err != nil && ctx.Err() == nil {
			c.t.Errorf("a heartbeat: %v", err)
		}
	}
}

func TestConcurrency_ClosingWakesAllWhoWait(t *testing.T) {
	onEveryDatabase(t, func(t *testing.T, open func(t *testing.T) store.Store) {
		c := newCluster(t, open, 4, engine.Options{}, signalled)
		c.start("signalled", "e", `{}`)
		var waiting sync.WaitGroup
		var asked sync.WaitGroup
		for i := range 20 {
			session := c.register(c.of(i), fmt.Sprint("w", i))
			asked.Add(2)
			waiting.Go(func() {
				asked.Done()
				if p, err := c.of(i).Poll(t.Context(), engine.PollRequest{SessionID: session, Wait: time.Hour}); err != nil || len(p.Tasks) > 0 {
					t.Errorf("a poll that was held got %+v, %v", p, err)
				}
			})
			waiting.Go(func() {
				asked.Done()
				if s, err := c.of(i).Execution(t.Context(), "e", time.Hour); err != nil || s.Status.Terminal() {
					t.Errorf("a read that was held got %+v, %v", s, err)
				}
			})
		}
		asked.Wait()
		began := time.Now()
		atOnce(len(c.engines), func(i int) { c.engines[i].Close() })
		waiting.Wait()
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("they came back after %s, when their time was over", took)
		}
		c.healthy()
	})
}

// A drain that finds the head locked is neither an error nor the end of it.
func TestConcurrency_ADrainThatFindsTheHeadLockedTriesAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	st, err := postgres.Open(context.Background(), postgres.Options{URL: url})
	closed(t, st, err)
	r := &rival{Store: st, busy: make(chan struct{}, 100)}
	c := newCluster(t, func(*testing.T) store.Store { return r }, 1, engine.Options{}, chain(1))
	session := c.register(c.engines[0], "w")
	c.start("chain", "e", `{}`)
	p, err := c.engines[0].Poll(t.Context(), engine.PollRequest{SessionID: session})
	if err != nil || len(p.Tasks) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	locked, release, released := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		released <- st.WithHeadLocked(context.Background(), store.LoadRequest{ID: "e"}, func(store.Loaded) (*store.Commit, error) {
			close(locked)
			<-release
			return nil, nil
		})
	}()
	<-locked
	r.lose.Store(2) // the call's guess, and its first try after a load
	answered := make(chan engine.Ack)
	go func() {
		answer, err := c.engines[0].Results(context.Background(), engine.ResultsRequest{Results: []engine.Result{{Token: p.Tasks[0].Token}}})
		if err != nil {
			t.Error(err)
		}
		answered <- answer.Acks[0]
	}()
	for range 3 {
		<-r.busy
	}
	close(release)
	if err := <-released; err != nil {
		t.Error(err)
	}
	if ack := <-answered; !ack.Accepted {
		t.Errorf("the result: %+v", ack)
	}
	if s := c.ended("e"); s.Status != history.Completed {
		t.Errorf("it is %s", s.Status)
	}
	if c.stores[0].reported.Load() != 1 || c.stores[0].busy.Load() < 3 {
		t.Errorf("%d results were reported, %d drains found the head locked", c.stores[0].reported.Load(), c.stores[0].busy.Load())
	}
	c.healthy()
}
