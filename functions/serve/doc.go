// Package serve joins an instance with the HTTP API: what the functions api and
// worker run. Both serve every route; which calls reach which is the gateway's
// to say. It is the same handler that the local server runs, without waiting
// (Lambda bills for it) and without tokens' exception for loopback.
//
// Start reading at Function.
package serve
