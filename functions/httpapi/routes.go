package httpapi

// route is one line of the table: what is served, to whom, with which body.
type route struct {
	method, path string
	access       access
	body         body
	handle       func(*server, *call) (answer, error)
	quiet        bool // successes are logged at debug level: calls that come all the time
}

// routes is all that the API serves. Matching, authorization, body limits, the
// Allow header and the comparison with openapi.yaml all read this table.
var routes = []route{
	{"POST", "/v1/definitions", administer, definitionBody, (*server).registerDefinition, false},
	{"POST", "/v1/definitions/validate", read, definitionBody, (*server).validateDefinition, false},
	{"GET", "/v1/definitions", read, noBody, (*server).listDefinitions, false},
	{"GET", "/v1/definitions/{name}", read, noBody, (*server).getDefinition, false},
	{"GET", "/v1/definitions/{name}/{version}/graph", read, noBody, (*server).getGraph, false},
	{"POST", "/v1/definitions/{name}/{version}/retire", administer, optionalBody, (*server).retireDefinition, false},

	{"POST", "/v1/executions", operate, payloadBody, (*server).startExecution, false},
	{"GET", "/v1/executions", read, noBody, (*server).listExecutions, false},
	{"GET", "/v1/executions/{id}", read, noBody, (*server).getExecution, false},
	{"GET", "/v1/executions/{id}/history", read, noBody, (*server).getHistory, false},
	{"POST", "/v1/executions/{id}/cancel", operate, optionalBody, (*server).cancelExecution, false},
	{"POST", "/v1/executions/{id}/signals/{name}", operate, optionalBody, (*server).sendSignal, false},
	{"GET", "/v1/executions/{id}/queries/{name}", read, noBody, (*server).queryExecution, false},

	{"GET", "/v1/workers", read, noBody, (*server).listWorkers, false},
	{"POST", "/v1/workers/register", work, payloadBody, (*server).registerWorker, false},
	{"POST", "/v1/workers/poll", work, payloadBody, (*server).poll, true},
	{"POST", "/v1/workers/heartbeat", work, payloadBody, (*server).heartbeat, true},
	{"POST", "/v1/workers/unregister", work, payloadBody, (*server).unregister, false},
	{"POST", "/v1/tasks/complete", work, reportBody, (*server).complete, false},
	{"POST", "/v1/tasks/fail", work, reportBody, (*server).fail, false},
	{"POST", "/v1/tasks/results", work, resultsBody, (*server).results, false},
	{"POST", "/v1/tasks/progress", work, payloadBody, (*server).progress, true},

	{"GET", "/v1/openapi.yaml", public, noBody, (*server).openAPI, false},
	{"GET", "/docs", public, noBody, (*server).docs, false},
	{"GET", "/healthz", public, noBody, (*server).health, true},
	{"GET", "/readyz", public, noBody, (*server).ready, true},
	{"GET", "/{$}", public, noBody, (*server).home, false},
}

// Route is a route as others may see it.
type Route struct {
	Method string
	Path   string   // with {name} for a path parameter, as in net/http
	Roles  []string // who may call it; nil: everybody
}

// Routes lists what the API serves, in the order of its documentation.
func Routes() []Route {
	list := make([]Route, len(routes))
	for i, rt := range routes {
		list[i] = Route{Method: rt.method, Path: rt.path, Roles: rt.access.roles()}
		if rt.path == "/{$}" {
			list[i].Path = "/"
		}
	}
	return list
}
