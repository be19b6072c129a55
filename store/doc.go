// Package store says what the engine needs of a database: a few whole
// transitions, each one round trip and at most one commit, and the rows that
// they carry. store/postgres and store/sqlite implement it; store/storetest is
// the suite that defines it for both.
//
// The store keeps histories (the truth) and projections of them (heads, tasks,
// outbox rows) which are written in the same commit and can be rebuilt. It
// decides nothing: what an event means is known to engine/history alone.
//
// Start reading at Store, then Commit, then Claim.
package store
