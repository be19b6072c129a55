// Package simulation runs the real engine on a real store under a seed:
// random definitions, random workers, random crashes and lost replies at the
// store calls by which it decides, hands out and takes in, random steps of the
// clock. After every turn it holds the histories against the invariants, and at
// the end every projection against its history.
//
// Everything happens in one goroutine and every choice comes from the seed, so
// a failing seed replays exactly. Races are made by letting another process
// work between a call's load and its commit.
//
// Start reading at World.Run.
package simulation
