// Package httpapitest helps tests that speak to the HTTP API: it calls a handler
// in this process and holds every answer to the OpenAPI document.
//
// It is for tests only and reaches no binary. Start reading at Server.
package httpapitest
