// Package traceid derives the ids of traces from those of executions: whoever
// knows an execution's id knows its trace, and two processes that never met
// name the same span alike. Nothing is stored.
//
// The ids are those of W3C Trace Context and OpenTelemetry. They are digests,
// so that they look random and tell nothing.
package traceid
