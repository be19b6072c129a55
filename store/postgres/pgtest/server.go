package pgtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// startAttempts covers the moment between choosing a port and listening on it.
const startAttempts = 3

// startServer makes a cluster in a temporary directory and starts it, with
// further settings.
func startServer(settings ...string) (*process, *url.URL, error) {
	initdb, err := serverProgram("initdb")
	if err != nil {
		return nil, nil, err
	}
	postgres, err := serverProgram("postgres")
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
	password := randomHex(16)
	if err := initCluster(a, initdb, dir, password); err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	for attempt := 1; ; attempt++ {
		p, base, err := runCluster(a, postgres, dir, password, settings)
		if err == nil {
			return p, base, nil
		}
		if attempt == startAttempts {
			os.RemoveAll(dir)
			return nil, nil, fmt.Errorf("start Postgres: %w", err)
		}
	}
}

// initCluster runs initdb. Its own syncing is left out: a cluster that a
// crash loses here is made anew.
func initCluster(a *account, initdb, dir, password string) error {
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		return err
	}
	if a != nil {
		if err := os.Chown(secret, int(a.uid), int(a.gid)); err != nil {
			return err
		}
	}
	cmd := exec.Command(initdb, "--pgdata="+filepath.Join(dir, "data"), "--username=perigee",
		"--auth=scram-sha-256", "--pwfile="+secret, "--encoding=UTF8", "--locale=C", "--no-sync")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = a.attributes(syscall.SIGKILL)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// runCluster starts the server and waits until it answers.
func runCluster(a *account, postgres, dir, password string, settings []string) (*process, *url.URL, error) {
	port, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	fsync := "on"
	if os.Getenv("PERIGEE_TEST_POSTGRES_FSYNC") == "off" {
		fsync = "off"
	}
	args := []string{"-D", filepath.Join(dir, "data"), "-p", strconv.Itoa(port)}
	for _, setting := range append([]string{
		"listen_addresses=127.0.0.1",
		"unix_socket_directories=",
		"max_connections=200",
		"fsync=" + fsync,
		"shared_buffers=128MB",
		"log_min_messages=warning",
		"log_min_error_statement=panic", // lost races are part of the tests
	}, settings...) {
		args = append(args, "-c", setting)
	}
	// SIGINT: disconnect everyone and stop; SIGQUIT: the same without the last checkpoint.
	p, err := startProcess(a, dir, syscall.SIGINT, syscall.SIGQUIT, postgres, args...)
	if err != nil {
		return nil, nil, err
	}
	base := &url.URL{
		Scheme: "postgres", User: url.UserPassword("perigee", password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), RawQuery: "sslmode=disable",
	}
	if err := p.await(func() error { return ping(withDatabase(base, "postgres")) }); err != nil {
		p.cmd.Process.Kill()
		<-p.ended
		return nil, nil, err
	}
	return p, base, nil
}

func ping(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.Ping(ctx)
}

// serverProgram finds one of the server's programs: beside pg_config, where
// Debian keeps its versions (the newest), or in the PATH.
func serverProgram(name string) (string, error) {
	var places []string
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		places = append(places, strings.TrimSpace(string(out)))
	}
	versions, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(versions, func(a, b string) int { return debianVersion(b) - debianVersion(a) })
	for _, place := range append(places, versions...) {
		path := filepath.Join(place, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", missing("Postgres's "+name, "postgresql")
}

// debianVersion is the 15 of /usr/lib/postgresql/15/bin.
func debianVersion(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return n
}
