package pgtest

import "fmt"

// Pids are the process ids of the running servers.
func Pids() string {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	return fmt.Sprint(shared.server.cmd.Process.Pid, " ", shared.pooler.cmd.Process.Pid)
}
