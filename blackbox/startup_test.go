package blackbox_test

import (
	"bytes"
	"context"
	"database/sql"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // opens the file as another program would

	"perigee/store/postgres/pgtest"
)

// refusesToStart runs `perigee dev`, which must end by itself with one clear
// line and an exit code that is not 0.
func refusesToStart(t *testing.T, args []string, words ...string) {
	t.Helper()
	made := perigee(t, append([]string{"dev", "--listen", "127.0.0.1:0"}, args...)...) // built before its time counts
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, made.Path, made.Args[1:]...)
	cmd.Dir = made.Dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("perigee dev %v goes on: %s%s", args, out.String(), errs.String())
	}
	if _, isExit := err.(*exec.ExitError); !isExit {
		t.Errorf("perigee dev %v ended with %v, want an exit code that is not 0", args, err)
	}
	text := strings.TrimSpace(errs.String())
	if text == "" || strings.Contains(text, "\n") || out.Len() > 0 {
		t.Errorf("perigee dev %v: want one line, got %q and %q", args, text, out.String())
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("perigee dev %v: %q does not say %q", args, text, w)
		}
	}
	for _, noise := range []string{"goroutine ", "SQLITE_", "panic", "secret-password"} {
		if strings.Contains(text, noise) {
			t.Errorf("perigee dev %v: %q says %q", args, text, noise)
		}
	}
}

func TestStart_ServerThatCannotWorkSaysWhyInOneLine(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	dir := t.TempDir()
	noDatabase := filepath.Join(dir, "letter.txt")
	if err := os.WriteFile(noDatabase, []byte(strings.Repeat("Dear database, ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	unused := freeAddress(t)
	file := "--database=" + filepath.Join(dir, "perigee.db")
	for name, c := range map[string]struct{ args, words []string }{
		"a port that is taken":       {[]string{file, "--listen", taken.Addr().String()}, []string{taken.Addr().String(), "port", "--listen"}},
		"an address that is none":    {[]string{file, "--listen", "nowhere"}, []string{"nowhere", "host:port"}},
		"an address for everybody":   {[]string{file, "--listen", "0.0.0.0:0"}, []string{"token create"}},
		"a folder that is not there": {[]string{"--database", filepath.Join(dir, "no", "such", "perigee.db")}, []string{"no/such"}},
		"a folder":                   {[]string{"--database", dir}, []string{dir}},
		"a path through a file":      {[]string{"--database", filepath.Join(noDatabase, "perigee.db")}, []string{"letter.txt"}},
		"a file that is no database": {[]string{"--database", noDatabase}, []string{"letter.txt"}},
		"a device":                   {[]string{"--database", "/dev/full"}, []string{"/dev/full"}},
		"another kind of database":   {[]string{"--database", "mysql://localhost/x"}, []string{"mysql", "postgres://"}},
		"a URL that is none":         {[]string{"--database", "postgres://user:secret-password@host:port:x/db"}, []string{"postgres"}},
		"a server that is not there": {[]string{"--database", "postgres://user:secret-password@" + unused + "/db"}, []string{unused}},
		"a duration without a unit":  {[]string{file, "--session-timeout", "5"}, []string{"--session-timeout", "500ms"}},
		"a mode that is none":        {[]string{file, "--tick-mode", "hourly"}, []string{"precise"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusesToStart(t, c.args, c.words...)
		})
	}
}

// freeAddress is an address on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestStart_ServerRefusesAPostgresThatIsNotReady(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	empty := pgtest.URL(t)
	refusesToStart(t, []string{"--database", empty}, "perigee migrate")

	noSuch := strings.Replace(empty, "/perigee_", "/missing_", 1)
	refusesToStart(t, []string{"--database", noSuch}, "missing_")

	newer := pgtest.URL(t)
	if out, err := perigee(t, "migrate", "--database", newer).CombinedOutput(); err != nil {
		t.Fatalf("perigee migrate: %v\n%s", err, out)
	}
	conn, err := pgx.Connect(ctx, newer)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(ctx, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true); UPDATE oldest_release SET version = 99999`)
	conn.Close(ctx)
	if err != nil {
		t.Fatal(err)
	}
	refusesToStart(t, []string{"--database", newer}, "99999", "newer")
	refusesToStart(t, []string{"--database", newer, "--migrate"}, "99999", "newer")
}

func TestStart_ServerRefusesAFileOfANewerRelease(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "perigee.db")
	if out, err := perigee(t, "migrate", "--database", path).CombinedOutput(); err != nil {
		t.Fatalf("perigee migrate: %v\n%s", err, out)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1); UPDATE oldest_release SET version = 99999`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	refusesToStart(t, []string{"--database", path}, "99999", "newer", path)
}

func TestStop_EndsInTimeWhilePollsAreHeld(t *testing.T) {
	t.Parallel()
	e := newEnv(t, processes{}, newDatabase(t, "sqlite"), settings{})
	e.deploy(oneStep)
	stop := e.workers(2, 2, echo, func(error) {})
	e.end(e.start("one", "", `{}`), "COMPLETED")
	p := e.server.(*process)
	begin := time.Now()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	p.cmd = nil
	for _, line := range p.logs.lines("WARN") {
		t.Errorf("after %v it said %s", time.Since(begin), line)
	}
	p.restart() // for the workers, who say goodbye
	stop()
}
