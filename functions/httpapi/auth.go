package httpapi

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"perigee/engine"
)

// access says which roles may call a route.
type access uint8

const (
	public     access = iota // everybody, without a token
	read                     // looks, changes nothing
	operate                  // starts, signals and cancels executions
	administer               // changes what can be started
	work                     // speaks the worker protocol
)

var accessRoles = [...][]string{
	public:     nil,
	read:       {"admin", "operator", "reader"},
	operate:    {"admin", "operator"},
	administer: {"admin"},
	work:       {"admin", "worker"},
}

func (a access) roles() []string { return slices.Clone(accessRoles[a]) }

func (a access) allows(role string) bool {
	return a == public || slices.Contains(accessRoles[a], role)
}

type identityKey struct{}

// WithIdentity returns a context that says who calls. A request with it needs
// no token: another authorizer (JWT, IAM) in front has looked already.
func WithIdentity(ctx context.Context, id engine.Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// WithRefusal returns a context of a caller whom another authorizer knows and who
// has no role here. Calls that need one are answered with err, which says why;
// a token of ours would not help.
func WithRefusal(ctx context.Context, err error) context.Context {
	return context.WithValue(ctx, identityKey{}, err)
}

// identify finds out who calls: from the context, because everybody may, or
// from the bearer token.
func (s *server) identify(r *http.Request) (engine.Identity, error) {
	switch said := r.Context().Value(identityKey{}).(type) {
	case engine.Identity:
		return said, nil
	case error:
		return engine.Identity{}, said
	}
	if s.Open {
		return engine.Identity{Name: "local", Role: "admin"}, nil
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return engine.Identity{}, errorf(engine.Unauthenticated, "this call needs a token; send the header Authorization: Bearer TOKEN")
	}
	return s.Engine.Authenticate(r.Context(), token)
}

// CheckLocal keeps web pages away from a server that asks for no token. A page
// of another site can make a browser send requests here: under a name of its
// own that resolves to loopback (Host tells) or with its Origin attached.
func CheckLocal(r *http.Request) error {
	if !loopbackHost(r.Host) {
		return errorf(engine.Forbidden, "this server has no tokens and answers only to a loopback name such as 127.0.0.1 or localhost in the Host header; configure tokens to serve other names")
	}
	origins := r.Header.Values("Origin")
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !strings.EqualFold(u.Host, r.Host) {
			return errorf(engine.Forbidden, "this server has no tokens and answers no web page but its own: the Origin header must be absent or name this server")
		}
	}
	return nil
}

func loopbackHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// bound reports whether the caller may act only for some workers.
func bound(who engine.Identity) bool { return who.Role == "worker" && len(who.WorkerIDs) > 0 }

// mayRegister checks a worker token against the name and tasks that it is
// asked to register.
func mayRegister(who engine.Identity, req engine.RegisterRequest) error {
	if bound(who) && !slices.Contains(who.WorkerIDs, req.WorkerID) {
		return errorf(engine.Forbidden, "this token may register only as: %s", strings.Join(who.WorkerIDs, ", "))
	}
	if who.Role != "worker" || len(who.Tasks) == 0 {
		return nil
	}
	for _, contract := range req.Contracts {
		if !slices.ContainsFunc(who.Tasks, func(pattern string) bool { return taskMatches(pattern, contract.TaskName) }) {
			return errorf(engine.Forbidden, "this token may not offer the task %q, only: %s", contract.TaskName, strings.Join(who.Tasks, ", "))
		}
	}
	return nil
}

// taskMatches compares a task's name with a name, with a prefix such as
// payments.* or with *.
func taskMatches(pattern, task string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok && (prefix == "" || strings.HasSuffix(prefix, ".")) {
		return strings.HasPrefix(task, prefix)
	}
	return pattern == task
}

// ownSession checks that a session belongs to one of the caller's workers. An
// unknown session is the engine's to answer for.
func (s *server) ownSession(c *call, sessionID string) error {
	if !bound(c.who) || sessionID == "" {
		return nil
	}
	worker, err := s.Engine.SessionWorker(c.Context(), sessionID)
	switch {
	case engine.CodeOf(err) == engine.UnknownSession && err != nil:
		return nil
	case err != nil:
		return err
	case !slices.Contains(c.who.WorkerIDs, worker):
		return errorf(engine.Forbidden, "this worker_session_id belongs to another worker than this token")
	}
	return nil
}

// ownTokens checks the same of task tokens. What is no token at all is the
// engine's to answer for.
func (s *server) ownTokens(c *call, tokens ...string) error {
	if !bound(c.who) {
		return nil
	}
	for _, token := range tokens {
		if worker, ok := s.Engine.TokenWorker(token); ok && !slices.Contains(c.who.WorkerIDs, worker) {
			return errorf(engine.Forbidden, "a task token of this call was given to another worker than this token's")
		}
	}
	return nil
}
