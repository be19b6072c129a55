package lambda

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// requestBytes is what an HTTP API takes of a request.
const requestBytes = 10 << 20

// gateway is the front of an HTTP API: it makes an event of a request, calls a
// function with it and makes a response of the answer.
type gateway struct {
	api, worker *Function
	// authorize gives the word of an authorizer about a request; nil: there is none.
	authorize func(*http.Request) (*events.APIGatewayV2HTTPRequestContextAuthorizerDescription, error)
	log       *slog.Logger
}

// route is the function that a request goes to, as in template.yaml.
func (g *gateway) route(r *http.Request) (key string, f *Function) {
	if r.Method == http.MethodPost {
		for _, prefix := range []string{"/v1/workers/", "/v1/tasks/"} {
			if strings.HasPrefix(r.URL.Path, prefix) {
				return "POST " + prefix + "{proxy+}", g.worker
			}
		}
	}
	return "$default", g.api
}

// ServeHTTP answers as API Gateway does, in its own words where no function could.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, requestBytes+1))
	switch {
	case err != nil:
		say(w, http.StatusBadRequest, "Bad Request")
		return
	case len(body) > requestBytes:
		say(w, http.StatusRequestEntityTooLarge, "Request Too Long")
		return
	}
	key, f := g.route(r)
	event := eventOf(r, key, body)
	if g.authorize != nil {
		if event.RequestContext.Authorizer, err = g.authorize(r); err != nil {
			say(w, http.StatusForbidden, err.Error())
			return
		}
	}
	payload, err := json.Marshal(event)
	if err != nil {
		say(w, http.StatusBadRequest, "Bad Request")
		return
	}
	o := f.invoke(r.Context(), payload)
	switch {
	case errors.Is(o.err, errTooLarge) && len(payload) > payloadBytes:
		say(w, http.StatusRequestEntityTooLarge, "Request Too Long")
	case errors.Is(o.err, errThrottled), errors.Is(o.err, errTimedOut):
		g.log.Debug("a call was not served", "function", f.Name, "error", o.err)
		say(w, http.StatusServiceUnavailable, "Service Unavailable")
	case o.err != nil, o.failed:
		g.log.Debug("a call failed", "function", f.Name, "error", o.err, "answer", string(o.payload))
		say(w, http.StatusInternalServerError, "Internal Server Error")
	default:
		g.answer(w, r, f, o.payload)
	}
}

// say answers in API Gateway's own shape.
func say(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"message": message}) // a caller that went away needs none
}

// answer writes what a function answered.
func (g *gateway) answer(w http.ResponseWriter, r *http.Request, f *Function, payload []byte) {
	var a events.APIGatewayV2HTTPResponse
	body := []byte(nil)
	err := json.Unmarshal(payload, &a)
	if err == nil {
		body = []byte(a.Body)
		if a.IsBase64Encoded {
			body, err = base64.StdEncoding.DecodeString(a.Body)
		}
	}
	if err != nil || a.StatusCode < 200 || a.StatusCode > 599 {
		g.log.Error("a function's answer is no HTTP response", "function", f.Name, "error", err, "status", a.StatusCode)
		say(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}
	h := w.Header()
	for name, value := range a.Headers {
		if !strings.EqualFold(name, "Content-Length") || r.Method == http.MethodHead {
			h.Set(name, value)
		}
	}
	for _, cookie := range a.Cookies {
		h.Add("Set-Cookie", cookie)
	}
	w.WriteHeader(a.StatusCode)
	w.Write(body) // a caller that went away needs none
}

// eventOf is the event of a request: names of headers in lower case and values
// of repeated ones joined, cookies apart, the path decoded, the query as it
// came, and as base64 whatever is not known to be text.
func eventOf(r *http.Request, key string, body []byte) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: key, RawPath: r.URL.Path, RawQueryString: r.URL.RawQuery,
		Headers: map[string]string{"host": r.Host},
	}
	for _, line := range r.Header.Values("Cookie") {
		e.Cookies = append(e.Cookies, strings.Split(line, "; ")...)
	}
	for name, values := range r.Header {
		if name != "Cookie" {
			e.Headers[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	if query := r.URL.Query(); len(query) > 0 {
		e.QueryStringParameters = map[string]string{}
		for name, values := range query {
			e.QueryStringParameters[name] = strings.Join(values, ",")
		}
	}
	if len(body) > 0 {
		e.Body = string(body)
		if !isText(r.Header.Get("Content-Type")) || !utf8.Valid(body) {
			e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
		}
	}
	now := time.Now().UTC()
	ip, _, _ := net.SplitHostPort(r.RemoteAddr)
	e.RequestContext = events.APIGatewayV2HTTPRequestContext{
		RouteKey: key, AccountID: "000000000000", Stage: "$default", RequestID: newID(), APIID: "local",
		DomainName: r.Host, DomainPrefix: "local", Time: now.Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: now.UnixMilli(),
		HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
			Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, SourceIP: ip, UserAgent: r.UserAgent(),
		},
	}
	return e
}

// isText reports the content types that API Gateway hands on as they are.
func isText(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (strings.HasPrefix(kind, "text/") || kind == "application/json" || kind == "application/javascript" || kind == "application/xml")
}
