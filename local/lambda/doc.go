// Package lambda runs the functions on one machine as AWS does: the bootstrap
// binaries as processes of their own under a Lambda Runtime API, behind the
// front of an HTTP API with payload format 2.0, with a schedule that calls the
// tick function. It is what one develops the functions with where there are no
// containers, and what their tests run on.
//
// It keeps what makes Lambda different from a server: a process serves one call
// at a time and is stopped (SIGSTOP) between calls; calls at once need
// processes at once, and beyond a number are throttled; a call that takes too
// long ends with its process; requests and answers of more than 6 MB are
// refused. On demand (Options.Churn, Options.Failures) processes are replaced
// between calls, and calls fail as they do at a provider.
//
// Start reading at Run, then Function.Call, then sandbox.
package lambda
