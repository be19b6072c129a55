package httpapi_test

import (
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"perigee/engine/exactjson"
	"perigee/functions/httpapi"
	"perigee/functions/httpapi/httpapitest"
)

var fuzzContentTypes = []string{"application/json", "application/yaml", "application/json; charset=utf-8", "text/plain", ""}

// FuzzBody sends any body to any route that reads one. No answer is a 5xx or
// breaks the document, and what the document's schema refuses is refused.
func FuzzBody(f *testing.F) {
	var routes []string
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		if strings.HasPrefix(name, "POST") {
			routes = append(routes, name)
		}
	}
	for i, name := range routes {
		for _, e := range examples[name] {
			f.Add(uint8(i), uint8(0), []byte(e.Body))
		}
	}
	contract, err := httpapitest.LoadContract()
	if err != nil {
		f.Fatal(err)
	}
	handler := httpapi.New(httpapi.Options{Engine: &fakeEngine{}, Open: true, MaxPayloadBytes: 256})
	f.Fuzz(func(t *testing.T, route, contentType uint8, body []byte) {
		name := routes[int(route)%len(routes)]
		path := examples[name][0].Path
		r := httptest.NewRequest("POST", path, strings.NewReader(string(body)))
		r.Host = "localhost"
		r.Header.Set("Content-Type", fuzzContentTypes[int(contentType)%len(fuzzContentTypes)])
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("%s: got %d %s", name, w.Code, w.Body)
		}
		if err := contract.CheckResponse("POST", path, w.Code, w.Header(), w.Body.Bytes()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		v, err := exactjson.ParseDepth(body, exactjson.MaxDepth+1)
		if w.Code >= 400 || isDefinition(name) || len(body) == 0 {
			return
		}
		if err != nil && name != "POST /v1/tasks/results" {
			t.Fatalf("%s: took %q, which is not JSON that can be taken: %v", name, body, err)
		}
		if v.Absent() {
			return // a batch with one payload that cannot be taken
		}
		if err := contract.CheckRequest("POST", path, []byte(v)); err != nil {
			t.Fatalf("%s: took what the document refuses: %v", name, err)
		}
	})
}

// FuzzTarget sends any path and query.
func FuzzTarget(f *testing.F) {
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		method, _, _ := strings.Cut(name, " ")
		for _, e := range examples[name] {
			path, query, _ := strings.Cut(e.Path, "?")
			f.Add(method, path, query)
		}
	}
	for _, query := range []string{"tag.=1", "tag.%ff=%00", "limit=1&limit=2", "a;b", "%zz", "wait_ms=9999999999999999999", "cursor=" + strings.Repeat("x", 5000)} {
		f.Add("GET", "/v1/executions", query)
	}
	contract, err := httpapitest.LoadContract()
	if err != nil {
		f.Fatal(err)
	}
	handler := httpapi.New(httpapi.Options{Engine: &fakeEngine{}, Open: true})
	f.Fuzz(func(t *testing.T, method, path, query string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Method, r.Host = method, "localhost"
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery = path, "", query
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
		if err := contract.CheckResponse(method, r.URL.EscapedPath(), w.Code, w.Header(), w.Body.Bytes()); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzEnvelope holds the reader of broken reports to the strict parser: where
// that takes a report, both read the same, so no payload is called broken.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{`{"token":"t","output":{"a":[1,"]}"]}}`, "{ \"token\" : \"t\" ,\n\"output\" :1.0 }", `{"token":"t","output":"\ud800"}`, `{"token":"t","output":]}`, `{"token":"t","output":1 2}`} {
		f.Add(seed)
	}
	s := &fakeEngine{}
	handler := httpapi.New(httpapi.Options{Engine: s, Open: true})
	f.Fuzz(func(t *testing.T, element string) {
		send := func(path, body string) int {
			r := httptest.NewRequest("POST", path, strings.NewReader(body))
			r.Host = "localhost"
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w.Code
		}
		v, err := exactjson.ParseDepth([]byte(element), exactjson.MaxDepth)
		if err != nil || v.Kind() != exactjson.KindObject {
			return
		}
		one, many := send("/v1/tasks/complete", element), send("/v1/tasks/results", `{"results": [ `+element+` ] }`)
		if one == 200 && v.Get("error").IsNull() && many != 200 {
			t.Fatalf("complete answers %d, results %d", one, many)
		}
	})
}
