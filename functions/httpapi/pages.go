package httpapi

import (
	_ "embed"
	"errors"

	"perigee/engine"
)

// document is the contract of the API.
//
//go:embed openapi.yaml
var document []byte

// docsPage is a rendering of document for people, made from it by the test of
// this file (go test -run TestDocs -update): it costs the server nothing and
// loads nothing from elsewhere.
//
//go:embed docs.html
var docsPage []byte

//go:embed home.html
var homePage []byte

// OpenAPI is the OpenAPI 3.1 document of the API, as YAML.
func OpenAPI() []byte { return document }

const html = "text/html; charset=utf-8"

func (s *server) openAPI(*call) (answer, error) {
	return answer{contentType: "application/yaml; charset=utf-8", body: document}, nil
}

func (s *server) docs(*call) (answer, error) { return answer{contentType: html, body: docsPage}, nil }

func (s *server) home(*call) (answer, error) { return answer{contentType: html, body: homePage}, nil }

// health says that the process serves.
func (s *server) health(*call) (answer, error) {
	return answer{body: []byte(`{"status":"ok"}`)}, nil
}

// ready says that calls would be served now.
func (s *server) ready(c *call) (answer, error) {
	if s.Ready != nil {
		err := s.Ready(c.Context())
		var known *engine.Error
		switch {
		case errors.As(err, &known):
			return answer{}, known // such as a schema of another release
		case err != nil:
			return answer{}, &engine.Error{Code: engine.Unavailable, Message: "the database does not answer", Cause: err}
		}
	}
	return answer{body: []byte(`{"status":"ok"}`)}, nil
}
