// Package cli is the command line: one small file for each command. A command
// reads its arguments, makes calls, and hands what comes back to
// local/console or local/view; it decides nothing about workflows.
//
// Most commands speak to a server over HTTP. migrate, doctor and token work on
// the database directly, validate and replay on files alone.
//
// Start reading at Main, then the commands listed in root.
package cli
