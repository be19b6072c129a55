package pgtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// account is the unprivileged user that servers run as; nil where the tests
// are not run by root and so are that user themselves.
type account struct{ uid, gid uint32 }

// serverAccount is the user postgres or else nobody: neither Postgres nor
// pgbouncer agrees to run as root.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("ids of user %s: %w", name, err)
		}
		return &account{uint32(uid), uint32(gid)}, nil
	}
	return nil, errors.New("running as root, and there is neither a user postgres nor nobody to run a server as")
}

// attributes runs a command as that user, and ends it with this process:
// signal is sent when the thread that started it is gone.
func (a *account) attributes(signal syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: signal, Setpgid: true}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}

// dirPrefix starts the names of the servers' directories; the process id of
// their test binary follows, so that a later run can clear what a killed one left.
const dirPrefix = "perigee-pgtest-"

// tempDir makes a directory that belongs to the server's user.
func (a *account) tempDir() (string, error) {
	clearLeftovers()
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", dirPrefix, os.Getpid()))
	if err != nil {
		return "", err
	}
	if a != nil {
		if err := os.Chown(dir, int(a.uid), int(a.gid)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// clearLeftovers removes directories whose test binary is gone.
func clearLeftovers() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	for _, dir := range dirs {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix), "-")
		pid, err := strconv.Atoi(text)
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			os.RemoveAll(dir)
		}
	}
}

// process is a server that runs until stop, or until this process is gone.
type process struct {
	dir    string
	cmd    *exec.Cmd
	signal syscall.Signal // asks for a quick, clean end
	ended  chan struct{}
}

// startProcess starts a server whose output goes to a file "log" in dir.
func startProcess(a *account, dir string, quit, death syscall.Signal, program string, args ...string) (*process, error) {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGTZ=UTC")
	cmd.SysProcAttr = a.attributes(death)
	p := &process{dir: dir, cmd: cmd, signal: quit, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The death signal comes when the starting thread ends, not when the
		// process does: this goroutine keeps its thread for the server's life.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// stop ends the server and removes its directory.
func (p *process) stop() {
	p.cmd.Process.Signal(p.signal)
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.cmd.Process.Kill()
		<-p.ended
	}
	os.RemoveAll(p.dir)
}

// await calls ready until it succeeds, the server ends or time is up. The
// error holds the last lines of the server's log.
func (p *process) await(ready func() error) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended at once:\n%s", filepath.Base(p.cmd.Path), p.logTail())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not ready after 30 s (%w):\n%s", filepath.Base(p.cmd.Path), err, p.logTail())
		}
	}
}

func (p *process) logTail() string {
	text, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// freePort is a loopback port that nobody listened on a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
