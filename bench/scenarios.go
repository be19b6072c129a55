package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"perigee/sdk/go/client"
)

// longest bounds one execution.
const longest = 4 * time.Minute

// scenarios measures the scenarios and the extras on every store, repetition by
// repetition, each beside the limits and the peers in the same minutes.
func (s *suite) scenarios(ctx context.Context) error {
	if isTmpfs(s.options.dir) {
		s.say("%s is in memory: commits cost nothing there and no figure is true; choose another folder with -dir", s.options.dir)
	}
	for _, store := range s.options.stores {
		for rep := range s.options.reps {
			s.say("%s: scenarios, repetition %d of %d", store, rep+1, s.options.reps)
			if err := s.limits(ctx, store); err != nil {
				return fmt.Errorf("limits of %s: %w", store, err)
			}
			if err := s.scenariosOnce(ctx, store, rep == 0); err != nil {
				return fmt.Errorf("scenarios on %s: %w", store, err)
			}
			if err := s.peers(ctx, store); err != nil {
				return fmt.Errorf("peers on %s: %w", store, err)
			}
		}
	}
	return nil
}

// scenariosOnce measures on a fresh database. The extras, which take longer,
// run once.
func (s *suite) scenariosOnce(ctx context.Context, store string, extras bool) error {
	d, done, err := s.deploy(ctx, store, false)
	if err != nil {
		return err
	}
	defer done()
	steps := []func(context.Context) error{d.throughput, d.latency, d.fanOut, d.long}
	if extras {
		steps = append(steps, d.many, d.traffic, d.wide, d.writers)
	}
	if err := d.checkpoint(ctx, store); err != nil {
		return err
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// deployment is a server with workers and the workflows, warmed up.
type deployment struct {
	*suite
	server  *server
	workers []*process
	store   string
	ids     atomic.Int64
}

// deploy starts everything on a fresh database. done ends it.
func (s *suite) deploy(ctx context.Context, store string, profiles bool) (d *deployment, done func(), err error) {
	database, err := s.database(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	srv, err := s.startServer(database, profiles)
	if err != nil {
		return nil, nil, err
	}
	for _, source := range []string{sequential(1), sequential(3), sequential(1000), fanOut(100), fanOut(10_000), waiting()} {
		if _, err := srv.client.RegisterDefinition(ctx, []byte(source), client.YAML); err != nil {
			srv.stop()
			return nil, nil, fmt.Errorf("register: %w %v", err, client.Faults(err))
		}
	}
	workers, err := s.startWorkers(srv)
	if err != nil {
		srv.stop()
		return nil, nil, err
	}
	d = &deployment{suite: s, server: srv, workers: workers, store: store}
	done = func() {
		stopAll(workers)
		srv.stop()
	}
	for _, warm := range []struct {
		workflow string
		n        int
	}{{sequentialName(3), 50}, {fanOutName(100), 3}} {
		if _, err := d.each(ctx, warm.workflow, warm.n, 16); err != nil {
			done()
			return nil, nil, fmt.Errorf("warm up: %w", err)
		}
	}
	return d, done, nil
}

// count is a documented number of workflows at the run's scale.
func (s *suite) count(n int) int { return max(1, int(float64(n)*s.options.scale)) }

func (d *deployment) newID() string { return fmt.Sprintf("b-%06d", d.ids.Add(1)) }

// one runs a workflow to its end and gives the time until its result was here.
func (d *deployment) one(ctx context.Context, workflow, id string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	input, err := client.Encode(newDocument(id))
	if err != nil {
		return 0, err
	}
	began := time.Now()
	started, err := d.server.client.Start(ctx, client.StartRequest{Workflow: workflow, ExecutionID: id, Input: input, Wait: 25 * time.Second})
	if err != nil {
		return 0, err
	}
	status := started.Status
	if status == "" || !status.Terminal() {
		state, err := d.server.client.Wait(ctx, id)
		if err != nil {
			return 0, err
		}
		status = state.Status
	}
	took := time.Since(began)
	if status != client.Completed {
		return 0, fmt.Errorf("execution %s ended as %s", id, status)
	}
	return took, nil
}

// each runs a workflow n times, some of them at once, and gives how long each took.
func (d *deployment) each(ctx context.Context, workflow string, n, atOnce int) ([]float64, error) {
	return together(n, atOnce, func(int) (float64, error) {
		took, err := d.one(ctx, workflow, d.newID())
		return milliseconds(took), err
	})
}

// together calls f n times from so many goroutines and gives what it gave; the
// first error ends it.
func together(n, atOnce int, f func(i int) (float64, error)) ([]float64, error) {
	results := make([]float64, n)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				var err error
				if results[i], err = f(i); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return results, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// throughput is S1.
func (d *deployment) throughput(ctx context.Context) error {
	n := d.count(1000)
	return d.withProcessors(ctx, "S1", n, func() error {
		began := time.Now()
		if _, err := d.each(ctx, sequentialName(3), n, 16); err != nil {
			return err
		}
		d.sheet.add(s1, d.store, float64(n)/time.Since(began).Seconds(), "workflows/s")
		return nil
	})
}

// withProcessors runs n workflows and adds what everyone used of the processors
// for each.
func (d *deployment) withProcessors(ctx context.Context, scenario string, n int, run func() error) error {
	used, err := d.processors(ctx)
	if err != nil {
		return err
	}
	if err := run(); err != nil {
		return err
	}
	after, err := d.processors(ctx)
	for _, who := range []string{"server", "worker", "client", "database"} {
		if _, there := after[who]; there {
			d.sheet.add(scenario+" processor time of the "+who, d.store, milliseconds(after[who]-used[who])/float64(n), "ms/workflow")
		}
	}
	return err
}

// processors is what everyone who takes part has used of the processors.
func (d *deployment) processors(ctx context.Context) (map[string]time.Duration, error) {
	used := map[string]time.Duration{"server": cpuTime(d.server.cmd.Process.Pid), "client": cpuTime(os.Getpid())}
	for _, w := range d.workers {
		used["worker"] += cpuTime(w.cmd.Process.Pid)
	}
	err := d.onDatabase(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()`)
		if err != nil {
			return err
		}
		pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
		used["database"] = 0
		for _, pid := range pids {
			used["database"] += cpuTime(pid)
		}
		return err
	})
	return used, err
}

// latency is S2.
func (d *deployment) latency(ctx context.Context) error {
	n := d.count(200)
	return d.withProcessors(ctx, "S2", n, func() error {
		took, err := d.each(ctx, sequentialName(3), n, 1)
		if err == nil {
			d.sheet.add(s2, d.store, median(took), "ms p50")
		}
		return err
	})
}

// fanOut is S3.
func (d *deployment) fanOut(ctx context.Context) error {
	took, err := d.each(ctx, fanOutName(100), d.count(20), 1)
	if err == nil {
		d.sheet.add(s3, d.store, median(took), "ms p50")
	}
	return err
}

// long is S4.
func (d *deployment) long(ctx context.Context) error {
	id := d.newID()
	took, err := d.one(ctx, sequentialName(1000), id)
	if err != nil {
		return err
	}
	d.sheet.add(s4, d.store, took.Seconds(), "s")
	at, err := d.successes(ctx, id)
	if err != nil {
		return err
	}
	d.sheet.add(s4First, d.store, float64(at[99]-at[0])/1000, "s")
	d.sheet.add(s4Last, d.store, float64(at[len(at)-1]-at[len(at)-100])/1000, "s")
	return nil
}

// successes are the moments, in epoch milliseconds, of an execution's StepSucceeded events.
func (d *deployment) successes(ctx context.Context, id string) ([]int64, error) {
	var at []int64
	for event, err := range d.server.client.Events(ctx, id, false) {
		if err != nil {
			return nil, err
		}
		if event.Type == "StepSucceeded" {
			at = append(at, event.TimestampMS)
		}
	}
	return at, nil
}

// many is S1 with 128 at once.
func (d *deployment) many(ctx context.Context) error {
	n := d.count(2000)
	began := time.Now()
	if _, err := d.each(ctx, sequentialName(3), n, 128); err != nil {
		return err
	}
	d.sheet.add(many, d.store, float64(n)/time.Since(began).Seconds(), "workflows/s")
	return nil
}

// traffic counts what S1 makes the Postgres server write, ticks and sessions
// included. The pages' first images after a checkpoint are written before.
func (d *deployment) traffic(ctx context.Context) error {
	if d.store != "postgres" {
		return nil
	}
	if _, err := d.each(ctx, sequentialName(3), d.count(300), 16); err != nil {
		return err
	}
	before, err := d.suite.traffic(ctx)
	if err != nil {
		return err
	}
	n := d.count(300)
	if _, err := d.each(ctx, sequentialName(3), n, 16); err != nil {
		return err
	}
	after, err := d.suite.traffic(ctx)
	if err != nil {
		return err
	}
	d.sheet.add(workflowCommits, d.store, float64(after.transactions-before.transactions)/float64(n), "commits")
	d.sheet.add(workflowWAL, d.store, float64(after.walBytes-before.walBytes)/float64(n), "bytes")
	return nil
}

// wide is a fan-out of 10 000 elements.
func (d *deployment) wide(ctx context.Context) error {
	id := d.newID()
	took, err := d.one(ctx, fanOutName(10_000), id)
	if err != nil {
		return err
	}
	d.sheet.add(wide, d.store, took.Seconds(), "s")
	at, err := d.successes(ctx, id)
	if err != nil {
		return err
	}
	d.sheet.add(wideFirst, d.store, float64(at[999]-at[0])/1000, "s")
	d.sheet.add(wideLast, d.store, float64(at[len(at)-1]-at[len(at)-1000])/1000, "s")
	return nil
}

// writers sends signals to one execution from 16 clients at once.
func (d *deployment) writers(ctx context.Context) error {
	id := d.newID()
	if _, err := d.server.client.Start(ctx, client.StartRequest{Workflow: waitingName, ExecutionID: id}); err != nil {
		return err
	}
	n := d.count(1600)
	payload, err := json.Marshal(newDocument(id))
	if err != nil {
		return err
	}
	began := time.Now()
	_, err = together(n, 16, func(int) (float64, error) {
		_, err := d.server.client.Signal(ctx, id, "note", payload, "")
		return 0, err
	})
	if err != nil {
		return err
	}
	d.sheet.add(writers, d.store, float64(n)/time.Since(began).Seconds(), "signals/s")
	return nil
}
