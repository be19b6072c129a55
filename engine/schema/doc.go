// Package schema checks JSON values against JSON Schema 2020-12 and fills in
// the defaults that a schema names.
//
// Numbers are compared exactly and every violation is reported with its place.
// Nothing is ever loaded: a $ref outside the document is refused.
//
// Validation itself is that of santhosh-tekuri/jsonschema. What is ours is the
// view of a schema as a graph of nodes (graph), which finds the default of an
// absent property and answers whether a schema lists a field; values stay text
// there, so that nothing but the added defaults changes.
//
// Start reading at Schema, Compile and Apply.
package schema
