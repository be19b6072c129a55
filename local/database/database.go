package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"perigee/infra/config"
	"perigee/store"
	"perigee/store/postgres"
	"perigee/store/sqlite"
)

// Options name a database.
type Options struct {
	Where  string // a file of SQLite, or a URL of Postgres
	Pooled bool   // of Postgres: behind a proxy that pools transactions
	Conns  int    // of Postgres: at most so many connections; 0: 4
}

// OptionsOf are the options that settings hold.
func OptionsOf(s config.Settings) Options {
	return Options{Where: s.Database, Pooled: s.DatabaseMode == config.DatabasePooled, Conns: s.DatabaseConnections}
}

// IsPostgres reports whether a database is named by a URL of Postgres.
func IsPostgres(where string) bool {
	scheme, _, ok := strings.Cut(where, "://")
	return ok && (scheme == "postgres" || scheme == "postgresql")
}

// Open opens the database without looking at its schema. The error is one line
// that says what to do, and holds no password.
func Open(ctx context.Context, o Options) (store.Store, error) {
	switch where := o.Where; {
	case where == "":
		return nil, errors.New("open the database: its name is empty; name a file of SQLite or a postgres:// URL")
	case IsPostgres(where):
		mode := postgres.ModeDirect
		if o.Pooled {
			mode = postgres.ModePooled
		}
		return postgres.Open(ctx, postgres.Options{URL: where, Mode: mode, MaxConns: o.Conns})
	case strings.Contains(where, "://"):
		scheme, _, _ := strings.Cut(where, "://")
		return nil, fmt.Errorf("open the database: %q is no kind of database; name a file of SQLite or a postgres:// URL", scheme)
	}
	return sqlite.Open(ctx, sqlite.Options{Path: o.Where})
}

// OpenChecked opens a database that is there, and makes sure that its schema is
// this release's.
func OpenChecked(ctx context.Context, o Options) (store.Store, error) {
	if err := checkFile(o.Where); err != nil {
		return nil, err
	}
	st, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := st.CheckSchema(ctx); err != nil {
		return nil, errors.Join(Explain(o.Where, err), st.Close())
	}
	return st, nil
}

// checkFile finds a file of SQLite before SQLite makes an empty one in its place:
// whoever mistyped a name would look after the wrong database.
func checkFile(where string) error {
	switch {
	case where == "", strings.Contains(where, "://"):
		return nil // no file
	case where == sqlite.Memory:
		return errors.New("open the database: one in memory is its server's alone; name a file of SQLite or a postgres:// URL with --database")
	}
	if _, err := os.Stat(where); !errors.Is(err, fs.ErrNotExist) {
		return nil // what else is wrong with it is told when it is opened
	}
	return fmt.Errorf("open the database: there is no file %s; name yours with --database, or make one with `perigee dev` or `perigee migrate`", Describe(where))
}

// Explain says of which database an error came.
func Explain(where string, err error) error {
	return fmt.Errorf("database %s: %w", Describe(where), err)
}

// Describe is the database's name for people and logs: an absolute path, or a
// URL without its password.
func Describe(where string) string {
	if IsPostgres(where) {
		u, err := url.Parse(where)
		if err != nil {
			return "postgres://… (not a URL)"
		}
		u.RawQuery = withoutSecrets(u.Query()).Encode()
		return u.Redacted()
	}
	if where == sqlite.Memory {
		return where
	}
	if path, err := filepath.Abs(where); err == nil {
		return path
	}
	return where
}

// withoutSecrets hides what a URL may carry beside the user's password.
func withoutSecrets(q url.Values) url.Values {
	for _, key := range []string{"password", "sslpassword"} {
		if q.Has(key) {
			q.Set(key, "xxxxx")
		}
	}
	return q
}
