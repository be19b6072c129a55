// Package traces sends what executions did to a collector of OpenTelemetry, as
// spans in OTLP over HTTP: a span for each execution and each attempt. It is
// written by hand, since OpenTelemetry's SDK weighs more than all of a function
// may (docs/decisions/0022-spans-without-an-sdk.md).
//
// Nothing waits for it, and nothing fails with it: what the collector does not
// take in time is dropped and counted.
//
// Start reading at Exporter, then spanOf.
package traces
