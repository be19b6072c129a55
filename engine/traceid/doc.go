// Package traceid derives the ids of traces from those of executions, so that
// two processes that never met name the same span alike. Of a child execution one
// has to know which stands at the top of its family, too; nothing else is stored.
//
// The ids are those of W3C Trace Context and OpenTelemetry. They are digests,
// so that they look random and tell nothing.
package traceid
