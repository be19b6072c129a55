package moto

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// Start runs a server with nothing in it until the test ends, and gives its URL.
func Start(t testing.TB) string {
	t.Helper()
	program := filepath.Join(root(), ".build", "moto", "bin", "moto_server")
	if _, err := os.Stat(program); err != nil {
		t.Fatal("moto's server is not installed: run .ci/moto, which needs python3")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	listener.Close() // moto takes a port only by number
	cmd := exec.Command(program, "-H", "127.0.0.1", "-p", fmt.Sprint(address.Port))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { cmd.Wait(); close(exited) }()
	t.Cleanup(func() { cmd.Process.Kill(); <-exited })
	url := "http://" + address.String()
	for deadline := time.Now().Add(time.Minute); ; {
		if resp, err := http.Get(url + "/moto-api/data.json"); err == nil {
			resp.Body.Close()
			return url
		}
		select {
		case <-exited:
			t.Fatalf("moto's server ended: %s", log.String())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("moto's server does not answer")
		}
	}
}

// root is the top folder of the source.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}
