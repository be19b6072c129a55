// Package schema checks JSON values against JSON Schema 2020-12 and fills in
// the defaults that a schema names.
//
// Numbers are compared exactly and every violation is reported with its place.
// Nothing is ever loaded: a $ref outside the document is refused.
package schema
