// Package httpapi is Perigee's HTTP interface: one http.Handler with every route
// of the API and of the worker protocol, the same on AWS Lambda and in the
// local server.
//
// A handler reads a body or a query, makes one call to the engine and writes
// the answer. Whatever all routes share happens once, before and after it: the
// request id, who calls and whether that role may, the body's type and size,
// the one shape of errors, the access log, and catching a panic. The contract
// is the OpenAPI document openapi.yaml, which tests compare with the table of
// routes and with real answers.
//
// The package knows nothing of stores, of AWS or of how a server listens, and
// decides nothing about workflows.
//
// Start reading at the table in routes.go, then serve in serve.go.
package httpapi
