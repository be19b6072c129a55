// Package config holds the settings of a server: one table that says of each
// its flag, its environment variable, its default and its meaning. The local
// server, the functions and docs/operations.md all follow this table.
//
// A flag goes before its variable, a variable before the default. Whatever is
// wrong is told at once, each fault with the place that it came from.
//
// The package reads no environment and no command line by itself: callers hand
// in what they have. Start reading at table in table.go, then Load.
package config
