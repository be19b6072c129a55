package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// givenServer names the environment variable with the URL of a server to use.
const givenServer = "PERIGEE_TEST_POSTGRES"

// shared is what one test binary starts at most once.
var shared struct {
	mu        sync.Mutex
	base      *url.URL // of the server, without a database
	server    *process
	pooler    *process
	poolerURL *url.URL
	templates map[string]string   // name -> database
	idle      map[string][]string // template's database -> its unused copies
}

// Main runs the tests and stops what they started. Use it as
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
func Main(m *testing.M) int {
	code := m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.base != nil {
		dropTemplates(shared.base)
	}
	for _, p := range []*process{shared.pooler, shared.server} {
		if p != nil {
			p.stop()
		}
	}
	return code
}

// dropTemplates leaves a given server as it was.
func dropTemplates(base *url.URL) {
	for _, original := range shared.templates {
		for _, database := range append(shared.idle[original], original) {
			if err := execute(base, `DROP DATABASE `+database+` WITH (FORCE)`); err != nil {
				fmt.Fprintln(os.Stderr, "pgtest: drop a template:", err)
			}
		}
	}
}

// URL is the URL of a database of its own for this test. It is dropped when
// the test ends.
func URL(t testing.TB) string {
	t.Helper()
	base := server(t)
	name := newName()
	if err := execute(base, `CREATE DATABASE `+name); err != nil {
		t.Fatalf("pgtest: create a database: %v", err)
	}
	t.Cleanup(func() {
		if err := execute(base, `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
			t.Errorf("pgtest: drop the test's database: %v", err)
		}
	})
	return withDatabase(base, name)
}

// Template is URL with a database that prepare filled. It is prepared once for
// each name in a test binary and copied; what a test leaves in its copy is
// deleted, but for the tables to keep, and the copy given to a later test: that
// is ten times as quick as a new one.
func Template(t testing.TB, name string, prepare func(url string) error, keep ...string) string {
	t.Helper()
	base := server(t)
	original := template(t, base, name, prepare)
	database, ok := takeIdle(original)
	if !ok {
		database = newName()
		if err := execute(base, `CREATE DATABASE `+database+` TEMPLATE `+original); err != nil {
			t.Fatalf("pgtest: copy template %q: %v", name, err)
		}
	}
	url := withDatabase(base, database)
	t.Cleanup(func() {
		if err := empty(url, keep); err != nil {
			t.Errorf("pgtest: empty the test's database: %v", err)
			return
		}
		shared.mu.Lock()
		defer shared.mu.Unlock()
		shared.idle[original] = append(shared.idle[original], database)
	})
	return url
}

// takeIdle takes a copy of a template that no test uses.
func takeIdle(template string) (database string, ok bool) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	idle := shared.idle[template]
	if len(idle) == 0 {
		return "", false
	}
	last := len(idle) - 1
	shared.idle[template] = idle[:last]
	return idle[last], true
}

// template is the database of that name, made and filled at its first use.
func template(t testing.TB, base *url.URL, name string, prepare func(url string) error) string {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if database, ok := shared.templates[name]; ok {
		return database
	}
	database := newName()
	if err := execute(base, `CREATE DATABASE `+database); err != nil {
		t.Fatalf("pgtest: create a template: %v", err)
	}
	if err := prepare(withDatabase(base, database)); err != nil {
		t.Fatalf("pgtest: prepare template %q: %v", name, err)
	}
	if shared.templates == nil {
		shared.templates, shared.idle = map[string]string{}, map[string][]string{}
	}
	shared.templates[name] = database
	return database
}

// empty deletes the rows of all tables but some. Deleting few rows is quicker
// than TRUNCATE, which makes new files for every table and index.
func empty(url string, keep []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' AND tablename <> ALL ($1::text[])`,
		append([]string{}, keep...))
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var script pgx.Batch
	for _, table := range tables {
		script.Queue(`DELETE FROM ` + table)
	}
	return conn.SendBatch(ctx, &script).Close()
}

// Superuser is the URL of the server's own database, for tests that look at
// the server itself or end connections.
func Superuser(t testing.TB) string {
	t.Helper()
	return withDatabase(server(t), "postgres")
}

// WALBytes is the position in the server's write-ahead log; the difference of
// two readings is what was written between them, by everyone.
func WALBytes(t testing.TB) int64 {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, Superuser(t))
	if err != nil {
		t.Fatalf("pgtest: connect: %v", err)
	}
	defer conn.Close(ctx)
	var n int64
	err = conn.QueryRow(ctx, `SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint`).Scan(&n)
	if err != nil {
		t.Fatalf("pgtest: read the log's position: %v", err)
	}
	return n
}

// server starts the shared server, or takes the given one.
func server(t testing.TB) *url.URL {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.base != nil {
		return shared.base
	}
	if given := os.Getenv(givenServer); given != "" {
		base, err := url.Parse(given)
		if err != nil || base.Scheme == "" || base.Host == "" {
			t.Fatalf("pgtest: %s: want postgres://user:password@host:port", givenServer)
		}
		shared.base = base
		return base
	}
	p, base, err := startServer()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	shared.server, shared.base = p, base
	return base
}

// execute runs one statement on the server's own database. CREATE DATABASE
// refuses while another session is on the template, so it waits for a while.
func execute(base *url.URL, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, withDatabase(base, "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for {
		_, err = conn.Exec(ctx, sql)
		var state interface{ SQLState() string }
		if !errors.As(err, &state) || state.SQLState() != "55006" { // object_in_use
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func withDatabase(base *url.URL, name string) string {
	u := *base
	u.Path = "/" + name
	return u.String()
}

// newName makes a database name that needs no quotes.
func newName() string { return "perigee_" + randomHex(8) }

func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// missing says that a program is not there and how to get it.
func missing(program, pkg string) error {
	return fmt.Errorf("%s is not installed: run `apt-get install %s` (or .ci/services as root), or set %s to the URL of a server",
		program, pkg, givenServer)
}
