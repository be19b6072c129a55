package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a process has to end by itself.
const stopGrace = 5 * time.Second

// process is a child whose output goes to a file.
type process struct {
	name   string
	cmd    *exec.Cmd
	log    string
	ended  chan struct{}
	stdout io.ReadCloser // nil unless asked for
}

// start starts a child. With readStdout its standard output is for the caller
// and only its standard error goes to the log.
func start(name, dir string, readStdout bool, command string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(command, args...), log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	file, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer file.Close() // the child has its own
	p.cmd.Stderr = file
	p.cmd.Env = slices.DeleteFunc(os.Environ(), isSetting)
	if !readStdout {
		p.cmd.Stdout = file
	} else if p.stdout, err = p.cmd.StdoutPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if !readStdout {
		go p.wait()
	}
	return p, nil
}

// isSetting tells the variables that would set up a server or a worker
// otherwise than the demo does.
func isSetting(variable string) bool { return strings.HasPrefix(variable, "PERIGEE_") }

func (p *process) wait() {
	_ = p.cmd.Wait() // how it ended is for its log
	close(p.ended)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process at once, as kill -9 does, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.ended
}

// stop asks the process to end and kills it if it does not.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopGrace):
		p.kill()
	}
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// tail is the end of the process's log, for a person who looks for the cause.
func (p *process) tail(lines int) string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
