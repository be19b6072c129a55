// Package decide says what happens next to an execution: a pure function of
// its state, its definition, the limits and the time.
//
//	Decide(state, definition, limits, now) -> events    [] means "nothing now"
//	Wake(state, definition, limits)        -> the next moment at which it would say something
//
// There is no clock, randomness, goroutine or I/O in here, and no result
// depends on the order of a map. The rules have numbers in the comments: they
// are those of docs/semantics.md.
//
// A Machine is the same function made incremental: it keeps indexes beside the
// state (what is open, which moment comes next, how far a fan-out is), so that
// the cost of a decision follows what changed and not how many units there
// are. Clone is cheap, and a clone that loses its race is thrown away.
//
// Start reading at Machine.Run, then running.go and unwind.go.
package decide
