package httpapitest

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"perigee/functions/httpapi"
)

// Contract is the OpenAPI document, ready for checking answers.
type Contract struct {
	root     map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	schemas  map[string]*jsonschema.Schema
}

// Operation is one method of one path of the document.
type Operation struct {
	Method string
	Path   string // with {name} for a parameter
	Roles  []string
	node   map[string]any
	at     string // JSON pointer
}

// Addresses of the document within the schema compiler: as it is, and with
// every object closed.
const (
	asIs   = "perigee:///openapi.json"
	closed = "perigee:///closed.json"
)

// LoadContract reads the document that httpapi serves.
var LoadContract = sync.OnceValues(func() (*Contract, error) { return Parse(httpapi.OpenAPI()) })

// Parse reads an OpenAPI document. For answers, objects whose schema names
// members and says nothing of others are closed: a server that sends what is not
// documented breaks its contract, while a client goes by the document as it is.
func Parse(document []byte) (*Contract, error) {
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	c := &Contract{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.UseLoader(noLoader{})
	for _, address := range []string{closed, asIs} {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("read the OpenAPI document: %w", err)
		}
		root, ok := doc.(map[string]any)
		if !ok {
			return nil, errors.New("read the OpenAPI document: expected an object")
		}
		if c.root = root; address == closed {
			closeObjects(object(object(root, "components"), "schemas"))
		}
		if err := c.compiler.AddResource(address, root); err != nil {
			return nil, fmt.Errorf("read the OpenAPI document: %w", err)
		}
	}
	return c, nil
}

// noLoader keeps the compiler from looking for schemas anywhere else.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the OpenAPI document refers to %s: everything must be within it", url)
}

func closeObjects(node any) {
	switch node := node.(type) {
	case map[string]any:
		_, named := node["properties"].(map[string]any)
		if _, said := node["additionalProperties"]; named && !said && node["type"] != nil {
			node["additionalProperties"] = false
		}
		for _, inner := range node {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range node {
			closeObjects(inner)
		}
	}
}

// Operations lists the document's operations by path and method.
func (c *Contract) Operations() []Operation {
	var list []Operation
	for path, item := range object(c.root, "paths") {
		for method, node := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			op := Operation{Method: strings.ToUpper(method), Path: path, node: node.(map[string]any), at: pointer("paths", path, method)}
			op.Roles = texts(op.node["x-perigee-roles"])
			list = append(list, op)
		}
	}
	slices.SortFunc(list, func(a, b Operation) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return list
}

// Summary is the operation's first line.
func (o Operation) Summary() string { return text(o.node["summary"]) }

// Statuses lists the statuses that the operation documents.
func (o Operation) Statuses() []string {
	var list []string
	for status := range object(o.node, "responses") {
		list = append(list, status)
	}
	slices.Sort(list)
	return list
}

// Codes lists the error codes that the operation documents for a status.
func (c *Contract) Codes(o Operation, status string) []string {
	response, _ := c.response(o, status)
	return texts(response["x-perigee-codes"])
}

// Find is the operation for a method and the path of a request.
func (c *Contract) Find(method, path string) (Operation, bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	best, found := Operation{}, false
	for _, op := range c.Operations() {
		// A path without parameters wins over one with: less braces are better.
		if op.Method == method && matches(op.Path, path) && (!found || strings.Count(op.Path, "{") < strings.Count(best.Path, "{")) {
			best, found = op, true
		}
	}
	return best, found
}

func matches(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if !strings.HasPrefix(want[i], "{") && want[i] != got[i] {
			return false
		}
	}
	return true
}

// response resolves what the document says of one status.
func (c *Contract) response(o Operation, status string) (node map[string]any, at string) {
	node, at = object(object(o.node, "responses"), status), o.at+pointer("responses", status)
	for node != nil && node["$ref"] != nil {
		at = strings.TrimPrefix(text(node["$ref"]), "#")
		node = c.lookup(at)
	}
	return node, at
}

func (c *Contract) lookup(at string) map[string]any {
	node := c.root
	for _, token := range strings.Split(at, "/")[1:] {
		node = object(node, unescape.Replace(token))
	}
	return node
}

// CheckResponse holds an answer to the document.
func (c *Contract) CheckResponse(method, path string, status int, header http.Header, body []byte) error {
	if header.Get("X-Request-Id") == "" {
		return errors.New("the header X-Request-Id is missing")
	}
	op, ok := c.Find(method, path)
	if method == http.MethodHead && status >= 400 {
		return nil // without a body there is nothing to look at
	}
	if !ok {
		if status < 400 {
			return fmt.Errorf("%s %s answers %d and is not in the document", method, path, status)
		}
		return c.validate(closed, pointer("components", "schemas", "Error"), body)
	}
	node, at := c.response(op, fmt.Sprint(status))
	if node == nil {
		return fmt.Errorf("%s %s answers %d, the document has: %s; the body is %.300s", method, op.Path, status, strings.Join(op.Statuses(), ", "), body)
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		if header.Get("Retry-After") == "" {
			return fmt.Errorf("the header Retry-After is missing from a %d", status)
		}
	}
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("Content-Type: %w", err)
	}
	if object(object(node, "content"), kind) == nil {
		return fmt.Errorf("the answer is %s, the document has no such content for %d", kind, status)
	}
	if kind != "application/json" || method == http.MethodHead {
		return nil
	}
	if err := c.validate(closed, at+pointer("content", kind, "schema"), body); err != nil {
		return err
	}
	return c.checkCode(op, status, body)
}

// checkCode compares an error's code with those documented for its status.
func (c *Contract) checkCode(op Operation, status int, body []byte) error {
	if status < 400 {
		return nil
	}
	answer, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	code, codes := text(answer.(map[string]any)["code"]), c.Codes(op, fmt.Sprint(status))
	if !slices.Contains(codes, code) {
		return fmt.Errorf("%d has the code %s, the document has: %s", status, code, strings.Join(codes, ", "))
	}
	return nil
}

// CheckRequest holds a JSON body to the document. A nil error for a body that
// has a member which the document does not name means that it takes others.
func (c *Contract) CheckRequest(method, path string, body []byte) error {
	op, ok := c.Find(method, path)
	if !ok {
		return fmt.Errorf("%s %s is not in the document", method, path)
	}
	return c.validate(asIs, op.at+pointer("requestBody", "content", "application/json", "schema"), body)
}

func (c *Contract) validate(address, at string, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("expected JSON: %w; got %.300q", err, body)
	}
	schema, err := c.schema(address + "#" + at)
	if err != nil {
		return err
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%w; got %.300s", err, body)
	}
	return nil
}

func (c *Contract) schema(at string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.schemas[at]; s != nil {
		return s, nil
	}
	s, err := c.compiler.Compile(at)
	if err == nil {
		c.schemas[at] = s
	}
	return s, err
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "$", "%24")
	unescape = strings.NewReplacer("~1", "/", "~0", "~", "%7B", "{", "%7D", "}", "%24", "$")
)

func pointer(tokens ...string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteByte('/')
		b.WriteString(escape.Replace(token))
	}
	return b.String()
}

func object(node map[string]any, key string) map[string]any {
	inner, _ := node[key].(map[string]any)
	return inner
}

func text(node any) string {
	s, _ := node.(string)
	return s
}

func texts(node any) []string {
	list, _ := node.([]any)
	var out []string
	for _, one := range list {
		out = append(out, text(one))
	}
	return out
}
