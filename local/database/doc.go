// Package database opens the store that a person names: a file of SQLite or the
// URL of a Postgres database. The commands that work on a database directly
// and the local server share it.
//
// Start reading at Open.
package database
