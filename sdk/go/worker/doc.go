// Package worker runs the tasks of Perigee workflows: a program registers
// handlers for task names and versions and calls Run.
//
//	c, err := client.New("http://127.0.0.1:7474", client.Options{})
//	…
//	w, err := worker.New(c, worker.Options{WorkerID: "warehouse-1", Concurrency: 16})
//	…
//	w.Handle("inventory.reserve", "1.0.0", reserve)
//	err = w.Run(ctx)
//
// A task may be handed out more than once: when its worker died, was silent
// for too long or lost the answer. Handlers use Task.IdempotencyKey, which is
// the same each time, to do their work once.
//
// A handler's context ends when the attempt's time is over, when the execution
// no longer wants the result (cause ErrCancelled) and when the worker has to
// stop (cause ErrStopping). What a handler returns is reported until the
// server has acknowledged it, through outages of the server too.
//
// Start reading at Worker.Run, then chain.go (the life of one task).
package worker
