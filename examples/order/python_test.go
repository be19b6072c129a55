package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// patience bounds what a test waits for another process.
const patience = 20 * time.Second

// said is one message of a worker, as a test server got it.
type said struct {
	Path string
	Body map[string]any
}

// protocolServer answers a worker: tasks are what polls bring, in turn, and
// next what results bring.
type protocolServer struct {
	url   string
	tasks chan string // JSON
	next  chan string
	heard chan said
	stop  string       // a token that heartbeats which list it are told to stop
	busy  atomic.Int32 // results that are answered with a conflict before one is taken
}

func serveProtocol(t *testing.T) *protocolServer {
	t.Helper()
	s := &protocolServer{tasks: make(chan string, 8), next: make(chan string, 8), heard: make(chan said, 64)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, `{"code":"INVALID_REQUEST","message":"no JSON"}`, http.StatusBadRequest)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/v1/tasks/") && s.busy.Add(-1) >= 0 {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"code":"CONFLICT","message":"too many calls changed the execution at once"}`)
			return
		}
		fmt.Fprint(w, s.answer(r, body))
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func (s *protocolServer) answer(r *http.Request, body map[string]any) string {
	switch r.URL.Path {
	case "/v1/workers/register":
		s.heard <- said{r.URL.Path, body}
		return `{"accepted":true,"worker_session_id":"s-1","heartbeat_interval_ms":50,"session_timeout_ms":1000,"warnings":[]}`
	case "/v1/workers/poll":
		select {
		case task := <-s.tasks:
			return `{"tasks":[` + task + `],"next_poll_ms":0}`
		case <-r.Context().Done():
			return `{"tasks":[],"next_poll_ms":0}`
		}
	case "/v1/workers/heartbeat":
		for _, token := range body["tokens"].([]any) {
			if token == s.stop {
				return `{"accepted":true,"cancel":["` + s.stop + `"]}`
			}
		}
		return `{"accepted":true,"cancel":[]}`
	case "/v1/tasks/complete", "/v1/tasks/fail":
		s.heard <- said{r.URL.Path, body}
		select {
		case task := <-s.next:
			return `{"accepted":true,"next":` + task + `}`
		default:
			return `{"accepted":true}`
		}
	}
	s.heard <- said{r.URL.Path, body}
	return `{"accepted":true}`
}

// hear waits for the worker's next message, heartbeats and polls aside.
func (s *protocolServer) hear(t *testing.T) said {
	t.Helper()
	select {
	case m := <-s.heard:
		return m
	case <-time.After(patience):
		t.Fatal("the worker said nothing more")
		return said{}
	}
}

// python starts worker.py; its log is shown if the test fails.
func python(t *testing.T, server, book string) *exec.Cmd {
	t.Helper()
	var log strings.Builder
	cmd := exec.Command("python3", "worker.py", "--server", server, "--id", "payments-1", "--ledger", book)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return cmd
}

func chargeTask(token, order, card string, redelivery bool) string {
	return fmt.Sprintf(`{"token":%q,"execution_id":%q,"workflow":"order-fulfilment","workflow_version":"1.0.0","step_id":"charge","task_name":"payment.charge",`+
		`"contract_version":"1.0.0","input":{"order":%q,"amount":12.5,"card":%q},"idempotency_key":"%s/charge","attempt":1,"redelivery":%t}`, token, order, order, card, order, redelivery)
}

func TestPythonWorker_ReportsGoesOnByNextAndUnregisters(t *testing.T) {
	s := serveProtocol(t)
	s.next <- chargeTask("t2", "o-2", "tok_declined", false)
	s.tasks <- chargeTask("t1", "o-1", "tok_visa", false)
	cmd := python(t, s.url, filepath.Join(t.TempDir(), "bank.jsonl"))

	register := s.hear(t)
	if register.Body["runtime"] != "python" || len(register.Body["contracts"].([]any)) != 3 {
		t.Errorf("registration: %v", register.Body)
	}
	next := map[string]any{"worker_session_id": "s-1"}
	want := []said{
		{"/v1/tasks/complete", map[string]any{"token": "t1", "output": map[string]any{"charge": "charge-1"}, "next": next}},
		{"/v1/tasks/fail", map[string]any{"token": "t2", "next": next,
			"error": map[string]any{"code": "CARD_DECLINED", "message": "the bank declined tok_declined", "retryable": false}}},
	}
	if diff := cmp.Diff(want, []said{s.hear(t), s.hear(t)}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	bye := said{"/v1/workers/unregister", map[string]any{"worker_session_id": "s-1"}}
	if diff := cmp.Diff(bye, s.hear(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the worker ended with %v", err)
	}
}

func TestPythonWorker_ChargeMadeBeforeAKillIsNotMadeAgain(t *testing.T) {
	s := serveProtocol(t)
	book := filepath.Join(t.TempDir(), "bank.jsonl")
	s.tasks <- chargeTask("t1", "o-1", "tok_slow_bank", false)
	first := python(t, s.url, book)
	s.hear(t) // the registration
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if text, _ := os.ReadFile(book); len(text) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the bank has booked nothing")
		}
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.tasks <- chargeTask("t2", "o-1", "tok_slow_bank", true)
	python(t, s.url, book)
	s.hear(t) // the registration
	want := said{"/v1/tasks/complete", map[string]any{"token": "t2", "output": map[string]any{"charge": "charge-1"}, "next": map[string]any{"worker_session_id": "s-1"}}}
	if diff := cmp.Diff(want, s.hear(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(book)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n != 1 {
		t.Errorf("the bank's book has %d lines, want 1:\n%s", n, text)
	}
}

func TestPythonWorker_StopsWhenAHeartbeatSaysSo(t *testing.T) {
	s := serveProtocol(t)
	s.stop = "t1"
	python(t, s.url, filepath.Join(t.TempDir(), "bank.jsonl"))
	s.hear(t) // the registration
	s.tasks <- chargeTask("t1", "o-1", "tok_slow_bank", false)
	got := s.hear(t)
	if failure, _ := got.Body["error"].(map[string]any); got.Path != "/v1/tasks/fail" || failure["code"] != "CANCELLED" {
		t.Errorf("got %+v", got)
	}
}

// A conflict takes no result: it is lost unless it is sent again.
func TestPythonWorker_RepeatsAResultThatMetAConflict(t *testing.T) {
	s := serveProtocol(t)
	s.busy.Store(2)
	s.tasks <- chargeTask("t1", "o-1", "tok_visa", false)
	python(t, s.url, filepath.Join(t.TempDir(), "bank.jsonl"))
	s.hear(t) // the registration
	want := said{"/v1/tasks/complete", map[string]any{"token": "t1", "output": map[string]any{"charge": "charge-1"}, "next": map[string]any{"worker_session_id": "s-1"}}}
	if diff := cmp.Diff(want, s.hear(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
