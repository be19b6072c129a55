package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"perigee/engine"
)

// call is a request on its way through a handler.
type call struct {
	*http.Request
	who  engine.Identity
	text []byte // the body; for a route with a report, what fits in its limit
	// overflow says that the body goes on where text ends. Only routes with a
	// report are called then: they record that their output was too large.
	overflow bool
	format   bodyFormat
}

// answer is what a handler says. The zero status is 200, the zero content type
// application/json.
type answer struct {
	status      int
	contentType string
	body        []byte
}

// exchange is a ResponseWriter that also carries what the access log tells.
type exchange struct {
	http.ResponseWriter
	requestID string
	started   time.Time
	quiet     bool
	who       engine.Identity
	status    int
	err       error // what an answer of an error came from
}

// ServeHTTP answers one request, whatever happens.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{ResponseWriter: w, started: time.Now(), requestID: r.Header.Get("X-Request-Id")}
	if !saneRequestID(x.requestID) {
		x.requestID = s.NewRequestID()
	}
	h := w.Header()
	h.Set("X-Request-Id", x.requestID)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Body == nil {
		r.Body = http.NoBody // not every adapter does what net/http does
	}
	defer s.log(x, r)
	defer func() {
		if p := recover(); p != nil {
			s.refuse(x, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	if s.Open {
		if err := CheckLocal(r); err != nil {
			s.refuse(x, r, err)
			return
		}
	}
	// ServeMux would answer a path like these with a redirect, which most
	// clients follow with another method and without the body.
	if p := r.URL.EscapedPath(); !strings.HasPrefix(p, "/") || path.Clean(p) != p {
		s.refuse(x, r, errorf(engine.NotFound, "no such path: a path starts with / and has no empty segment, no . or .. segment and no / at its end"))
		return
	}
	s.mux.ServeHTTP(x, r)
}

// route is what happens around every handler.
func (s *server) route(rt *route, x *exchange, r *http.Request) {
	x.quiet = rt.quiet
	a, err := s.call(rt, x, r)
	if err != nil {
		s.refuse(x, r, err)
		return
	}
	x.write(r, a)
}

func (s *server) call(rt *route, x *exchange, r *http.Request) (answer, error) {
	c := &call{Request: r}
	if rt.access != public {
		if s.Before != nil {
			if err := s.Before(r.Context()); err != nil {
				return answer{}, err
			}
		}
		who, err := s.identify(r)
		if err != nil {
			return answer{}, err
		}
		x.who, c.who = who, who
		if !rt.access.allows(who.Role) {
			return answer{}, errorf(engine.Forbidden, "the role %q may not call this; it takes one of: %s", who.Role, strings.Join(rt.access.roles(), ", "))
		}
	}
	if err := checkPathValues(r); err != nil {
		return answer{}, err
	}
	if err := s.readBody(c, rt.body); err != nil {
		return answer{}, err
	}
	return rt.handle(s, c)
}

// checkPathValues refuses what no name can be, before it reaches a store.
func checkPathValues(r *http.Request) error {
	for _, name := range [...]string{"id", "name", "version"} {
		if v := r.PathValue(name); len(v) > maxNameBytes || !plain(v) {
			return errorf(engine.NotFound, "nothing can have such a name: {%s} of the path takes up to %d bytes of UTF-8 without control characters", name, maxNameBytes)
		}
	}
	return nil
}

// noRoute answers for paths that are not in the table, and for methods.
func (s *server) noRoute(w http.ResponseWriter, r *http.Request) {
	x := w.(*exchange)
	allow := s.allowed(r)
	if allow == nil {
		s.refuse(x, r, errorf(engine.NotFound, "no such path; GET /docs lists what there is"))
		return
	}
	list := strings.Join(allow, ", ")
	x.Header().Set("Allow", list)
	s.refuse(x, r, errorf(methodNotAllowed, "this path takes %s", list))
}

// allowed lists the methods that the path of r takes, nil where it is unknown.
func (s *server) allowed(r *http.Request) []string {
	var list []string
	for _, method := range []string{"GET", "HEAD", "POST"} {
		if _, pattern := s.mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host}); pattern != "/" {
			list = append(list, method)
		}
	}
	return list
}

func (x *exchange) write(r *http.Request, a answer) {
	if x.status != 0 {
		return // an answer is on its way already
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if a.contentType == "" {
		a.contentType = "application/json"
	}
	x.status = a.status
	h := x.Header()
	h.Set("Content-Type", a.contentType)
	if a.contentType == html {
		// The pages are the server's own and need nothing but their styles.
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	}
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	x.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		x.Write(a.body) // a caller that went away needs no answer
	}
}

// log writes one line a request. It holds neither query nor body: both may hold
// what is nobody's business; the execution's id is in the path.
func (s *server) log(x *exchange, r *http.Request) {
	level := slog.LevelInfo
	switch {
	case x.err != nil && errors.Is(r.Context().Err(), context.Canceled):
		// Nobody waits for this answer: a worker that stops hangs up on its poll.
		level = slog.LevelDebug
	case x.status >= 500:
		level = slog.LevelError
	case x.quiet && x.status < 400:
		level = slog.LevelDebug
	}
	ctx := context.WithoutCancel(r.Context())
	if !s.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method),
		slog.String("route", r.Pattern),
		slog.Int("status", x.status),
		slog.Float64("duration_ms", float64(time.Since(x.started).Microseconds())/1000),
		slog.String("request_id", x.requestID),
	}
	if id := r.PathValue("id"); id != "" {
		attrs = append(attrs, slog.String("execution_id", id))
	}
	if x.who.Name != "" {
		attrs = append(attrs, slog.String("caller", x.who.Name))
	}
	if x.err != nil {
		attrs = append(attrs, slog.String("code", string(engine.CodeOf(x.err))))
		if cause := causeOf(x.err); cause != "" {
			attrs = append(attrs, slog.String("cause", cause))
		}
	}
	s.Logger.LogAttrs(ctx, level, "request", attrs...)
}

// saneRequestID keeps out what would need quoting in a log or a header.
func saneRequestID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("-_.:=+/@", c) >= 0:
		default:
			return false
		}
	}
	return true
}
