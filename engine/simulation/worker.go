package simulation

import (
	"context"
	"fmt"
	"time"

	"perigee/engine"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/store"
)

// worker is a simulated worker process: it succeeds, fails, falls silent,
// repeats itself and comes late.
type worker struct {
	id      string
	session string
	pollID  string // of a poll whose answer was lost: it is repeated
	held    []engine.Assignment
	old     []engine.Result // sent before, or never: sent (again) later
	silent  bool
}

// someWorker gives a worker with a session; it registers one where needed.
func (w *World) someWorker() *worker {
	if len(w.workers) < w.opts.Workers {
		w.workers = append(w.workers, &worker{id: fmt.Sprintf("w%d", len(w.workers))})
	}
	wk := w.workers[w.rand.IntN(len(w.workers))]
	if wk.session != "" && (!wk.silent || !w.faults) {
		return wk
	}
	if wk.silent && !chance(w.rand, 30) && w.faults {
		return nil
	}
	wk.silent, wk.session, wk.pollID = false, "", ""
	w.use(func(e *engine.Engine) {
		r, err := e.RegisterWorker(context.Background(), engine.RegisterRequest{
			WorkerID: wk.id, Runtime: "go",
			Contracts: []store.Contract{{TaskName: taskPlain, ContractVersion: "1.0.0"}, {TaskName: taskStrict, ContractVersion: "1.0.0"}, {TaskName: taskUndo, ContractVersion: "1.0.0"}},
		})
		if w.tolerate(r, err) {
			wk.session = r.SessionID
		}
	})
	if wk.session == "" {
		return nil
	}
	return wk
}

func (w *World) workerPolls() {
	wk := w.someWorker()
	if wk == nil {
		return
	}
	if wk.pollID == "" {
		wk.pollID = w.newID()
	}
	w.use(func(e *engine.Engine) {
		p, err := e.Poll(context.Background(), engine.PollRequest{SessionID: wk.session, PollID: wk.pollID, MaxTasks: 1 + w.rand.IntN(3)})
		if !w.tolerate(p, err) {
			wk.lostSession(err)
			return
		}
		if len(p.Tasks) > 0 && w.faults && chance(w.rand, 5) {
			w.count("fault: poll answer lost")
			return // the same poll_id again gives the same tasks
		}
		wk.pollID = ""
		wk.held = append(wk.held, p.Tasks...)
	})
}

func (wk *worker) lostSession(err error) {
	if engine.CodeOf(err) == engine.UnknownSession {
		wk.session = ""
	}
}

// workerReports lets a worker say something of a task that it holds or held.
func (w *World) workerReports() {
	if len(w.workers) == 0 {
		return
	}
	wk := w.workers[w.rand.IntN(len(w.workers))]
	if len(wk.old) > 0 && chance(w.rand, 15) {
		w.count("worker: repeats or comes late")
		w.send(wk, wk.old[w.rand.IntN(len(wk.old))], false)
		return
	}
	if len(wk.held) == 0 {
		return
	}
	i := w.rand.IntN(len(wk.held))
	task := wk.held[i]
	wk.held = append(wk.held[:i:i], wk.held[i+1:]...)
	switch n := w.rand.IntN(100); {
	case n < 55:
		w.send(wk, w.success(task), true)
	case n < 62:
		w.send(wk, engine.Result{Token: task.Token, Output: pick[exactjson.Value](w.rand, `{"no":1}`, `[1]`, `"x"`)}, true)
	case n < 80:
		w.send(wk, w.failure(task), true)
	case n < 83:
		w.send(wk, engine.Result{Token: task.Token, TooLarge: "the output has 5000 bytes"}, true)
	default:
		w.count("worker: silent about a task")
		wk.old = append(wk.old, w.success(task))
	}
}

func (w *World) success(task engine.Assignment) engine.Result {
	return engine.Result{Token: task.Token, Output: exactjson.Value(fmt.Sprintf(`{"ok":true,"by":%s,"n":%d}`, exactjson.FromString(task.StepID), w.rand.IntN(3)))}
}

func (w *World) failure(task engine.Assignment) engine.Result {
	r := engine.Result{Token: task.Token, Error: &history.TaskError{
		Code: pick(w.rand, "DECLINED", "BROKEN", "TIMEOUT"), Message: "said the worker", Retryable: chance(w.rand, 70),
	}}
	if chance(w.rand, 15) {
		after := time.Duration(w.rand.IntN(3000)) * time.Millisecond
		r.RetryAfter = &after
	}
	return r
}

// send reports a result, again where the answer was lost.
func (w *World) send(wk *worker, r engine.Result, keep bool) {
	req := engine.ResultsRequest{Results: []engine.Result{r}}
	if chance(w.rand, 50) {
		req.NextSession, req.NextMax = wk.session, 1+w.rand.IntN(2)
	}
	if keep {
		wk.old = append(wk.old, r)
	}
	for range 4 {
		answered := false
		w.use(func(e *engine.Engine) {
			a, err := e.Results(context.Background(), req)
			if answered = w.tolerate(a, err); !answered {
				return
			}
			w.heard(r, a.Acks[0])
			if a.NextError != "" {
				wk.session = ""
			}
			if len(a.Next) > 0 && w.faults && chance(w.rand, 5) {
				w.count("fault: next answer lost")
				answered = false // asked again, the same tasks come again
				return
			}
			wk.held = append(wk.held, a.Next...)
		})
		if answered || w.err != nil {
			return
		}
	}
}

// heard remembers what an ack promises.
func (w *World) heard(r engine.Result, ack engine.Ack) {
	if !ack.Accepted {
		w.count("ack: " + ack.Reason)
		return
	}
	w.count("ack: accepted")
	execution, unit, token := splitToken(r.Token)
	w.promise(execution, "result of "+unit, func(m *model) bool { return m.recorded[unit+" "+token] })
}

func (w *World) reportHonestly(wk *worker, task engine.Assignment) {
	wk.held = wk.held[1:]
	w.send(wk, engine.Result{Token: task.Token, Output: `{"ok":true}`}, false)
}

func (w *World) workerBeats() {
	if len(w.workers) == 0 {
		return
	}
	wk := w.workers[w.rand.IntN(len(w.workers))]
	if wk.session == "" || wk.silent {
		return
	}
	var tokens []string
	if chance(w.rand, 70) {
		tokens = []string{}
		for _, t := range wk.held {
			tokens = append(tokens, t.Token)
		}
		for _, r := range wk.old {
			tokens = append(tokens, r.Token)
		}
	}
	w.use(func(e *engine.Engine) {
		cancel, err := e.Heartbeat(context.Background(), wk.session, tokens)
		if !w.tolerate(cancel, err) {
			wk.lostSession(err)
			return
		}
		if len(cancel) > 0 {
			w.count("heartbeat: cancel")
		}
		for _, token := range cancel {
			for i, t := range wk.held {
				if t.Token == token && chance(w.rand, 70) {
					wk.held = append(wk.held[:i:i], wk.held[i+1:]...)
					break
				}
			}
		}
	})
}

// workerLeaves ends a worker: with or without a word.
func (w *World) workerLeaves() {
	if len(w.workers) == 0 {
		return
	}
	wk := w.workers[w.rand.IntN(len(w.workers))]
	for _, t := range wk.held {
		wk.old = append(wk.old, w.success(t))
	}
	wk.held = nil
	if chance(w.rand, 60) {
		w.count("worker: dies")
		wk.silent = true
		return
	}
	if wk.session != "" {
		w.count("worker: unregisters")
		w.use(func(e *engine.Engine) { w.tolerate(nil, e.Unregister(context.Background(), wk.session)) })
		wk.session = ""
	}
}

func (w *World) workerProgress() {
	if len(w.workers) == 0 {
		return
	}
	wk := w.workers[w.rand.IntN(len(w.workers))]
	if len(wk.held) == 0 {
		return
	}
	task := wk.held[w.rand.IntN(len(wk.held))]
	w.use(func(e *engine.Engine) {
		_, _, err := e.Progress(context.Background(), task.Token, exactjson.Value(fmt.Sprintf(`{"done":%d}`, w.rand.IntN(100))))
		w.tolerate(nil, err)
	})
}
