package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Media types of definitions.
const (
	YAML = "application/yaml"
	JSON = "application/json"
)

// Fault is one thing that registration found in a definition, or that is wrong
// with a call; see Faults.
type Fault struct {
	Code     string `json:"code"`
	Severity string `json:"severity"` // "error" or "warning"
	Line     int    `json:"line"`     // from 1; 0 where there is no text
	Column   int    `json:"column"`   // from 1, in characters
	Path     string `json:"path"`     // JSON pointer into the document
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

// Registered is the answer to a registration.
type Registered struct {
	Name           string  `json:"name"`
	Version        string  `json:"version"`
	DefinitionHash string  `json:"definition_hash"`
	Created        bool    `json:"created"` // false: the same content was there
	Warnings       []Fault `json:"warnings,omitempty"`
}

// Validation is the answer to a dry run of a registration.
type Validation struct {
	Valid  bool    `json:"valid"`
	Faults []Fault `json:"faults"`
}

// Definition is one registered version of a workflow.
type Definition struct {
	Name           string          `json:"name"`
	Version        string          `json:"version"`
	DefinitionHash string          `json:"definition_hash"`
	Description    string          `json:"description,omitempty"`
	Retired        bool            `json:"retired,omitempty"`
	CreatedAtMS    int64           `json:"created_at_ms"`
	Definition     json.RawMessage `json:"definition,omitempty"` // canonical form; nil in lists
}

// Graph is a definition as a picture: nodes and edges as the server gives them.
type Graph struct {
	Nodes []json.RawMessage `json:"nodes"`
	Edges []json.RawMessage `json:"edges"`
}

// RegisterDefinition registers a definition; mediaType is YAML or JSON. A
// refusal INVALID_DEFINITION lists its faults, see Faults.
func (c *Client) RegisterDefinition(ctx context.Context, source []byte, mediaType string) (Registered, error) {
	var out Registered
	err := c.call(ctx, Request{Method: http.MethodPost, Path: "/v1/definitions", ContentType: mediaType, Body: orEmpty(source)}, &out)
	return out, err
}

// ValidateDefinition checks a definition and registers nothing.
func (c *Client) ValidateDefinition(ctx context.Context, source []byte, mediaType string) (Validation, error) {
	var out Validation
	err := c.call(ctx, Request{Method: http.MethodPost, Path: "/v1/definitions/validate", ContentType: mediaType, Body: orEmpty(source)}, &out)
	return out, err
}

// Faults reads the faults out of a refusal that lists them: INVALID_DEFINITION,
// and with Path and Message alone INVALID_REQUEST, INVALID_INPUT and
// SIGNAL_PAYLOAD_INVALID. nil where err is something else.
func Faults(err error) []Fault {
	var details struct {
		Faults []Fault `json:"faults"`
	}
	if e, ok := asError(err); ok && e.Details != nil && json.Unmarshal(e.Details, &details) == nil {
		return details.Faults
	}
	return nil
}

// Definitions lists the registered definitions.
func (c *Client) Definitions(ctx context.Context) ([]Definition, error) {
	var out struct {
		Definitions []Definition `json:"definitions"`
	}
	err := c.get(ctx, "/v1/definitions", 0, &out)
	return out.Definitions, err
}

// Definition reads one definition; version "" is the default one.
func (c *Client) Definition(ctx context.Context, name, version string) (Definition, error) {
	path := "/v1/definitions/" + url.PathEscape(name)
	if version != "" {
		path += "?version=" + url.QueryEscape(version)
	}
	var out Definition
	err := c.get(ctx, path, 0, &out)
	return out, err
}

// Graph reads the graph of one version.
func (c *Client) Graph(ctx context.Context, name, version string) (Graph, error) {
	var out Graph
	err := c.get(ctx, versionPath(name, version)+"/graph", 0, &out)
	return out, err
}

// Retire takes a version out of the choice of the default one.
func (c *Client) Retire(ctx context.Context, name, version string) error {
	return c.call(ctx, Request{Method: http.MethodPost, Path: versionPath(name, version) + "/retire", Body: []byte("{}")}, nil)
}

func versionPath(name, version string) string {
	return "/v1/definitions/" + url.PathEscape(name) + "/" + url.PathEscape(version)
}

// orEmpty keeps an empty document a body: it is the server that says what is
// wrong with it.
func orEmpty(source []byte) []byte {
	if source == nil {
		return []byte{}
	}
	return source
}
