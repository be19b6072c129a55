package httpapitest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"perigee/engine"
	"perigee/engine/exactjson"
	"perigee/functions/httpapi"
)

// Server is a handler under test.
type Server struct {
	Handler  http.Handler
	Contract *Contract
}

// NewServer makes the handler. Calls go in without a network.
func NewServer(t testing.TB, opts httpapi.Options) *Server {
	t.Helper()
	contract, err := LoadContract()
	if err != nil {
		t.Fatal(err)
	}
	return &Server{Handler: httpapi.New(opts), Contract: contract}
}

// Request is a call. Only Path has to be there.
type Request struct {
	Method      string // "": POST with a body, else GET
	Path        string // with the query
	Body        string
	ContentType string // "": application/json where there is a body; "none": none
	Host        string // "": 127.0.0.1:7474
	Header      map[string]string
	Identity    *engine.Identity // who calls, as another authorizer would say
}

// Response is its answer.
type Response struct {
	Status int
	Header http.Header
	Body   string
}

// JSON is a member of the answer's body, absent if there is none.
func (r Response) JSON(name string) exactjson.Value {
	v, err := exactjson.Parse([]byte(r.Body))
	if err != nil {
		return ""
	}
	return v.Get(name)
}

// Code is the code of an answer that is an error, else "".
func (r Response) Code() string {
	code, _ := r.JSON("code").Text()
	return code
}

// Do makes the call and fails the test where the answer breaks the contract.
func (s *Server) Do(t testing.TB, req Request) Response {
	t.Helper()
	r := httptest.NewRequest(req.method(), req.Path, strings.NewReader(req.Body))
	r.Host = "127.0.0.1:7474"
	if req.Host != "" {
		r.Host = req.Host
	}
	switch {
	case req.ContentType == "none":
	case req.ContentType != "":
		r.Header.Set("Content-Type", req.ContentType)
	case req.Body != "":
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range req.Header {
		r.Header.Set(name, value)
	}
	if req.Identity != nil {
		r = r.WithContext(httpapi.WithIdentity(r.Context(), *req.Identity))
	}
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	got := Response{Status: w.Code, Header: w.Header(), Body: w.Body.String()}
	if err := s.Contract.CheckResponse(r.Method, r.URL.EscapedPath(), got.Status, got.Header, w.Body.Bytes()); err != nil {
		t.Errorf("%s %s: %v", r.Method, req.Path, err)
	}
	return got
}

func (r Request) method() string {
	switch {
	case r.Method != "":
		return r.Method
	case r.Body != "":
		return http.MethodPost
	}
	return http.MethodGet
}
