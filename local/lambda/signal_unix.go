//go:build unix

package lambda

import (
	"os"
	"syscall"
)

// freeze and thaw stop a process and let it go on. One that has ended needs
// neither.
func freeze(p *os.Process) { p.Signal(syscall.SIGSTOP) }
func thaw(p *os.Process)   { p.Signal(syscall.SIGCONT) }
