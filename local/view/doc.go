// Package view shows an execution to a person: its steps as a tree with their
// attempts, what each waits for and since when, and its history line by line.
//
// It works on a history and, where there is one, on the definition; it asks no
// server and no clock, so that the same input gives the same text.
//
// Start reading at Of (the model), then Write.
package view
