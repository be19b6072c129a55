package lambda

import "syscall"

// attributes end a process with this one, also when this one is killed: a
// stopped process would stay for ever. An interrupt of the terminal is ours to
// hand on.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
