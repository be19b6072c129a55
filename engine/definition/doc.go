// Package definition turns a workflow document, YAML or JSON, into a checked
// Definition: what the decider walks.
//
// Registration is a compiler: Parse reports every fault at once, with line,
// column and a hint. What it accepts has a canonical form (RFC 8785) whose
// hash names it for good; Load makes a Definition of such a stored form again,
// without checking it twice.
//
// The package knows the format and nothing of executions. Start reading at
// Definition, then Parse.
package definition
