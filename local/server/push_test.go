package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"perigee/infra/push"
	"perigee/local/server"
	"perigee/sdk/go/client"
)

const pushedWorkflow = `
name: pushed
version: "1.0.0"
timeout: 1m
tasks: { a.step: { version: "1.0.0" } }
steps:
  - { id: a, task: a.step, with: { n: 7 }, retry: { max_attempts: 2, initial_interval: 10ms } }
output: "${steps.a.output}"
`

// runsPushed starts a server that pushes to a worker and runs a workflow there.
func runsPushed(t *testing.T, worker http.HandlerFunc) client.Started {
	t.Helper()
	target := httptest.NewServer(worker)
	t.Cleanup(target.Close)
	o := options(t, filepath.Join(t.TempDir(), "p.db"), "http-allow=127.0.0.1",
		`routes={"a.*": {"url": "`+target.URL+`", "secret": "A"}}`)
	o.Environment = func(name string) (string, bool) { return "shared", name == "PERIGEE_SECRET_A" }
	where, stop := running(t, o)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	c := connect(t, where.URL)
	if _, err := c.RegisterDefinition(t.Context(), []byte(pushedWorkflow), client.YAML); err != nil {
		t.Fatal(err)
	}
	started, err := c.Start(t.Context(), client.StartRequest{Workflow: "pushed", ExecutionID: where.URL[len("http://"):], Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	return started
}

func connect(t *testing.T, url string) *client.Client {
	t.Helper()
	c, err := client.New(url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRun_PushesToWorkersThatDoNotPoll(t *testing.T) {
	reported := make(chan error, 1)
	started := runsPushed(t, func(w http.ResponseWriter, r *http.Request) {
		var task client.Task
		if err := json.NewDecoder(r.Body).Decode(&task); err != nil {
			t.Error(err)
		}
		if !strings.HasPrefix(r.Header.Get(push.SignatureHeader), "v1=") {
			t.Error("the call is not signed")
		}
		w.WriteHeader(http.StatusAccepted)
		// The execution's id is the server's address, so that a worker without a
		// configuration of its own finds it.
		go func() {
			c := connect(t, "http://"+task.ExecutionID)
			_, err := c.Report(t.Context(), client.Result{Token: task.Token, Output: task.Input}, "")
			reported <- err
		}()
	})
	if err := <-reported; err != nil {
		t.Error(err)
	}
	if started.Status != client.Completed || string(started.Output) != `{"n":7}` {
		t.Errorf("got %+v", started)
	}
}

func TestRun_SaysWhyAWorkerCouldNotBeCalled(t *testing.T) {
	var calls atomic.Int32
	started := runsPushed(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		http.Error(w, "out of order", http.StatusInternalServerError)
	})
	if started.Status != client.Failed || started.Error.Code != "PUSH_FAILED" || calls.Load() != 2 ||
		!strings.Contains(started.Error.Message, "answered 500 Internal Server Error") {
		t.Errorf("got %+v, %+v after %d calls", started, started.Error, calls.Load())
	}
}

func TestRun_RefusesRoutesThatCannotWork(t *testing.T) {
	for routes, want := range map[string]string{
		`{"a": {"function": "f"}}`:            "this server cannot call the Lambda function f",
		`{"a": {"url": "https://a.example"}}`: "secret is missing",
		"nowhere.json":                        "read routes",
	} {
		o := options(t, filepath.Join(t.TempDir(), "p.db"), "routes="+routes)
		if err := server.CheckRoutes(o.Settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the check says %v", routes, err)
		}
		o.Ready = func(server.Running) error { t.Errorf("%s: it serves", routes); return nil }
		if err := server.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", routes, err)
		}
	}
}
