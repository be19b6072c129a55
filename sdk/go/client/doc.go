// Package client is a typed client of Perigee's HTTP API: one method for each
// route, for programs that start and read executions and for worker libraries.
//
// Every call may be repeated by the caller and is repeated by the client while
// the server is away: ids that make a repetition harmless (execution_id,
// signal_id, poll_id) are made before the first try where the caller gives
// none. Payloads are json.RawMessage and pass through untouched, so that
// numbers keep their digits.
//
// The package knows the wire alone and nothing of the engine behind it. Start
// reading at Client, then call.go (one call with its repetitions).
package client
