package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/engine/history"
	"perigee/store"
	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
	"perigee/store/sqlite"
)

// The sizes below are for every day; a soak names larger ones.
var (
	fanOut   = flag.Int("fan-out", 200, "elements of the fan-out that many workers share")
	races    = flag.Int("races", 300, "deadlines that race with results")
	lockless = flag.Bool("without-locks", false, "also as on a database without locks")
	orders   = flag.Int("orders", 80, "executions under polls that come and go")
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// cluster is several engines at work on one database, each as in a process of
// its own, with real goroutines and real time.
type cluster struct {
	t       *testing.T
	engines []*engine.Engine
	stores  []*counted
	now     atomic.Int64 // what the engines take the time to be; 0: the database's clock
}

// counted is a store that counts what became of results.
type counted struct {
	store.Store
	reported, drained, busy *atomic.Int64
}

func (c *counted) Report(ctx context.Context, r store.Report) (bool, error) {
	ok, err := c.Store.Report(ctx, r)
	if ok {
		c.reported.Add(1)
	}
	return ok, err
}

func (c *counted) TryDrain(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	err := c.Store.TryDrain(ctx, r, decide)
	switch {
	case err == nil:
		c.drained.Add(1)
	case errors.Is(err, store.ErrBusy):
		c.busy.Add(1)
	}
	return err
}

// onEveryDatabase runs a test on each kind of store. The second and further
// stores that it opens are on the same database.
func onEveryDatabase(t *testing.T, test func(t *testing.T, open func(t *testing.T) store.Store)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		st, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "perigee.db")})
		closed(t, st, err)
		test(t, func(*testing.T) store.Store { return st })
	})
	onPostgres := func(name, level string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t) + level
			test(t, func(t *testing.T) store.Store {
				st, err := postgres.Open(context.Background(), postgres.Options{URL: url, NoLocks: level != ""})
				closed(t, st, err)
				return st
			})
		})
	}
	onPostgres("Postgres", "")
	if *lockless {
		onPostgres("WithoutLocks", "&default_transaction_isolation=repeatable%20read")
	}
}

func closed(t *testing.T, st store.Store, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}

// newCluster is n engines on one database, with these definitions.
func newCluster(t *testing.T, open func(t *testing.T) store.Store, n int, opts engine.Options, sources ...string) *cluster {
	t.Helper()
	c := &cluster{t: t}
	opts.HoldPolls = true
	opts.Clock = c.now.Load
	var reported, drained, busy atomic.Int64
	for i := range n {
		st := &counted{open(t), &reported, &drained, &busy}
		if i == 0 {
			if _, _, err := st.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		e, err := engine.New(st, opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		c.engines, c.stores = append(c.engines, e), append(c.stores, st)
	}
	for _, source := range sources {
		if _, err := c.engines[0].RegisterDefinition(t.Context(), []byte(source), definition.YAML); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// of is one of the engines, each in its turn.
func (c *cluster) of(i int) *engine.Engine { return c.engines[i%len(c.engines)] }

func (c *cluster) start(workflow, id, input string) {
	c.t.Helper()
	b := &bench{Engine: c.engines[0], t: c.t}
	b.start(workflow, id, input)
}

func (c *cluster) register(e *engine.Engine, worker string) string {
	c.t.Helper()
	r, err := e.RegisterWorker(context.Background(), engine.RegisterRequest{
		WorkerID: worker, Runtime: "go", Contracts: []store.Contract{{TaskName: "a.step", ContractVersion: "1.0.0"}},
	})
	if err != nil {
		c.t.Error(err)
	}
	return r.SessionID
}

// ended waits for an execution's end.
func (c *cluster) ended(id string) *history.State {
	c.t.Helper()
	for {
		s, err := c.engines[0].Execution(c.t.Context(), id, 25*time.Second)
		if err != nil {
			c.t.Fatal(err)
		}
		if s.Status.Terminal() || c.t.Context().Err() != nil {
			return s
		}
	}
}

// events are all events of an execution.
func (c *cluster) events(id string) []store.Event {
	c.t.Helper()
	var events []store.Event
	for after := uint64(0); ; {
		page, err := c.engines[0].History(context.Background(), engine.HistoryRequest{ExecutionID: id, AfterSeq: after})
		if err != nil {
			c.t.Fatal(err)
		}
		events = append(events, page.Events...)
		if after = page.NextAfterSeq; after == 0 {
			return events
		}
	}
}

// healthy asserts that every projection is what its history says.
func (c *cluster) healthy() {
	c.t.Helper()
	b := &bench{Engine: c.engines[0], t: c.t}
	b.healthy()
}

// atOnce runs n calls at the same moment and waits for all.
func atOnce(n int, call func(i int)) {
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-begin
			call(i)
		})
	}
	ready.Wait()
	close(begin)
	done.Wait()
}

// worker polls and reports until ctx ends.
func (c *cluster) worker(ctx context.Context, e *engine.Engine, name string, next bool) {
	session := c.register(e, name)
	var tasks []engine.Assignment
	for ctx.Err() == nil {
		if len(tasks) == 0 {
			p, err := e.Poll(ctx, engine.PollRequest{SessionID: session, Wait: 20 * time.Second})
			if err != nil {
				if ctx.Err() == nil {
					c.t.Errorf("%s polls: %v", name, err)
				}
				return
			}
			tasks = p.Tasks
			continue
		}
		r := engine.ResultsRequest{Results: []engine.Result{{Token: tasks[0].Token, Output: tasks[0].Input}}}
		if tasks = nil; next {
			r.NextSession = session
		}
		answer, err := e.Results(context.WithoutCancel(ctx), r)
		if err != nil {
			c.t.Errorf("%s reports: %v", name, err)
			return
		}
		if !answer.Acks[0].Accepted {
			c.t.Errorf("%s reports: %+v", name, answer.Acks[0])
		}
		tasks = answer.Next
	}
}

func fanned(n int) string {
	items := ""
	for i := range n {
		items += fmt.Sprint(i, ",")
	}
	return `{"items":[` + items[:len(items)-1] + `]}`
}

// rival is a store on which a test plays another process.
type rival struct {
	store.Store
	lose atomic.Int32  // so many of the next commits have lost their races
	busy chan struct{} // gets one for each drain that found the head locked
}

func (r *rival) Commit(ctx context.Context, c store.Commit) error {
	if r.lose.Add(-1) >= 0 {
		return &store.LostError{}
	}
	return r.Store.Commit(ctx, c)
}

func (r *rival) TryDrain(ctx context.Context, l store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	err := r.Store.TryDrain(ctx, l, decide)
	if errors.Is(err, store.ErrBusy) {
		r.busy <- struct{}{}
	}
	return err
}
