package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"perigee/local/cli"
)

// restarting serves the history of an execution that ended. It answers the first
// call for it as a server that is about to go away does, and is back after that.
func restarting(t *testing.T) (url string) {
	t.Helper()
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case calls.Add(1) == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"code":"UNAVAILABLE","message":"going away"}`)
		case strings.HasSuffix(r.URL.Path, "/history"):
			fmt.Fprint(w, `{"events":[{"seq":1,"timestamp_ms":1,"type":"WorkflowCompleted","output":1}]}`)
		default:
			fmt.Fprint(w, `{"id":"o-1","status":"COMPLETED","output":1,"units":{}}`)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// run is what a command line writes, with a server and no terminal.
func run(t *testing.T, url string, args ...string) (out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	env := func(name string) (string, bool) { return url, name == "PERIGEE_URL" }
	if code := cli.Main(args, cli.Process{In: strings.NewReader(""), Out: &o, Err: &e, Env: env}); code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, e.String())
	}
	return o.String(), e.String()
}

func TestFollow_SaysThatTheServerIsAwayWithoutATerminalToo(t *testing.T) {
	const note = "The server does not answer; trying again …\n"
	out, errs := run(t, restarting(t), "history", "o-1", "--follow")
	if !strings.Contains(out, "WorkflowCompleted") || errs != note {
		t.Errorf("got %q and %q, want the event and %q", out, errs, note)
	}
}

func TestFollow_WithJSONSaysNothingBesides(t *testing.T) {
	out, errs := run(t, restarting(t), "history", "o-1", "--follow", "--json")
	if !strings.Contains(out, "WorkflowCompleted") || errs != "" {
		t.Errorf("got %q and %q, want the event alone", out, errs)
	}
}
