// Package engine is Perigee's use cases: start, signal, cancel, query, poll,
// complete, heartbeat, tick. Each is one pass of load → fold → apply the
// command → decide to the fixpoint → one commit, under an optimistic check of
// the sequence number, and keeps nothing in memory that correctness needs.
//
// The rules of what happens next live in engine/decide, what an event means in
// engine/history, what a definition says in engine/definition, and SQL in the
// stores. The engine joins them, and knows nothing of HTTP or of AWS.
//
// Start reading at Engine, then call.go (the one pass).
package engine
