package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"perigee/engine"
	"perigee/engine/decide"
	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
)

const (
	defaultTimeout = 30 * time.Second
	// longestTimeout leaves time to report within an attempt's deadline, which
	// is five minutes where a step sets none.
	longestTimeout = 4 * time.Minute
	// longestWait is what an answer's Retry-After can ask for at most.
	longestWait = time.Hour
)

// retryStatuses are answers that another try may better.
var retryStatuses = []int{408, 429, 500, 502, 503, 504}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// managed are headers that belong to the connection, not to its user.
var managed = []string{
	"Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// HTTPRequest runs the built-in task http.request: docs/http-request.md says
// what goes in and what comes out. It fits engine.Options.HTTPRequest.
func (c *Client) HTTPRequest(ctx context.Context, input exactjson.Value) (exactjson.Value, *engine.Failure) {
	call, fail := c.prepare(ctx, input)
	if fail != nil {
		return "", fail
	}
	ctx, cancel := context.WithTimeout(ctx, call.timeout)
	defer cancel()
	resp, err := c.Send(ctx, call.Request)
	if err != nil {
		return "", call.sendFailure(err)
	}
	if slices.Contains(call.retry, resp.Status) {
		return "", call.statusFailure(resp, c.now())
	}
	output := call.output(resp)
	if len(output) > c.maxBytes {
		return "", failure(decide.CodePayloadTooLarge, "%s: the answer as JSON has %d bytes; the limit is %d", call.where(), len(output), c.maxBytes)
	}
	return output, nil
}

// call is an input of http.request, made ready.
type call struct {
	Request
	timeout time.Duration
	retry   []int
	secrets []string // that were looked up
}

// where names the call in messages.
func (c *call) where() string { return c.Method + " " + shown(c.URL) }

func (c *call) scrub() scrubber { return newScrubber(c.secrets) }

// prepare reads an input and looks its secrets up.
func (c *Client) prepare(ctx context.Context, input exactjson.Value) (*call, *engine.Failure) {
	call := &call{Request: Request{Method: "GET", Header: http.Header{}, Redirects: maxRedirects}, timeout: defaultTimeout, retry: retryStatuses}
	if input.Kind() != exactjson.KindObject {
		return nil, wrongInput("expected an object, got %s", input.Kind())
	}
	var headers exactjson.Value
	for key, value := range input.Members() {
		var fail *engine.Failure
		switch key {
		case "method":
			fail = call.readMethod(value)
		case "url":
			fail = call.readURL(value)
		case "headers":
			headers = value // after the body, whose type they may name
		case "body":
			call.readBody(value)
		case "timeout":
			fail = call.readTimeout(value)
		case "retry_statuses":
			fail = call.readStatuses(value)
		default:
			fail = wrongInput("unknown key %q; known: method, url, headers, body, timeout, retry_statuses", key)
		}
		if fail != nil {
			return nil, fail
		}
	}
	if call.URL == nil {
		return nil, wrongInput("url is missing")
	}
	if fail := c.readHeaders(ctx, call, headers); fail != nil {
		return nil, fail
	}
	return call, nil
}

func (c *call) readMethod(v exactjson.Value) *engine.Failure {
	text, ok := v.Text()
	if method := strings.ToUpper(text); ok && slices.Contains(methods, method) {
		c.Method = method
		return nil
	}
	return wrongInput("method: expected one of %s", strings.Join(methods, ", "))
}

func (c *call) readURL(v exactjson.Value) *engine.Failure {
	text, _ := v.Text()
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return wrongInput("url: expected an absolute http or https URL, such as https://api.example.com/charges")
	case u.User != nil:
		return wrongInput("url: it holds credentials, which the history would keep; use a header with { secret: NAME }")
	}
	u.Fragment, u.RawFragment = "", ""
	c.URL = u
	return nil
}

// readBody takes text as it is and everything else as JSON.
func (c *call) readBody(v exactjson.Value) {
	if v.IsNull() {
		return
	}
	if text, ok := v.Text(); ok {
		c.Body = []byte(text)
		c.Header.Set("Content-Type", "text/plain; charset=utf-8")
		return
	}
	c.Body = []byte(v)
	c.Header.Set("Content-Type", "application/json")
}

func (c *call) readTimeout(v exactjson.Value) *engine.Failure {
	if v.IsNull() {
		return nil
	}
	text, ok := v.Text()
	if !ok {
		return wrongInput("timeout: expected text such as \"30s\", got %s", v.Kind())
	}
	ms, err := definition.ParseDuration(text)
	if err != nil {
		return wrongInput("timeout: %v", err)
	}
	c.timeout = time.Duration(ms) * time.Millisecond
	if ms <= 0 || ms > longestTimeout.Milliseconds() {
		return wrongInput("timeout: expected more than 0 and at most 4m, got %s", text)
	}
	return nil
}

func (c *call) readStatuses(v exactjson.Value) *engine.Failure {
	if v.IsNull() {
		return nil
	}
	if v.Kind() != exactjson.KindArray {
		return wrongInput("retry_statuses: expected a list such as [429, 503], got %s", v.Kind())
	}
	c.retry = []int{}
	for element := range v.Elements() {
		status, ok := element.Int64()
		if !ok || status < 100 || status > 599 {
			return wrongInput("retry_statuses: expected numbers from 100 to 599")
		}
		c.retry = append(c.retry, int(status))
	}
	return nil
}

func (c *Client) readHeaders(ctx context.Context, call *call, v exactjson.Value) *engine.Failure {
	if !v.IsNull() && v.Kind() != exactjson.KindObject {
		return wrongInput("headers: expected an object, got %s", v.Kind())
	}
	seen := map[string]bool{}
	for key, value := range v.Members() {
		name := http.CanonicalHeaderKey(key)
		switch {
		case !isToken(key):
			return wrongInput("headers: %q is no name of a header", key)
		case slices.Contains(managed, name):
			return wrongInput("headers: %s is the connection's own and cannot be set", key)
		case seen[name]:
			return wrongInput("headers: %s is there twice", name)
		}
		seen[name] = true
		text, fail := c.headerText(ctx, call, name, value)
		if fail != nil {
			return fail
		}
		call.Header.Set(name, text)
	}
	return nil
}

// headerText is a header's value: text, a number, or a secret.
func (c *Client) headerText(ctx context.Context, call *call, name string, v exactjson.Value) (string, *engine.Failure) {
	switch v.Kind() {
	case exactjson.KindNumber:
		return string(v), nil
	case exactjson.KindString:
		text, _ := v.Text()
		if !isFieldText(text) {
			return "", wrongInput("headers: %s holds a line break or another control character", name)
		}
		return text, nil
	case exactjson.KindObject:
		return c.secretHeader(ctx, call, name, v)
	}
	return "", wrongInput("headers: %s: expected text or { secret: NAME }, got %s", name, v.Kind())
}

func (c *Client) secretHeader(ctx context.Context, call *call, name string, v exactjson.Value) (string, *engine.Failure) {
	secret, ok := v.Get("secret").Text()
	prefix, isText := v.Get("prefix").Or(`""`).Text()
	if !ok || secret == "" || !isText || !isFieldText(prefix) {
		return "", wrongInput("headers: %s: expected { secret: NAME, prefix?: text }", name)
	}
	value, err := c.Secret(ctx, secret)
	if err != nil {
		fail := failure(decide.CodeHTTP, "header %s: %v", name, err)
		fail.Retryable = !errors.Is(err, ErrNoSecret)
		return "", fail
	}
	if !isFieldText(value) {
		return "", failure(decide.CodeHTTP, "header %s: the secret %s holds a line break or another control character, which no header can carry", name, secret)
	}
	call.secrets = append(call.secrets, value)
	call.Private = append(call.Private, name)
	return prefix + value, nil
}

// isToken is what names of headers are made of.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// isFieldText is what values of headers are made of.
func isFieldText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func wrongInput(format string, args ...any) *engine.Failure {
	return failure(decide.CodeInputContract, "input of http.request: "+format, args...)
}

// failure is one that another try does not better.
func failure(code, format string, args ...any) *engine.Failure {
	return &engine.Failure{TaskError: history.TaskError{Code: code, Message: fmt.Sprintf(format, args...)}}
}
