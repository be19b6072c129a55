package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"perigee/local/lambda"
	"perigee/sdk/go/client"
	"perigee/store/postgres/pgtest"
)

func unmarshal(raw []byte, into any) error { return json.Unmarshal(raw, into) }

// Nobody polls, and no tick is scheduled within the hour: the call that starts
// the timer has the tick function called.
func TestRun_OnDemandATimerFiresByItsOwnWakeUp(t *testing.T) {
	url, log := serve(t, lambda.Options{
		OnDemand:    true,
		Environment: []string{"PERIGEE_DATABASE=" + pgtest.Migrated(t), "PERIGEE_TICK_MODE=on-demand"},
	})
	api := newClient(t, url)
	const source = `
name: nap
version: "1.0.0"
steps:
  - { id: first, sleep: 1500ms }
  - { id: second, sleep: 1500ms }
`
	if _, err := api.RegisterDefinition(t.Context(), []byte(source), client.YAML); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := api.Start(t.Context(), client.StartRequest{Workflow: "nap", ExecutionID: "n"}); err != nil {
		t.Fatal(err)
	}
	end, err := api.Wait(t.Context(), "n")
	if err != nil || end.Status != client.Completed {
		t.Fatalf("%+v, %v", end, err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if strings.Contains(log.String(), `"level":"ERROR"`) || strings.Contains(log.String(), `"level":"WARN"`) {
		t.Error("the functions complain")
	}
}

// Nobody polls: a result that reaches the worker function makes the next task
// ready, and has the tick function called, which calls its worker.
func TestRun_OnDemandAResultHasTheNextWorkerCalled(t *testing.T) {
	var reports sync.WaitGroup
	workers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var task client.Task
		err := json.NewDecoder(r.Body).Decode(&task)
		var server string
		if err == nil {
			err = json.Unmarshal(task.Input, &server)
		}
		api, clientErr := client.New(server, client.Options{})
		if err := errors.Join(err, clientErr); err != nil {
			t.Error(err)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		reports.Go(func() {
			if _, err := api.Report(context.Background(), client.Result{Token: task.Token, Output: json.RawMessage(`{}`)}, ""); err != nil {
				t.Error(err)
			}
		})
	}))
	defer workers.Close()
	defer reports.Wait()
	url, log := serve(t, lambda.Options{
		OnDemand: true,
		Environment: []string{
			"PERIGEE_DATABASE=" + pgtest.Migrated(t), "PERIGEE_TICK_MODE=on-demand", "PERIGEE_HTTP_ALLOW=127.0.0.1", "PERIGEE_SECRET_A=shared",
			`PERIGEE_ROUTES={"a.*": {"url": "` + workers.URL + `", "secret": "A"}}`,
		},
	})
	api := newClient(t, url)
	const source = `
name: called
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps:
  - { id: first, task: a.step, with: "${input.server}" }
  - { id: second, task: a.step, with: "${input.server}" }
  - { id: third, task: a.step, with: "${input.server}" }
`
	if _, err := api.RegisterDefinition(t.Context(), []byte(source), client.YAML); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Start(t.Context(), client.StartRequest{Workflow: "called", ExecutionID: "c", Input: json.RawMessage(`{"server": "` + url + `"}`)}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // far below the hourly pass
	defer cancel()
	end, err := api.Wait(ctx, "c")
	if err != nil || end.Status != client.Completed {
		t.Fatalf("%+v, %v", end, err)
	}
	if strings.Contains(log.String(), `"level":"ERROR"`) || strings.Contains(log.String(), `"level":"WARN"`) {
		t.Error("the functions complain")
	}
}

// The front hands on what callers send, and answers as API Gateway where no
// function can.
func TestRun_TheFrontHandsOnWhatWasSent(t *testing.T) {
	url, _ := serve(t, lambda.Options{Migrate: true, Environment: []string{"PERIGEE_DATABASE=" + pgtest.URL(t)}})
	call := func(method, path, contentType, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if contentType != "" {
			req.Header.Set("Content-Type", contentType)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	const source = "name: größe\nversion: \"1.0.0\"\nsteps: [{ id: nap, sleep: 1ms }]\n"
	for _, c := range []struct {
		method, path, contentType, body string
		status                          int
		want                            string
	}{
		{"GET", "/healthz", "", "", 200, "ok"},
		{"POST", "/v1/definitions", "application/yaml", strings.ReplaceAll(source, "größe", "size"), 201, `"created":true`},
		{"GET", "/v1/definitions/size?version=1.0.0", "", "", 200, `"name":"size"`},
		{"GET", "/v1/definitions/si%25ze%3F", "", "", 404, "NOT_FOUND"},
		{"GET", "/v1/executions?tag.a%20b=%22x%22&limit=1", "", "", 200, "executions"},
		{"GET", "/v1/executions?limit=0", "", "", 400, "limit"},
		{"POST", "/v1/executions", "application/json", `{"workflow":"none"}`, 404, "WORKFLOW_NOT_FOUND"},
		{"POST", "/v1/workers/poll", "application/json", `{"worker_session_id":"none"}`, 404, "UNKNOWN_SESSION"},
		{"POST", "/v1/executions", "application/json", strings.Repeat("x", 11<<20), 413, "Request Too Long"},
		{"POST", "/v1/executions", "application/json", strings.Repeat("x", 7<<20), 413, "Request Too Long"},
	} {
		status, body := call(c.method, c.path, c.contentType, c.body)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: got %d %.300s, want %d with %q", c.method, c.path, status, body, c.status, c.want)
		}
	}
}

// A web page must not reach for an installation without tokens.
func TestRun_WithoutTokensPagesAreRefused(t *testing.T) {
	url, _ := serve(t, lambda.Options{Environment: []string{"PERIGEE_DATABASE=" + pgtest.Migrated(t)}})
	for name, change := range map[string]func(*http.Request){
		"a foreign origin":  func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"a foreign host":    func(r *http.Request) { r.Host = "evil.example" },
		"a token of nobody": func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") },
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url+"/v1/executions", nil)
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 403 && resp.StatusCode != 401 {
			t.Errorf("%s: got %d", name, resp.StatusCode)
		}
	}
}
