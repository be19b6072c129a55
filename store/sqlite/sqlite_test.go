package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"perigee/store"
	"perigee/store/sqlite"
	"perigee/store/storetest"
)

// open opens a store that is closed with the test.
func open(t *testing.T, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// migrated opens a store on a new database with this release's schema.
func migrated(t *testing.T, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s := open(t, o)
	if _, _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "perigee.db") }

func TestFile_KeepsTheRules(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return migrated(t, sqlite.Options{Path: newPath(t)})
	}, storetest.Serial)
}

func TestFileWithoutGroups_KeepsTheRules(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return migrated(t, sqlite.Options{Path: newPath(t), NoGroupCommit: true})
	}, storetest.Serial)
}

func TestMemory_KeepsTheRules(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return migrated(t, sqlite.Options{Path: sqlite.Memory})
	}, storetest.Serial)
}

func TestSchema_KeepsTheRules(t *testing.T) {
	storetest.RunSchema(t, func(t *testing.T) storetest.Blank {
		path := newPath(t)
		return storetest.Blank{
			Open: func(t *testing.T) store.Store { return open(t, sqlite.Options{Path: path}) },
			Exec: func(t *testing.T, statement string) {
				db, err := sql.Open("sqlite", path)
				if err == nil {
					_, err = db.Exec(statement)
				}
				if err == nil {
					err = db.Close()
				}
				if err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}
