package migrator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"perigee/engine"
	"perigee/functions/migrator"
	"perigee/infra/instance"
	"perigee/store/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// function is the migration function of an environment.
type function struct {
	t   *testing.T
	log bytes.Buffer
	*instance.Instance
	call func(context.Context, json.RawMessage) (any, error)
}

func newFunction(t *testing.T, environment map[string]string) *function {
	t.Helper()
	f := &function{t: t}
	i, err := instance.New(t.Context(), func(name string) (string, bool) { v, ok := environment[name]; return v, ok }, &f.log)
	if i != nil {
		t.Cleanup(func() { i.Store.Close() })
	}
	f.Instance, f.call = i, migrator.Function(i, err)
	return f
}

// says calls the function and gives its answer as JSON.
func (f *function) says(event string) string {
	f.t.Helper()
	answer, err := f.call(f.t.Context(), json.RawMessage(event))
	if err != nil {
		f.t.Fatalf("%s: %v", event, err)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

func TestFunction_MakesListsAndDeletesTokens(t *testing.T) {
	f := newFunction(t, map[string]string{"PERIGEE_DATABASE": pgtest.URL(t)})
	if got := f.says(`{}`); !strings.HasPrefix(got, `{"from":0,"to":`) {
		t.Errorf("any event migrates; got %s", got)
	}
	var made struct{ Name, Role, Token string }
	text := f.says(`{"token": {"create": "payments", "role": "worker", "worker_ids": ["payments-1"], "tasks": ["payments.*"]}}`)
	if err := json.Unmarshal([]byte(text), &made); err != nil || made.Name != "payments" || made.Role != "worker" {
		t.Fatalf("got %s, %v", text, err)
	}
	who, err := f.Engine.Authenticate(t.Context(), made.Token)
	if err != nil || who.Role != engine.RoleWorker || who.WorkerIDs[0] != "payments-1" || who.Tasks[0] != "payments.*" {
		t.Errorf("the token stands for %+v, %v", who, err)
	}
	if got := f.says(`{"token": {"list": true}}`); !strings.Contains(got, `"name":"payments","role":"worker"`) || strings.Contains(got, made.Token) {
		t.Errorf("listed: %s", got)
	}
	if got := f.says(`{"token": {"delete": "payments"}}`); got != `{"deleted":"payments"}` {
		t.Errorf("deleted: %s", got)
	}
	if got := f.says(`{"token": {"list": true}}`); got != `{"tokens":[]}` {
		t.Errorf("listed at the end: %s", got)
	}
	if strings.Contains(f.log.String(), made.Token) {
		t.Error("the log holds the token")
	}
}

func TestFunction_ASlipOfThePenIsNoMigration(t *testing.T) {
	f := newFunction(t, map[string]string{"PERIGEE_DATABASE": pgtest.URL(t)})
	for _, event := range []string{
		`{"token": null}`, `{"token": {}}`, `{"token": "create"}`, `{"token": {"create": 7}}`, `{"token": {"list": true, "delete": "a"}}`,
	} {
		if _, err := f.call(t.Context(), json.RawMessage(event)); engine.CodeOf(err) != engine.InvalidRequest {
			t.Errorf("%s: got %v", event, err)
		}
	}
	if err := f.Store.CheckSchema(t.Context()); err == nil {
		t.Error("one of them migrated")
	}
}

// resource calls the function as CloudFormation does and gives its answer there.
func (f *function) resource(requestType string) (answer struct{ Status, Reason, PhysicalResourceID string }) {
	f.t.Helper()
	bucket := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &answer)
		}
		if err != nil {
			f.t.Error(err)
		}
	}))
	defer bucket.Close()
	f.says(`{"RequestType": "` + requestType + `", "ResponseURL": "` + bucket.URL + `", "StackId": "s", "RequestId": "r", "LogicalResourceId": "Migration"}`)
	return answer
}

func TestFunction_TellsCloudFormationHowTheMigrationWent(t *testing.T) {
	f := newFunction(t, map[string]string{"PERIGEE_DATABASE": pgtest.URL(t)})
	for _, requestType := range []string{"Create", "Update", "Delete"} {
		if got := f.resource(requestType); got.Status != "SUCCESS" || got.PhysicalResourceID != "perigee-schema" {
			t.Errorf("%s: %+v", requestType, got)
		}
	}
	if err := f.Store.CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
}

// A deployment with wrong settings fails at once and says why.
func TestFunction_WrongSettingsFailTheDeployment(t *testing.T) {
	f := newFunction(t, map[string]string{
		"PERIGEE_DATABASE": "postgres://u@127.0.0.1:1/d", "PERIGEE_ROUTES": `{"a": {"url": "https://a.example"}}`,
	})
	if got := f.resource("Update"); got.Status != "FAILED" || !strings.Contains(got.Reason, `routes: "a": secret is missing`) {
		t.Errorf("got %+v", got)
	}
	if got := f.resource("Delete"); got.Status != "SUCCESS" {
		t.Errorf("at the stack's deletion: %+v", got)
	}
	for _, event := range []string{`{}`, `{"token": {"list": true}}`} {
		if _, err := f.call(t.Context(), json.RawMessage(event)); err == nil {
			t.Errorf("%s: no error", event)
		}
	}
}
