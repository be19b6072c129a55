package blackbox_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// binary builds the perigee binary, once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "perigee-blackbox-")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	path := filepath.Join(dir, "perigee")
	build := exec.Command("go", "build", "-o", path, "perigee/local/perigee")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, out)
	}
	return path, nil
})

var binaryDir string

// removeBinary removes what the tests have built.
func removeBinary() {
	for _, dir := range []string{binaryDir, functionsDir} {
		if dir != "" {
			os.RemoveAll(dir)
		}
	}
}

// perigee is a command line of the binary, ready to run.
func perigee(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = t.TempDir() // where a default database would be made
	return cmd
}

// processes serves with the perigee binary.
type processes struct{}

type process struct {
	t    *testing.T
	args []string
	logs serverLog

	url string
	cmd *exec.Cmd
	out io.ReadCloser
}

func (processes) start(t *testing.T, db testDatabase, s settings) server {
	t.Helper()
	return startProcess(t, []string{"dev", "--json", "--listen", "127.0.0.1:0", "--log-format", "json"}, db, s)
}

// startProcess runs a command that serves, with flags for the database and the
// settings, until the test ends.
func startProcess(t *testing.T, args []string, db testDatabase, s settings) server {
	t.Helper()
	p := &process{t: t, args: args}
	for _, flags := range []map[string]string{db.flags, s.flags} {
		var names []string
		for name := range flags {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			p.args = append(p.args, "--"+name+"="+flags[name])
		}
	}
	t.Cleanup(func() {
		if p.cmd != nil {
			p.kill()
		}
	})
	p.restart()
	return p
}

func (p *process) restart() {
	p.t.Helper()
	p.cmd = perigee(p.t, p.args...)
	p.cmd.Stderr = &p.logs
	var err error
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	watchdog := time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
	defer watchdog.Stop()
	line, err := bufio.NewReader(p.out).ReadBytes('\n')
	var ready struct{ URL string }
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		p.kill()
		p.t.Fatalf("%s did not say where it is: %v\n%s%v", p.args, err, line, p.logs.lines(""))
	}
	p.url = ready.URL
}

func (p *process) URL() string { return p.url }

func (p *process) log() *serverLog { return &p.logs }

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait() // its error says that it was killed
	p.cmd = nil
}
