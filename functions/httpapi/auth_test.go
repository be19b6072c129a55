package httpapi_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"perigee/engine"
	"perigee/functions/httpapi"
	"perigee/functions/httpapi/httpapitest"
)

func TestAuth_RolesMayCallWhatTheTableSays(t *testing.T) {
	for _, rt := range httpapi.Routes() {
		for _, role := range []string{"", "admin", "operator", "reader", "worker", "unknown"} {
			s, f := newGuarded(t)
			r := examples[key(rt)][0].Request
			if role != "" {
				r.Header = map[string]string{"Authorization": "bearer " + role}
			}
			got := s.Do(t, r)
			want, code := examples[key(rt)][0].status, ""
			switch {
			case rt.Roles == nil || slices.Contains(rt.Roles, role):
			case role == "" || role == "unknown":
				want, code = 401, "UNAUTHENTICATED"
			default:
				want, code = 403, "FORBIDDEN"
			}
			if got.Status != want || got.Code() != code {
				t.Errorf("%s as %q: got %d %s, want %d", key(rt), role, got.Status, got.Body, want)
			}
			if want >= 400 && f.calls != 0 {
				t.Errorf("%s as %q: the engine was called", key(rt), role)
			}
			if challenge := got.Header.Get("WWW-Authenticate"); (challenge != "") != (want == 401) {
				t.Errorf("%s as %q: WWW-Authenticate is %q", key(rt), role, challenge)
			}
		}
	}
}

func TestAuth_HeaderThatIsNoBearerTokenIs401(t *testing.T) {
	for _, header := range []string{"admin", "Basic YWRtaW46YWRtaW4=", "Bearer", "Bearer  ", "Bearer admin operator", "Bearer\tadmin"} {
		s, _ := newGuarded(t)
		r := get("/v1/executions")
		r.Header = map[string]string{"Authorization": header}
		if got := s.Do(t, r); got.Status != 401 {
			t.Errorf("%q: got %d", header, got.Status)
		}
	}
}

func TestAuth_IdentityOfAnotherAuthorizerNeedsNoToken(t *testing.T) {
	s, _ := newGuarded(t)
	for role, want := range map[string]int{"reader": 200, "worker": 403, "": 403} {
		r := get("/v1/executions")
		r.Identity = &engine.Identity{Name: "jwt", Role: role}
		if got := s.Do(t, r); got.Status != want {
			t.Errorf("%q: got %d", role, got.Status)
		}
	}
}

func TestAuth_RefusalOfAnotherAuthorizerIsForCallsThatNeedARole(t *testing.T) {
	api := httpapi.New(httpapi.Options{Engine: &fakeEngine{}})
	for path, want := range map[string]int{"/v1/executions": 403, "/healthz": 200, "/readyz": 200, "/v1/openapi.yaml": 200} {
		r := httptest.NewRequestWithContext(httpapi.WithRefusal(t.Context(), &engine.Error{Code: engine.Forbidden, Message: "eve has no role"}), "GET", path, nil)
		r.Header.Set("Authorization", "Bearer admin") // it does not help
		got := httptest.NewRecorder()
		api.ServeHTTP(got, r)
		if got.Code != want || want == 403 && !strings.Contains(got.Body.String(), "eve has no role") {
			t.Errorf("%s: got %d %s, want %d", path, got.Code, got.Body, want)
		}
	}
}

func TestAuth_WorkerTokenReachesOnlyItsOwn(t *testing.T) {
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/v1/workers/register", `{"worker_id":"w","runtime":"go","contracts":[{"task_name":"payments.charge","contract_version":"1.0.0"},{"task_name":"mail","contract_version":"1.0.0"}]}`, 200},
		{"/v1/workers/register", `{"worker_id":"other","runtime":"go","contracts":[]}`, 403},
		{"/v1/workers/register", `{"worker_id":"w","runtime":"go","contracts":[{"task_name":"payments","contract_version":"1.0.0"}]}`, 403},
		{"/v1/workers/register", `{"worker_id":"w","runtime":"go","contracts":[{"task_name":"paymentsx.charge","contract_version":"1.0.0"}]}`, 403},
		{"/v1/workers/register", `{"worker_id":"w","runtime":"go","contracts":[{"task_name":"mail","contract_version":"1.0.0"},{"task_name":"mail.more","contract_version":"1.0.0"}]}`, 403},
		{"/v1/workers/poll", `{"worker_session_id":"mine"}`, 200},
		{"/v1/workers/poll", `{"worker_session_id":"theirs"}`, 403},
		{"/v1/workers/heartbeat", `{"worker_session_id":"theirs"}`, 403},
		{"/v1/workers/heartbeat", `{"worker_session_id":"mine","tokens":["mine1","theirs"]}`, 403},
		{"/v1/workers/heartbeat", `{"worker_session_id":"mine","tokens":["mine1","nonsense"]}`, 200},
		{"/v1/workers/unregister", `{"worker_session_id":"theirs"}`, 403},
		{"/v1/tasks/complete", `{"token":"mine1"}`, 200},
		{"/v1/tasks/complete", `{"token":"nonsense"}`, 200},
		{"/v1/tasks/complete", `{"token":"theirs"}`, 403},
		{"/v1/tasks/complete", `{"token":"theirs","output":"\ud800"}`, 403},
		{"/v1/tasks/complete", `{"token":"mine1","next":{"worker_session_id":"theirs"}}`, 403},
		{"/v1/tasks/complete", `{"token":"mine1","next":{"worker_session_id":"gone"}}`, 200},
		{"/v1/tasks/fail", `{"token":"theirs","error":{"code":"X"}}`, 403},
		{"/v1/tasks/results", `{"results":[{"token":"mine1"},{"token":"theirs"}]}`, 403},
		{"/v1/tasks/results", `{"results":[{"token":"mine1"}],"next":{"worker_session_id":"theirs"}}`, 403},
		{"/v1/tasks/progress", `{"token":"theirs"}`, 403},
	} {
		s, f := newGuarded(t)
		r := post(c.path, c.body)
		r.Header = map[string]string{"Authorization": "Bearer worker"}
		got := s.Do(t, r)
		if got.Status != c.status || c.status == 403 && f.calls != 0 {
			t.Errorf("%s %s: got %d %s after %d calls of the engine", c.path, c.body, got.Status, got.Body, f.calls)
		}
	}
}

func TestAuth_WorkerTokenWithoutBoundsAndAdminMayActForAnyWorker(t *testing.T) {
	for _, who := range []engine.Identity{{Role: "admin"}, {Role: "worker"}} {
		for path, body := range map[string]string{
			"/v1/workers/register": `{"worker_id":"x","runtime":"go","contracts":[{"task_name":"any","contract_version":"1.0.0"}]}`,
			"/v1/workers/poll":     `{"worker_session_id":"theirs"}`,
			"/v1/tasks/complete":   `{"token":"theirs"}`,
		} {
			s, _ := newGuarded(t)
			r := post(path, body)
			r.Identity = &who
			if got := s.Do(t, r); got.Status != 200 {
				t.Errorf("%s as %s: got %d %s", path, who.Role, got.Status, got.Body)
			}
		}
	}
}

func TestAuth_StarAloneMeansEveryTask(t *testing.T) {
	for pattern, want := range map[string]int{"*": 200, "a.*": 200, "a.b.*": 403, "a*": 403, "a.b": 200} {
		s, _ := newGuarded(t)
		r := post("/v1/workers/register", `{"worker_id":"x","runtime":"go","contracts":[{"task_name":"a.b","contract_version":"1.0.0"}]}`)
		r.Identity = &engine.Identity{Role: "worker", Tasks: []string{pattern}}
		if got := s.Do(t, r); got.Status != want {
			t.Errorf("%s: got %d %s", pattern, got.Status, got.Body)
		}
	}
}

func TestAuth_FailingLookUpIsNoRefusal(t *testing.T) {
	s := httpapitest.NewServer(t, httpapi.Options{Engine: failingAuth{&fakeEngine{}}})
	r := get("/v1/executions")
	r.Header = map[string]string{"Authorization": "Bearer x"}
	if got := s.Do(t, r); got.Status != 503 {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
}

type failingAuth struct{ *fakeEngine }

func (failingAuth) Authenticate(context.Context, string) (engine.Identity, error) {
	return engine.Identity{}, &engine.Error{Code: engine.Unavailable, Message: "away", Cause: errors.New("dial")}
}

func TestOpen_OnlyLoopbackNamesAndOwnPages(t *testing.T) {
	for _, c := range []struct {
		host, origin string
		ok           bool
	}{
		{"127.0.0.1:7474", "", true}, {"localhost", "", true}, {"LOCALHOST:1", "", true}, {"x.localhost:7474", "", true}, {"[::1]:7474", "", true}, {"[::1]", "", true},
		{"127.9.8.7", "", true}, {"[::ffff:127.0.0.1]:80", "", true}, {"localhost.:80", "", true},
		{"evil.example:7474", "", false}, {"127.0.0.1.evil.example", "", false}, {"localhost.evil.example", "", false}, {"192.168.0.1:7474", "", false}, {"0.0.0.0:7474", "", false},
		{"[::]:80", "", false}, {"notlocalhost", "", false}, {"127.0.0.1@evil.example", "", false}, {" ", "", false},
		{"127.0.0.1:7474", "http://127.0.0.1:7474", true}, {"localhost:7474", "https://LOCALHOST:7474", true},
		{"127.0.0.1:7474", "http://127.0.0.1:8080", false}, {"127.0.0.1:7474", "http://localhost:7474", false}, {"127.0.0.1:7474", "null", false}, {"127.0.0.1:7474", "https://evil.example", false},
		{"127.0.0.1:7474", "file://", false}, {"127.0.0.1:7474", "ftp://127.0.0.1:7474", false},
	} {
		for _, r := range []httpapitest.Request{get("/v1/executions"), post("/v1/executions", `{"workflow":"w"}`), get("/docs"), get("/nope")} {
			s, f := newServer(t)
			r.Host = c.host
			if c.origin != "" {
				r.Header = map[string]string{"Origin": c.origin}
			}
			got := s.Do(t, r)
			if refused := got.Status == 403; refused == c.ok || refused && (got.Code() != "FORBIDDEN" || f.calls != 0) {
				t.Errorf("%s from %q to %s: got %d %s", r.Path, c.origin, c.host, got.Status, got.Body)
			}
		}
	}
}

func TestOpen_ServersWithTokensTakeAnyHost(t *testing.T) {
	s, _ := newGuarded(t)
	r := get("/v1/executions")
	r.Host, r.Header = "perigee.example", map[string]string{"Authorization": "Bearer reader", "Origin": "https://console.example"}
	if got := s.Do(t, r); got.Status != 200 {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
}
