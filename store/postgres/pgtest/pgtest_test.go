package pgtest_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perigee/store/postgres/pgtest"
)

// childMark makes the test binary a child that starts its servers, prints
// their process ids and waits to be killed.
const childMark = "PERIGEE_PGTEST_CHILD"

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestURL_EachTestHasItsOwnDatabase(t *testing.T) {
	first, second := pgtest.URL(t), pgtest.URL(t)
	if first == second {
		t.Fatalf("two tests share %s", first)
	}
	exec1(t, first, `CREATE TABLE mine (n int)`)
	if n := count(t, second, `SELECT count(*) FROM pg_tables WHERE tablename = 'mine'`); n != 0 {
		t.Error("one test's table is in another's database")
	}
}

func TestPoolerURL_SharesOneServerConnectionBetweenClients(t *testing.T) {
	url := pgtest.PoolerURL(t)
	pids := map[int64]bool{}
	for range 3 {
		conn := connect(t, url)
		var pid int64
		if err := conn.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		pids[pid] = true // the clients stay connected
	}
	if len(pids) != 1 {
		t.Errorf("three clients in turn used %d server connections, want 1", len(pids))
	}
}

func TestTemplate_IsPreparedOnceAndGivenEmptyAgain(t *testing.T) {
	prepared := 0
	prepare := func(url string) error {
		prepared++
		exec1(t, url, `CREATE TABLE kept AS SELECT 1 AS n`)
		exec1(t, url, `CREATE TABLE used (n int)`)
		return nil
	}
	for range 2 {
		t.Run("Copy", func(t *testing.T) {
			url := pgtest.Template(t, "sample", prepare, "kept")
			if n := count(t, url, `SELECT (SELECT count(*) FROM kept) * 10 + (SELECT count(*) FROM used)`); n != 10 {
				t.Errorf("kept and used hold %d rows, want 1 and 0", n)
			}
			exec1(t, url, `INSERT INTO used VALUES (7)`)
		})
	}
	if prepared != 1 {
		t.Errorf("prepared %d times, want once", prepared)
	}
}

// TestServers_EndWithAKilledTestBinary kills a process that started both
// servers, as a test's time-out does, and looks for them.
func TestServers_EndWithAKilledTestBinary(t *testing.T) {
	if os.Getenv(childMark) != "" {
		beKilled(t)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), childMark+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "pids: "); ok {
			for _, field := range strings.Fields(text) {
				pid, err := strconv.Atoi(field)
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, pid)
			}
			break
		}
	}
	if len(pids) != 2 {
		t.Fatalf("the child started %d servers, want 2", len(pids))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	deadline := time.Now().Add(20 * time.Second)
	for _, pid := range pids {
		for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			if time.Now().After(deadline) {
				t.Fatalf("server %d outlives its test binary", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// beKilled is the child's part.
func beKilled(t *testing.T) {
	pgtest.PoolerURL(t)
	os.Stdout.WriteString("pids: " + pgtest.Pids() + "\n")
	time.Sleep(time.Hour)
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func exec1(t *testing.T, url, sql string) {
	t.Helper()
	conn := connect(t, url)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, url, sql string) (n int) {
	t.Helper()
	if err := connect(t, url).QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
