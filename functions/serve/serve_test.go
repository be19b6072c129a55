package serve_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"perigee/engine"
	"perigee/functions/lambdahttp"
	"perigee/functions/serve"
	"perigee/infra/instance"
	"perigee/store/postgres/pgtest"
)

// function is an instance with its log.
type function struct {
	*instance.Instance
	t      *testing.T
	log    bytes.Buffer
	invoke lambdahttp.Function
}

// newFunction makes an instance of an environment.
func newFunction(t *testing.T, environment map[string]string) *function {
	t.Helper()
	f := &function{t: t}
	var err error
	f.Instance, err = instance.New(t.Context(), func(name string) (string, bool) { v, ok := environment[name]; return v, ok }, &f.log)
	if err != nil {
		t.Fatalf("%v\n%s", err, f.log.String())
	}
	t.Cleanup(func() { f.Store.Close() })
	f.invoke = serve.Function(f.Instance)
	return f
}

// get makes a call.
func (f *function) get(path string, change func(*events.APIGatewayV2HTTPRequest)) events.APIGatewayV2HTTPResponse {
	f.t.Helper()
	e := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path, Headers: map[string]string{"host": "api.example.com"}}
	e.RequestContext.HTTP.Method, e.RequestContext.Stage = "GET", "$default"
	if change != nil {
		change(&e)
	}
	answer, err := f.invoke(f.t.Context(), e)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer
}

// errors are the log's lines of level ERROR.
func (f *function) errors() []string {
	var lines []string
	for line := range strings.Lines(f.log.String()) {
		var entry struct{ Level string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			f.t.Errorf("the log has a line that is no JSON: %q", line)
		}
		if entry.Level == "ERROR" {
			lines = append(lines, line)
		}
	}
	return lines
}

func withToken(e *events.APIGatewayV2HTTPRequest) { e.Headers["authorization"] = "Bearer none" }

// What keeps a database from being used is one line of log, and for the caller
// a 503 that says when to come again and nothing about the database.
func TestFunction_ADatabaseThatCannotBeUsedIsTold(t *testing.T) {
	wrong, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	wrong.User = url.UserPassword(wrong.User.Username(), "hunter2")
	for _, c := range []struct{ name, database, log, answer string }{
		{"nobody listens", "postgres://u@127.0.0.1:1/d", "connection refused", "the database cannot be reached"},
		{"a name that is none", "postgres://u@database.invalid/d", "database.invalid", "the database cannot be reached"},
		{"the wrong password", wrong.String(), "password authentication failed", "the database cannot be reached"},
		{"no schema", pgtest.URL(t), "run `perigee migrate`", "the database is at version 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFunction(t, map[string]string{"PERIGEE_DATABASE": c.database})
			got := f.get("/v1/executions", withToken)
			if got.StatusCode != 503 || got.Headers["Retry-After"] == "" || !strings.Contains(got.Body, c.answer) || !strings.Contains(got.Body, "UNAVAILABLE") {
				t.Errorf("got %d %v %s", got.StatusCode, got.Headers, got.Body)
			}
			lines := f.errors()
			if len(lines) != 1 || !strings.Contains(lines[0], c.log) || strings.Contains(f.log.String(), "hunter2") {
				t.Errorf("the log says %q, want one error with %q", lines, c.log)
			}
			if got := f.get("/healthz", nil); got.StatusCode != 200 {
				t.Errorf("/healthz needs no database, and answers %d", got.StatusCode)
			}
			if got := f.get("/readyz", nil); got.StatusCode != 503 || !strings.Contains(got.Body, c.answer) {
				t.Errorf("/readyz answers %d %s, want %q", got.StatusCode, got.Body, c.answer)
			}
		})
	}
}

// A failure is not kept: the next call looks again.
func TestFunction_ServesOnceTheSchemaIsThere(t *testing.T) {
	f := newFunction(t, map[string]string{
		"PERIGEE_DATABASE": pgtest.URL(t), "PERIGEE_ADMIN_TOKEN": "perigee_0123456789abcdef0123456789abcdef",
	})
	if got := f.get("/v1/executions", withToken); got.StatusCode != 503 {
		t.Errorf("without a schema: %d", got.StatusCode)
	}
	for range 2 { // the second time nothing changes
		if _, err := f.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.get("/v1/executions", withToken); got.StatusCode != 401 {
		t.Errorf("with a token that there is not: %d %s", got.StatusCode, got.Body)
	}
	got := f.get("/v1/executions", func(e *events.APIGatewayV2HTTPRequest) {
		e.Headers["authorization"] = "Bearer perigee_0123456789abcdef0123456789abcdef"
	})
	if got.StatusCode != 200 {
		t.Errorf("with the first admin token: %d %s", got.StatusCode, got.Body)
	}
	if got := f.get("/readyz", nil); got.StatusCode != 200 {
		t.Errorf("/readyz answers %d", got.StatusCode)
	}
}

func TestFunction_AShortAdminTokenIsRefused(t *testing.T) {
	f := newFunction(t, map[string]string{"PERIGEE_DATABASE": pgtest.URL(t), "PERIGEE_ADMIN_TOKEN": "secret"})
	if _, err := f.Migrate(t.Context()); engine.CodeOf(err) != engine.InvalidRequest || len(f.errors()) != 1 {
		t.Errorf("got %v and the log %q", err, f.errors())
	}
}

// An authorizer's word counts only where the settings name it.
func TestFunction_TheAuthorizerSaysWhoCalls(t *testing.T) {
	type authorizer = events.APIGatewayV2HTTPRequestContextAuthorizerDescription
	jwt := func(claims map[string]string) *authorizer {
		return &authorizer{JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: claims}}
	}
	iam := func(arn string) *authorizer {
		return &authorizer{IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: arn}}
	}
	const roles = "arn:aws:iam::123456789012:role/ops=operator,arn:aws:iam::123456789012:user/ann=reader," +
		"arn:aws:iam::123456789012:role/aws-reserved/sso.amazonaws.com/eu-central-1/AWSReservedSSO_x=reader"
	for _, c := range []struct {
		name       string
		auth       map[string]string
		authorizer *authorizer
		status     int
	}{
		{"jwt, a role in the claim", map[string]string{"PERIGEE_AUTH": "jwt"}, jwt(map[string]string{"perigee_role": "reader", "sub": "ann"}), 200},
		{"jwt, a role that may not", map[string]string{"PERIGEE_AUTH": "jwt"}, jwt(map[string]string{"perigee_role": "worker"}), 403},
		{"jwt, no role", map[string]string{"PERIGEE_AUTH": "jwt"}, jwt(map[string]string{"sub": "ann"}), 403},
		{"jwt, a role there is not", map[string]string{"PERIGEE_AUTH": "jwt"}, jwt(map[string]string{"perigee_role": "root"}), 403},
		{"jwt, no token at all", map[string]string{"PERIGEE_AUTH": "jwt"}, nil, 401},
		{"jwt, a group with a role", map[string]string{"PERIGEE_AUTH": "jwt", "PERIGEE_AUTH_CLAIM": "groups", "PERIGEE_AUTH_ROLES": "staff=reader"},
			jwt(map[string]string{"groups": "[guests staff]"}), 200},
		{"jwt, a group named like a role", map[string]string{"PERIGEE_AUTH": "jwt", "PERIGEE_AUTH_CLAIM": "groups", "PERIGEE_AUTH_ROLES": "staff=reader"},
			jwt(map[string]string{"groups": "[admin]"}), 403},
		{"iam, a user", map[string]string{"PERIGEE_AUTH": "iam", "PERIGEE_AUTH_ROLES": roles}, iam("arn:aws:iam::123456789012:user/ann"), 200},
		{"iam, a session of a role", map[string]string{"PERIGEE_AUTH": "iam", "PERIGEE_AUTH_ROLES": roles}, iam("arn:aws:sts::123456789012:assumed-role/ops/i-1"), 200},
		{"iam, another account", map[string]string{"PERIGEE_AUTH": "iam", "PERIGEE_AUTH_ROLES": roles}, iam("arn:aws:sts::210987654321:assumed-role/ops/i-1"), 403},
		{"iam, a session of a role with a path", map[string]string{"PERIGEE_AUTH": "iam", "PERIGEE_AUTH_ROLES": roles}, iam("arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_x/ann"), 200},
		{"iam, such a session of another account", map[string]string{"PERIGEE_AUTH": "iam", "PERIGEE_AUTH_ROLES": roles}, iam("arn:aws:sts::210987654321:assumed-role/AWSReservedSSO_x/ann"), 403},
		{"iam, the end of a name", map[string]string{"PERIGEE_AUTH": "iam", "PERIGEE_AUTH_ROLES": roles}, iam("arn:aws:sts::123456789012:assumed-role/x/ann"), 403},
		{"iam, a user named like a role", map[string]string{"PERIGEE_AUTH": "iam", "PERIGEE_AUTH_ROLES": roles}, iam("arn:aws:iam::123456789012:user/AWSReservedSSO_x"), 403},
		{"tokens, an authorizer nobody asked for", nil, jwt(map[string]string{"perigee_role": "admin"}), 401},
		{"iam, claims of a JWT", map[string]string{"PERIGEE_AUTH": "iam", "PERIGEE_AUTH_ROLES": roles}, jwt(map[string]string{"perigee_role": "admin"}), 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			environment := map[string]string{"PERIGEE_DATABASE": pgtest.Migrated(t)}
			for name, text := range c.auth {
				environment[name] = text
			}
			f := newFunction(t, environment)
			got := f.get("/v1/executions", func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.Authorizer = c.authorizer })
			if got.StatusCode != c.status {
				t.Errorf("got %d %s, want %d", got.StatusCode, got.Body, c.status)
			}
		})
	}
}

// Who is known and has no role needs a setting, and no token.
func TestFunction_SaysWhichSettingGivesARole(t *testing.T) {
	for name, c := range map[string]struct {
		auth       map[string]string
		authorizer events.APIGatewayV2HTTPRequestContextAuthorizerDescription
		says       []string
	}{
		"a principal": {
			map[string]string{"PERIGEE_AUTH": "iam", "PERIGEE_AUTH_ROLES": "arn:aws:iam::123456789012:role/ops=operator"},
			events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
				IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: "arn:aws:iam::123456789012:user/eve"},
			},
			[]string{"arn:aws:iam::123456789012:user/eve", "AuthRoles", "PERIGEE_AUTH_ROLES"},
		},
		"a claim": {
			map[string]string{"PERIGEE_AUTH": "jwt", "PERIGEE_AUTH_CLAIM": "groups"},
			events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
				JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"groups": "staff"}},
			},
			[]string{`claim \"groups\" is \"staff\"`, "admin, operator, reader or worker", "AuthRoles", "PERIGEE_AUTH_ROLES"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			environment := map[string]string{"PERIGEE_DATABASE": pgtest.Migrated(t)}
			maps.Copy(environment, c.auth)
			f := newFunction(t, environment)
			got := f.get("/v1/executions", func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.Authorizer = &c.authorizer })
			if got.StatusCode != 403 || !strings.Contains(got.Body, `"code":"FORBIDDEN"`) {
				t.Errorf("got %d %s", got.StatusCode, got.Body)
			}
			for _, want := range c.says {
				if !strings.Contains(got.Body, want) {
					t.Errorf("got %s, want %s in it", got.Body, want)
				}
			}
			for _, path := range []string{"/healthz", "/readyz", "/docs"} {
				if got := f.get(path, func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.Authorizer = &c.authorizer }); got.StatusCode != 200 {
					t.Errorf("%s needs no role, and answers %d", path, got.StatusCode)
				}
			}
		})
	}
}
