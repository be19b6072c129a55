package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
	"perigee/functions/httpapi"
	"perigee/functions/httpapi/httpapitest"
)

func readAll(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// codesInSource are the constants of type Code in a file, by value.
func codesInSource(t *testing.T, path string) []engine.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []engine.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || spec.Type == nil {
			return true
		}
		if name := fmt.Sprint(spec.Type); name != "Code" && !strings.HasSuffix(name, "Code}") {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, engine.Code(value))
		return true
	})
	return codes
}

// documented are the rows of the table of codes in docs/errors.md.
func documented(t *testing.T) map[engine.Code]int {
	t.Helper()
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[engine.Code]int{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| (\\d{3}) \\|").FindAllStringSubmatch(string(text), -1) {
		status, _ := strconv.Atoi(m[2])
		rows[engine.Code(m[1])] = status
	}
	return rows
}

func TestErrors_TableOfCodesIsThatOfTheSource(t *testing.T) {
	want := map[engine.Code]int{}
	for _, path := range []string{"../../engine/errors.go", "errors.go"} {
		codes := codesInSource(t, path)
		if len(codes) == 0 {
			t.Fatalf("%s has no codes", path)
		}
		for _, code := range codes {
			want[code] = httpapi.StatusOf(code)
		}
	}
	if diff := cmp.Diff(want, documented(t)); diff != "" {
		t.Errorf("status by code (-source +docs/errors.md):\n%s", diff)
	}
	for code, status := range want {
		if status == 500 && code != engine.Internal {
			t.Errorf("%s has no status of its own", code)
		}
	}
}

func TestErrors_EachDocumentedCodeIsAnsweredAsDocumented(t *testing.T) {
	s, f := newServer(t)
	seen := map[string]bool{}
	for _, op := range s.Contract.Operations() {
		if op.Roles == nil {
			continue
		}
		for _, status := range op.Statuses() {
			for _, code := range s.Contract.Codes(op, status) {
				f.err = fmt.Errorf("load: %w", &engine.Error{Code: engine.Code(code), Message: "m", Details: map[string]any{"declared": []string{"a<b"}}, Cause: errors.New("hunter2")})
				got := s.Do(t, examples[op.Method+" "+op.Path][0].Request)
				if strconv.Itoa(got.Status) != status || got.Body != `{"code":"`+code+`","message":"m","details":{"declared":["a<b"]}}` {
					t.Errorf("%s %s: %s gives %d %s, documented is %s", op.Method, op.Path, code, got.Status, got.Body, status)
				}
				seen[code] = true
			}
		}
	}
	delete(seen, "")
	for code := range documented(t) {
		if !seen[string(code)] && code != "METHOD_NOT_ALLOWED" {
			t.Errorf("no operation documents %s", code)
		}
	}
}

func TestErrors_RetryAfterIsInWholeSecondsRoundedUp(t *testing.T) {
	s, f := newServer(t)
	for after, want := range map[time.Duration]string{0: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60"} {
		for _, code := range []engine.Code{engine.Unavailable, engine.ResourceExhausted} {
			f.err = &engine.Error{Code: code, Message: "m", RetryAfter: after}
			if got := s.Do(t, post("/v1/executions", `{"workflow":"w"}`)); got.Header.Get("Retry-After") != want {
				t.Errorf("%s: got %q, want %q", after, got.Header.Get("Retry-After"), want)
			}
		}
	}
}

func TestErrors_WhatHasNoCodeStaysInTheLog(t *testing.T) {
	var log bytes.Buffer
	f := &fakeEngine{err: fmt.Errorf("load head: %w", errors.New("password=hunter2"))}
	s := httpapitest.NewServer(t, httpapi.Options{Engine: f, Open: true, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	for range 2 {
		got := s.Do(t, get("/v1/executions"))
		if got.Status != 500 || got.Code() != "INTERNAL" || strings.Contains(got.Body, "hunter2") || strings.Contains(got.Body, "goroutine") {
			t.Errorf("got %d %s", got.Status, got.Body)
		}
		if text := log.String(); !strings.Contains(text, "hunter2") || !strings.Contains(text, got.Header.Get("X-Request-Id")) || !strings.Contains(text, `"level":"ERROR"`) {
			t.Errorf("log: %s", text)
		}
		log.Reset()
		f.panics, f.err = true, nil // the second time it panics
		f.secret = "hunter2"
	}
}

func TestErrors_CallThatRanOutOfTimeMayBeRepeated(t *testing.T) {
	for _, err := range []error{context.DeadlineExceeded, context.Canceled} {
		s, f := newServer(t)
		f.err = fmt.Errorf("poll: %w", err)
		if got := s.Do(t, post("/v1/workers/poll", `{"worker_session_id":"mine"}`)); got.Status != 503 || got.Code() != "UNAVAILABLE" {
			t.Errorf("%v: got %d %s", err, got.Status, got.Body)
		}
	}
}

func TestLog_CallerThatHangsUpIsNoFailure(t *testing.T) {
	f := &fakeEngine{err: &engine.Error{Code: engine.Unavailable, Message: "the call ran out of time", Cause: context.Canceled}}
	var log bytes.Buffer
	s := httpapitest.NewServer(t, httpapi.Options{Engine: f, Open: true, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	r := httptest.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:7474/v1/workers", nil)
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("a proxy that is still there got %d", w.Code)
	}
	if log.Len() > 0 {
		t.Errorf("it was logged: %s", log.String())
	}
}

func TestRequestID_IsTheCallersIfItIsSane(t *testing.T) {
	s, _ := newServer(t)
	seen := map[string]bool{}
	for _, id := range []string{"a-b_C.9:=+/@", strings.Repeat("x", 128), "", strings.Repeat("x", 129), "a b", "a\nb", "é", `"x"`} {
		r := get("/healthz")
		r.Header = map[string]string{"X-Request-Id": id}
		got := s.Do(t, r).Header.Get("X-Request-Id")
		sane := id != "" && len(id) <= 128 && !strings.ContainsAny(id, " \n\"é")
		if (got == id) != sane || got == "" || seen[got] {
			t.Errorf("%.20q became %q", id, got)
		}
		seen[got] = true
	}
}

func TestLog_OneLineWithoutWhatIsNobodysBusiness(t *testing.T) {
	var log bytes.Buffer
	handler := slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "time" || a.Key == "duration_ms" {
			return slog.Attr{}
		}
		return a
	}})
	f := &fakeEngine{}
	s := httpapitest.NewServer(t, httpapi.Options{Engine: f, Logger: slog.New(handler)})
	for _, c := range []struct {
		r    httpapitest.Request
		err  error
		want string
	}{
		{get("/v1/executions/order-1?units_after=secret"), nil, `{"level":"INFO","msg":"request","method":"GET","route":"GET /v1/executions/{id}","status":200,"request_id":"r","execution_id":"order-1","caller":"t"}`},
		{post("/v1/workers/poll", `{"worker_session_id":"secret"}`), nil, `{"level":"DEBUG","msg":"request","method":"POST","route":"POST /v1/workers/poll","status":200,"request_id":"r","caller":"t"}`},
		{get("/v1/secret"), nil, `{"level":"INFO","msg":"request","method":"GET","route":"/","status":404,"request_id":"r","code":"NOT_FOUND"}`},
		{get("/v1/workers"), &engine.Error{Code: engine.Unavailable, Message: "m", Cause: errors.New("dial tcp")}, `{"level":"ERROR","msg":"request","method":"GET","route":"GET /v1/workers","status":503,"request_id":"r","caller":"t","code":"UNAVAILABLE","cause":"dial tcp"}`},
	} {
		log.Reset()
		f.err = c.err
		c.r.Header = map[string]string{"Authorization": "Bearer admin", "X-Request-Id": "r"}
		s.Do(t, c.r)
		if got := strings.TrimSpace(log.String()); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.r.Path, got, c.want)
		}
	}
}

func TestNew_WithoutEngineIsAMistakeOfTheProgram(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("nothing happened")
		}
	}()
	httpapi.New(httpapi.Options{})
}

func TestErrors_DocumentedCodesAreKnown(t *testing.T) {
	contract, err := httpapitest.LoadContract()
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Sorted(maps.Keys(documented(t)))
	for _, op := range contract.Operations() {
		for _, status := range op.Statuses() {
			for _, code := range contract.Codes(op, status) {
				if !slices.Contains(known, engine.Code(code)) || strconv.Itoa(httpapi.StatusOf(engine.Code(code))) != status {
					t.Errorf("%s %s documents %s with %s", op.Method, op.Path, code, status)
				}
			}
		}
	}
}
