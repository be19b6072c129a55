package blackbox_test

import (
	"context"
	"path/filepath"
	"testing"

	"perigee/engine"
	"perigee/local/database"
	"perigee/store/postgres/pgtest"
)

// testDatabase is a database of one test's own, with the schema made.
type testDatabase struct {
	kind  string            // as in -databases
	flags map[string]string // that lead a server to it
}

func newDatabase(t *testing.T, kind string) testDatabase {
	t.Helper()
	db := testDatabase{kind: kind, flags: map[string]string{}}
	switch kind {
	case "sqlite":
		db.flags["database"] = filepath.Join(t.TempDir(), "perigee.db")
	case "postgres":
		db.flags["database"] = pgtest.Migrated(t)
	case "pgbouncer":
		db.flags["database"] = pgtest.Pooled(t, pgtest.Migrated(t))
		db.flags["database-mode"] = "pooled"
	default:
		t.Fatalf("-databases names %q; expected sqlite, postgres or pgbouncer", kind)
	}
	return db
}

// options lead to the database.
func (db testDatabase) options() database.Options {
	return database.Options{Where: db.flags["database"], Pooled: db.flags["database-mode"] == "pooled"}
}

// doctor reports every difference between a projection and its history.
func (db testDatabase) doctor(t *testing.T, opts engine.Options) {
	t.Helper()
	ctx := context.Background() // the test's own has ended in its cleanup
	st, err := database.OpenChecked(ctx, db.options())
	if err != nil {
		t.Errorf("doctor: %v", err)
		return
	}
	defer st.Close()
	e, err := engine.New(st, opts)
	if err != nil {
		t.Errorf("doctor: %v", err)
		return
	}
	defer e.Close()
	if _, err := e.Doctor(ctx, false, func(f engine.Finding) {
		t.Errorf("doctor: %s: %s", f.ExecutionID, f.What)
	}); err != nil {
		t.Errorf("doctor: %v", err)
	}
}
