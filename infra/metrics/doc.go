// Package metrics counts what a function does and writes it into its log, in
// CloudWatch's embedded metric format: no call to anything, and nothing that
// could fail or slow a call. One line for each call that changed something.
//
// Start reading at Recorder.
package metrics
