// Package postgres keeps executions in Postgres: the store of serverless
// deployments and of servers.
//
// Every method is one batch of statements: one round trip, and one implicit
// transaction (script.go). Only WithHeadLocked and TryDrain, which decide
// between reading and writing, take two. Nothing outlives a call on the
// connection, so that the store runs behind a transaction-pooling proxy
// (Options.Mode), and the SQL keeps to what Aurora DSQL knows, too
// (Options.NoLocks): no foreign keys, sequences or savepoints; arrays only as
// parameters and results. Only the DDL is in two dialects: migrations, and
// migrations_dsql (Options.DSQL).
//
// Locks are taken in one order: the head, then its task rows. A session's row
// is only ever taken with SKIP LOCKED or alone.
//
// The package mirrors store/sqlite, file by file and function by function.
// Start reading at Open, then commit.go, then claim.go.
package postgres
