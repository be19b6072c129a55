// Package sqlite keeps executions in one SQLite file, or in memory: the store
// of the local server, of simulations and of tests.
//
// SQLite has one writer at a time, so a store has one writing connection, owned
// by one goroutine (writer.go). Writes wait in its queue; it takes all that
// wait, runs them in one transaction, commits, and only then answers: one flush
// to the disk serves the group. Reads use a few connections
// of their own, each with prepared statements (conn.go); write-ahead logging
// lets them go on beside the writer.
//
// Other processes may open the same file. Whoever writes waits for the others
// up to the busy time-out.
//
// The package mirrors store/postgres, file by file and function by function.
// Start reading at Open, then commit.go.
package sqlite
