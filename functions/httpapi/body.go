package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"perigee/engine"
	"perigee/engine/exactjson"
)

// body says what a route takes as its body.
type body uint8

const (
	noBody         body = iota // is not read
	payloadBody                // JSON with one payload in it
	optionalBody               // the same, or nothing at all
	reportBody                 // the same; one that is too large still reaches the handler
	resultsBody                // JSON with many payloads
	definitionBody             // a document, YAML or JSON
)

// bodyFormat is what the content type says.
type bodyFormat uint8

const (
	formatNone bodyFormat = iota // no body came
	formatJSON
	formatYAML
)

// limit is the most bytes that a body may have.
func (s *server) limit(b body, format bodyFormat) int {
	one := s.MaxPayloadBytes + envelopeBytes
	switch b {
	case resultsBody:
		return max(resultsBytes, one)
	case definitionBody:
		if format == formatYAML {
			return maxYAMLBytes
		}
		return maxJSONBytes
	}
	return one
}

// drainBytes is how much of a body that is refused is still taken in, so that
// its sender gets to read why. API Gateway lets no larger one through.
const drainBytes = 10 << 20

// readBody checks the content type and takes in the body, up to its limit.
func (s *server) readBody(c *call, b body) error {
	if b == noBody {
		return nil
	}
	format, err := contentFormat(c.Header, b)
	if err != nil {
		return drained(c.Request, err)
	}
	limit := s.limit(b, format)
	if c.text, err = takeIn(c.Request, limit+1); err != nil {
		return err
	}
	c.format = format
	if len(c.text) > limit {
		if b != reportBody {
			return drained(c.Request, tooLarge(limit, b))
		}
		drain(c.Request)
		c.text, c.overflow = c.text[:limit], true
	}
	switch {
	case len(c.text) == 0 && b == optionalBody:
		c.format = formatNone
	case len(c.text) == 0:
		return errorf(engine.InvalidRequest, "the body is empty; expected %s", expected(b))
	case format == formatNone:
		return errorf(unsupportedMediaType, "the header Content-Type is missing; send %s", contentTypes(b))
	}
	return nil
}

func takeIn(r *http.Request, most int) ([]byte, error) {
	if n := r.ContentLength; n > 0 && n < int64(most) {
		text := make([]byte, n)
		_, err := io.ReadFull(r.Body, text)
		return text, unreadable(err)
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, int64(most)))
	return text, unreadable(err)
}

func unreadable(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooLarge):
		return errorf(engine.PayloadTooLarge, "the body has more than the %d bytes that this server takes", tooLarge.Limit)
	}
	return &engine.Error{Code: engine.InvalidRequest, Message: "the body could not be read to its end; send it again", Cause: err}
}

func drained(r *http.Request, err error) error {
	drain(r)
	return err
}

func drain(r *http.Request) { io.CopyN(io.Discard, r.Body, drainBytes) }

func tooLarge(limit int, b body) *engine.Error {
	e := errorf(engine.PayloadTooLarge, "the body has more than the %d bytes that this call takes", limit)
	switch b {
	case payloadBody, optionalBody, reportBody:
		// A result's failure is read by people who see no body.
		e.Message = fmt.Sprintf("the payload is too large: this call takes %d bytes with all around it (max_payload_bytes and %d); "+
			"keep large data elsewhere and pass a reference", limit, envelopeBytes)
	case resultsBody:
		e.Message += "; send fewer results in one call"
	}
	e.Details = map[string]int{"limit_bytes": limit}
	return e
}

func expected(b body) string {
	if b == definitionBody {
		return "a workflow definition"
	}
	return "a JSON object"
}

func contentTypes(b body) string {
	if b == definitionBody {
		return "application/yaml or application/json"
	}
	return "application/json"
}

// contentFormat reads the content type; without one it is formatNone.
func contentFormat(h http.Header, b body) (bodyFormat, error) {
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return 0, errorf(unsupportedMediaType, "the body is compressed or encoded; send it without Content-Encoding")
	}
	header := h.Get("Content-Type")
	if header == "" {
		return formatNone, nil
	}
	kind, params, err := mime.ParseMediaType(header)
	charset := params["charset"]
	if err == nil && (charset == "" || strings.EqualFold(charset, "utf-8")) {
		switch kind {
		case "application/json":
			return formatJSON, nil
		case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml":
			if b == definitionBody {
				return formatYAML, nil
			}
		}
	}
	return 0, errorf(unsupportedMediaType, "this Content-Type is not taken; send %s, in UTF-8", contentTypes(b))
}

// object reads the body as one JSON object of the API, where unknown members
// are refused. No body at all is an empty one.
func (c *call) object() (*object, error) { return c.parse(true) }

// workerObject reads it as one of the worker protocol, where unknown members
// are ignored, so that newer workers can talk to older servers.
func (c *call) workerObject() (*object, error) { return c.parse(false) }

func (c *call) parse(strict bool) (*object, error) {
	if c.format == formatNone {
		return newObject(exactjson.EmptyObject, strict), nil
	}
	// A payload may nest as deep as data may; the body is one level around it.
	v, err := exactjson.ParseDepth(c.text, exactjson.MaxDepth+1)
	if err != nil {
		return nil, syntaxError(err, "")
	}
	if v.Kind() != exactjson.KindObject {
		return nil, errorf(engine.InvalidRequest, "the body: expected a JSON object, got %s", aKind(v))
	}
	return newObject(v, strict), nil
}

// syntaxError says where and why the text of a body is refused; at is the JSON
// pointer of the part of the body that was being parsed.
func syntaxError(err error, at string) error {
	var syntax *exactjson.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	at += syntax.Path
	e := errorf(engine.InvalidRequest, "the body%s is not JSON that can be taken: %s", atPath(at), syntax.Message)
	e.Details = faults{{at, syntax.Message}}.details()
	return e
}

// atPath names a place in the body, for a sentence.
func atPath(path string) string {
	if path == "" {
		return ""
	}
	return " at " + path
}
