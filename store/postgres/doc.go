// Package postgres keeps executions in Postgres: the store of serverless
// deployments and of servers.
//
// Every method is one batch of statements: one round trip, and one implicit
// transaction (script.go). Only WithHeadLocked and TryDrain, which decide
// between reading and writing, take two. Commits that meet are one batch together
// (group.go). Nothing outlives a call on the
// connection, so that the store runs behind a transaction-pooling proxy
// (Options.Mode), and the SQL keeps to what Aurora DSQL knows, too
// (Options.NoLocks): no foreign keys, sequences or savepoints; arrays only as
// parameters and results. Only the DDL is in two dialects: migrations, and
// migrations_dsql (Options.DSQL).
//
// Locks are taken in one order: heads by their ids, then task rows. A session's row
// is only ever taken with SKIP LOCKED or alone.
//
// The package mirrors store/sqlite, file by file and function by function; of
// commit.go there the heads and the queue stand in files of their own here, and
// writer.go's groups in group.go. Start reading at Open, then commit.go, then
// claim.go.
package postgres
