package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"perigee/sdk/go/client"
	"perigee/sdk/go/worker"
)

// taskServer hands out n tasks over HTTP: one for each slot by poll, the rest
// by `next`. done is closed with the last result.
func taskServer(tb testing.TB, n int) (c *client.Client, polls *atomic.Int32, done chan struct{}) {
	tb.Helper()
	var given, taken atomic.Int32
	polls, done = new(atomic.Int32), make(chan struct{})
	var once sync.Once
	one := func() string {
		i := given.Add(1)
		if int(i) > n {
			return ""
		}
		return fmt.Sprintf(`{"token":"t%d.secret","execution_id":"x","workflow":"w","workflow_version":"1.0.0","step_id":"s","task_name":"echo",`+
			`"contract_version":"1.0.0","input":{"id":%d,"note":"a document of some length that goes in and out again"},"idempotency_key":"x/s","attempt":1,"redelivery":false,"timeout_ms":60000}`, i, i)
	}
	mux := http.NewServeMux()
	answer := func(pattern, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
	}
	answer("POST /v1/workers/register", `{"accepted":true,"worker_session_id":"s1","heartbeat_interval_ms":1000,"session_timeout_ms":3000,"warnings":[]}`)
	answer("POST /v1/workers/heartbeat", `{"accepted":true,"cancel":[]}`)
	answer("POST /v1/workers/unregister", `{"accepted":true}`)
	mux.HandleFunc("POST /v1/workers/poll", func(w http.ResponseWriter, r *http.Request) {
		polls.Add(1)
		var in struct {
			Max int `json:"max_tasks"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		list := ""
		for range in.Max {
			t := one()
			if t == "" {
				break
			}
			if list != "" {
				list += ","
			}
			list += t
		}
		if list == "" {
			select {
			case <-r.Context().Done():
			case <-done:
			}
		}
		_, _ = io.WriteString(w, `{"tasks":[`+list+`],"next_poll_ms":0}`)
	})
	mux.HandleFunc("POST /v1/tasks/complete", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if int(taken.Add(1)) == n {
			once.Do(func() { close(done) })
		}
		if t := one(); t != "" {
			_, _ = io.WriteString(w, `{"accepted":true,"next":`+t+`}`)
			return
		}
		_, _ = io.WriteString(w, `{"accepted":true}`)
	})
	srv := httptest.NewServer(mux)
	tb.Cleanup(srv.Close)
	c, err := client.New(srv.URL, client.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.CloseIdleConnections)
	return c, polls, done
}

func TestWorker_OverHTTP(t *testing.T) {
	c, polls, done := taskServer(t, 50)
	w, err := worker.New(c, worker.Options{WorkerID: "w-1", Concurrency: 4})
	if err != nil {
		t.Fatal(err)
	}
	w.Handle("echo", "1.0.0", func(_ context.Context, t *worker.Task) (any, error) { return t.Input, nil })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-done
		cancel()
	}()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := polls.Load(); n > 5 {
		t.Errorf("polls: got %d for 50 tasks in 4 slots, want at most one a slot and the one that is held", n)
	}
}

// BenchmarkWorker_Task is one task with its result over loopback HTTP, the
// test's own server included.
func BenchmarkWorker_Task(b *testing.B) {
	c, _, done := taskServer(b, b.N)
	w, err := worker.New(c, worker.Options{WorkerID: "w-1", Concurrency: 16})
	if err != nil {
		b.Fatal(err)
	}
	w.Handle("echo", "1.0.0", func(_ context.Context, t *worker.Task) (any, error) { return t.Input, nil })
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-done
		cancel()
	}()
	b.ReportAllocs()
	b.ResetTimer()
	if err := w.Run(ctx); err != nil {
		b.Fatal(err)
	}
}
