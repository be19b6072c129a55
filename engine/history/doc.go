// Package history holds what happened to an execution: the event types, their
// JSON form, the state that they fold to and the snapshot of such a state.
//
// History is the only truth about an execution. State is the left fold of its
// events; the fold is total, so that a history written by an older or a newer
// release never makes it fail. The package decides nothing and imports no
// clock, randomness, network or database.
//
// Start reading at Event (the vocabulary), then State and State.Apply.
package history
