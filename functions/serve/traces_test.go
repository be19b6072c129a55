package serve_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/engine/traceid"
	"perigee/store/postgres/pgtest"
)

const patience = 20 * time.Second

// computes runs a workflow that ends in its first call.
func (f *function) computes() {
	f.t.Helper()
	const source = `{"name":"sum","version":"1.0.0","steps":[{"id":"sum","compute":"${1 + 1}"}]}`
	if _, err := f.Engine.RegisterDefinition(f.t.Context(), []byte(source), definition.JSON); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.Engine.Start(f.t.Context(), engine.StartRequest{Workflow: "sum", ExecutionID: "o-1"}); err != nil {
		f.t.Fatal(err)
	}
}

func TestFunction_SendsTracesWhereTheSettingsSay(t *testing.T) {
	type call struct{ path, key, body string }
	calls := make(chan call, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		calls <- call{r.URL.Path, r.Header.Get("api-key"), string(body)}
	}))
	defer collector.Close()
	f := newFunction(t, map[string]string{
		"PERIGEE_DATABASE": pgtest.Migrated(t), "PERIGEE_STACK": "shop",
		"PERIGEE_OTLP_ENDPOINT": collector.URL + "/otlp/", "PERIGEE_OTLP_HEADERS": "api-key=s3cr3t",
	})
	f.computes()
	select {
	case got := <-calls:
		if got.path != "/otlp/v1/traces" || got.key != "s3cr3t" ||
			!strings.Contains(got.body, `"traceId":"`+traceid.Trace("o-1")+`"`) || !strings.Contains(got.body, `"shop"`) {
			t.Errorf("got %+v", got)
		}
	case <-time.After(patience):
		t.Error("nothing was sent")
	}
	if strings.Contains(f.log.String(), "s3cr3t") {
		t.Error("the log shows the collector's key")
	}
}

// The call is answered while the collector still holds the one before.
func TestFunction_DoesNotWaitForTheCollector(t *testing.T) {
	asked, release := make(chan struct{}, 10), make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	defer collector.Close()
	defer close(release)
	f := newFunction(t, map[string]string{"PERIGEE_DATABASE": pgtest.Migrated(t), "PERIGEE_OTLP_ENDPOINT": collector.URL})
	f.computes()
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("nothing was sent")
	}
	if _, err := f.Engine.Start(t.Context(), engine.StartRequest{Workflow: "sum", ExecutionID: "o-2"}); err != nil {
		t.Error(err)
	}
}
