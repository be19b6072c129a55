// Package server is the local server: one process that serves the API on a
// database and looks after time itself, for development and for machines of
// one's own.
//
// It joins a store, the engine and the HTTP handler, all of which know nothing
// of it. Without API tokens it listens on loopback alone; it begins to serve
// only when everything works, and ends gracefully.
//
// Start reading at Run.
package server
