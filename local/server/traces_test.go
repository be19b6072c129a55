package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// What the last calls made is sent before the server ends.
func TestRun_SendsItsTracesBeforeItEnds(t *testing.T) {
	var mu sync.Mutex
	var sent strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := io.Copy(&sent, r.Body); err != nil {
			t.Error(err)
		}
	}))
	defer collector.Close()
	where, stop := running(t, options(t, filepath.Join(t.TempDir(), "p.db"), "otlp-endpoint="+collector.URL))
	runsAnExecution(t, where)
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(sent.String(), `"name":"nap"`) {
		t.Errorf("sent %q, want the span of the execution", sent.String())
	}
}
