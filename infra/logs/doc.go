// Package logs makes the functions' logger: a line of JSON for each record,
// with the names that Lambda's log format uses (timestamp, level, message), and
// with what the context tells of the call: the invocation, and whatever With
// has attached.
//
// A record about an execution also gets the id of its trace, so that a line
// leads to the trace and back without either side keeping a table.
//
// Start reading at New.
package logs
