package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	secret = "shared"
	token  = "perigee_0123456789abcdef0123456789abcdef"
)

// reports answers as a server with tokens does, and keeps what it was told.
func reports(t *testing.T) (url string, heard chan string) {
	t.Helper()
	heard = make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+token {
			t.Errorf("Authorization is %q", got)
		}
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		text, err := json.Marshal(body)
		if err != nil {
			t.Error(err)
		}
		heard <- r.URL.Path + " " + string(text)
		fmt.Fprint(w, `{"accepted":true}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, heard
}

// call is what the server would send.
func call(t *testing.T, url, body string, at time.Time, secret string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	timestamp := fmt.Sprint(at.Unix())
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "." + body))
	req.Header.Set("perigee-timestamp", timestamp)
	req.Header.Set("perigee-signature", "v1="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func goWorker(t *testing.T, server string) (url string) {
	t.Helper()
	wk, err := newWorker(server, secret)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(wk)
	t.Cleanup(srv.Close)
	return srv.URL
}

func pythonWorker(t *testing.T, server string) (url string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", "worker.py", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "PERIGEE_URL="+server, "PERIGEE_SECRET_MAILER="+secret)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	url = regexp.MustCompile(`http://\S+`).FindString(line)
	if url == "" {
		rest, _ := io.ReadAll(out)
		t.Fatalf("the worker said %q%s, %v, %s", line, rest, err, complaints.String())
	}
	return url
}

func TestWorkers_TakeSignedCallsOnly(t *testing.T) {
	const (
		greet = `{"token":"t","task_name":"mail.welcome","contract_version":"1.0.0","input":{"name":"Ada"}}`
		other = `{"token":"t","task_name":"mail.bye","contract_version":"1.0.0","input":{}}`
	)
	t.Setenv("PERIGEE_TOKEN", token)
	for language, start := range map[string]func(*testing.T, string) string{"go": goWorker, "python": pythonWorker} {
		t.Run(language, func(t *testing.T) {
			server, heard := reports(t)
			url := start(t, server)
			now := time.Now()
			for name, status := range map[string]int{
				"another secret": call(t, url, greet, now, "other"),
				"an old call":    call(t, url, greet, now.Add(-10*time.Minute), secret),
			} {
				if status != http.StatusUnauthorized {
					t.Errorf("%s: answered %d", name, status)
				}
			}
			if status := call(t, url, greet, now, secret); status != http.StatusNoContent {
				t.Fatalf("a good call: answered %d", status)
			}
			want := `/v1/tasks/complete {"output":{"text":"Welcome, Ada!"},"token":"t"}`
			if diff := cmp.Diff(want, <-heard); diff != "" {
				t.Errorf("the report (-want +got):\n%s", diff)
			}
			if status := call(t, url, other, now, secret); status != http.StatusNoContent {
				t.Errorf("a task of others: answered %d", status)
			}
			if got := <-heard; !strings.HasPrefix(got, `/v1/tasks/fail {"error":{"code":"CANNOT_GREET",`) {
				t.Errorf("a task of others: reported %s", got)
			}
		})
	}
}

// The page shows how to check a signature; it shows what is tested here.
func TestDocs_ShowTheChecks(t *testing.T) {
	page, err := os.ReadFile("../../docs/push.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, mark := range map[string]string{"verify.go": "// verify reports", "worker.py": "def verify("} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, function, ok := strings.Cut(string(source), mark)
		function, _, _ = strings.Cut(function, "\n\n\n")
		if !ok || !strings.Contains(string(page), mark+strings.TrimRight(function, "\n")) {
			t.Errorf("docs/push.md does not show the function of %s as it is", file)
		}
	}
}
