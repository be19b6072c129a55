package pgtest

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// PoolerURL is URL through a pgbouncer in transaction mode: two statements
// outside a transaction may run on two server connections, and many clients
// share a few.
func PoolerURL(t testing.TB) string {
	t.Helper()
	return Pooled(t, URL(t))
}

// Pooled is the URL of the same database through the pooler.
func Pooled(t testing.TB, direct string) string {
	t.Helper()
	base := server(t)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.pooler == nil {
		p, u, err := startPooler(base)
		if err != nil {
			t.Fatalf("pgtest: %v", err)
		}
		shared.pooler, shared.poolerURL = p, u
	}
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatalf("pgtest: URL of the database: %v", err)
	}
	pooled := *shared.poolerURL
	pooled.Path = u.Path
	return pooled.String()
}

// startPooler starts pgbouncer in front of the server.
func startPooler(base *url.URL) (*process, *url.URL, error) {
	program, err := poolerProgram()
	if err != nil {
		return nil, nil, err
	}
	a, err := serverAccount()
	if err != nil {
		return nil, nil, err
	}
	dir, err := a.tempDir()
	if err != nil {
		return nil, nil, err
	}
	for attempt := 1; ; attempt++ {
		p, u, err := runPooler(a, program, dir, base)
		if err == nil {
			return p, u, nil
		}
		if attempt == startAttempts {
			os.RemoveAll(dir)
			return nil, nil, fmt.Errorf("start pgbouncer: %w", err)
		}
	}
}

func runPooler(a *account, program, dir string, base *url.URL) (*process, *url.URL, error) {
	port, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	host, serverPort := base.Hostname(), base.Port()
	if serverPort == "" {
		serverPort = "5432"
	}
	password, _ := base.User.Password()
	files := map[string]string{
		"users": fmt.Sprintf("%q %q\n", base.User.Username(), password),
		"config": fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = transaction
default_pool_size = 8
max_client_conn = 500
server_idle_timeout = 5
`, host, serverPort, port, filepath.Join(dir, "users")),
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, nil, err
		}
		if a != nil {
			if err := os.Chown(path, int(a.uid), int(a.gid)); err != nil {
				return nil, nil, err
			}
		}
	}
	p, err := startProcess(a, dir, syscall.SIGTERM, syscall.SIGKILL, program, filepath.Join(dir, "config"))
	if err != nil {
		return nil, nil, err
	}
	u := *base
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := p.await(func() error { return ping(withDatabase(&u, "postgres")) }); err != nil {
		p.cmd.Process.Kill()
		<-p.ended
		return nil, nil, err
	}
	return p, &u, nil
}

// poolerProgram finds pgbouncer, which Debian keeps outside a user's PATH.
func poolerProgram() (string, error) {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	if _, err := os.Stat("/usr/sbin/pgbouncer"); err == nil {
		return "/usr/sbin/pgbouncer", nil
	}
	return "", missing("pgbouncer", "pgbouncer")
}
