// Command push is a worker that does not poll: the server calls it with each
// task, and it reports the result as any worker does. Between calls nothing has
// to run, so it could as well be a function that scales to zero.
//
// docs/push.md says how to try it; worker.py is the same in Python.
package main
