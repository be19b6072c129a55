package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/functions/httpapi"
	"perigee/local/database"
	"perigee/sdk/go/client"
	"perigee/store"
)

// stack is the engine on a store in this process, where every statement can be
// counted. Nothing ticks, so that nothing is counted that was not asked for.
type stack struct {
	store  store.Store
	engine *engine.Engine
}

// openStack opens an empty or migrated database.
func openStack(ctx context.Context, where string, o engine.Options) (*stack, error) {
	st, err := database.Open(ctx, database.Options{Where: where, Conns: 8})
	if err != nil {
		return nil, err
	}
	if _, _, err := st.Migrate(ctx); err != nil {
		return nil, err
	}
	return newStack(st, o)
}

func newStack(st store.Store, o engine.Options) (*stack, error) {
	o.HoldPolls = true
	eng, err := engine.New(st, o)
	if err != nil {
		return nil, err
	}
	return &stack{st, eng}, nil
}

func (k *stack) close() {
	k.engine.Close()
	_ = k.store.Close() // nothing in it is needed any more
}

func (k *stack) register(ctx context.Context, sources ...string) error {
	for _, source := range sources {
		if _, err := k.engine.RegisterDefinition(ctx, []byte(source), definition.YAML); err != nil {
			return err
		}
	}
	return nil
}

// session registers a worker and gives its session id.
func (k *stack) session(ctx context.Context) (string, error) {
	w, err := k.engine.RegisterWorker(ctx, engine.RegisterRequest{
		WorkerID: "bench", Runtime: "go", Contracts: []store.Contract{{TaskName: taskName, ContractVersion: taskVersion}},
	})
	return w.SessionID, err
}

// start starts an execution with the usual document.
func (k *stack) start(ctx context.Context, workflow, id string) error {
	input, err := client.Encode(newDocument(id))
	if err != nil {
		return err
	}
	_, err = k.engine.Start(ctx, engine.StartRequest{Workflow: workflow, ExecutionID: id, Input: exactjson.Value(input)})
	return err
}

// poll takes one task, which must be there.
func (k *stack) poll(ctx context.Context, session string) (engine.Assignment, error) {
	polled, err := k.engine.Poll(ctx, engine.PollRequest{SessionID: session, MaxTasks: 1})
	if err == nil && len(polled.Tasks) != 1 {
		err = fmt.Errorf("poll: expected a task, got %d", len(polled.Tasks))
	}
	if err != nil {
		return engine.Assignment{}, err
	}
	return polled.Tasks[0], nil
}

// complete reports success and, with a session, gives the next task, if any.
func (k *stack) complete(ctx context.Context, a engine.Assignment, session string) (next *engine.Assignment, err error) {
	answer, err := k.engine.Results(ctx, engine.ResultsRequest{Results: []engine.Result{{Token: a.Token, Output: a.Input}}, NextSession: session})
	switch {
	case err != nil:
		return nil, err
	case !answer.Acks[0].Accepted:
		return nil, fmt.Errorf("complete %s: not accepted: %s", a.StepID, answer.Acks[0].Reason)
	case len(answer.Next) > 0:
		return &answer.Next[0], nil
	}
	return nil, nil
}

// through works on an execution, one task after the other, until none is left.
// each is told how long each call took.
func (k *stack) through(ctx context.Context, session string, each func(n int, took time.Duration)) error {
	a, err := k.poll(ctx, session)
	next := &a
	for n := 0; err == nil && next != nil; n++ {
		began := time.Now()
		next, err = k.complete(ctx, *next, session)
		each(n, time.Since(began))
	}
	return err
}

// serve serves the API on a free port and runs a worker of the library on it.
func (k *stack) serve(ctx context.Context, slots int) (c *client.Client, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	srv := &http.Server{Handler: httpapi.New(httpapi.Options{Engine: k.engine, Open: true, HoldPolls: true})}
	go func() { _ = srv.Serve(listener) }() // until it is closed
	url := "http://" + listener.Addr().String()
	w, err := newWorker(url, slots)
	if err == nil {
		c, err = client.New(url, client.Options{})
	}
	if err != nil {
		_ = srv.Close()
		return nil, nil, err
	}
	working, stopWork := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.Run(working) // a refusal shows as executions that do not end
	}()
	return c, func() {
		stopWork()
		<-ended
		_ = srv.Close()
	}, nil
}
