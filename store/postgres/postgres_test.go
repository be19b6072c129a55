package postgres_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"perigee/store"
	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
	"perigee/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// open opens a store that is closed with the test.
func open(t testing.TB, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), o)
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

func TestDirect_KeepsTheRules(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return open(t, postgres.Options{URL: pgtest.Migrated(t)})
	})
}

func TestPooled_KeepsTheRules(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return open(t, postgres.Options{URL: pgtest.Pooled(t, pgtest.Migrated(t)), Mode: postgres.ModePooled})
	})
}

// repeatableRead is the URL with the isolation level of a database without locks.
func repeatableRead(url string) string {
	return url + "&default_transaction_isolation=repeatable%20read"
}

// The schema is DSQL's, too: without collations and partial indexes.
func TestWithoutLocks_KeepsTheRulesUnderConflicts(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		s := open(t, postgres.Options{URL: repeatableRead(migratedAsDSQL(t)), NoLocks: true})
		s.DisturbWithConflicts()
		return s
	}, storetest.Lockless)
}

func TestSchema_KeepsTheRules(t *testing.T) {
	for _, way := range []struct {
		name string
		mode postgres.Mode
		url  func(testing.TB) string
	}{
		{"Direct", postgres.ModeDirect, pgtest.URL},
		{"Pooled", postgres.ModePooled, pgtest.PoolerURL},
	} {
		t.Run(way.name, func(t *testing.T) {
			storetest.RunSchema(t, func(t *testing.T) storetest.Blank {
				url := way.url(t)
				return storetest.Blank{
					Open: func(t *testing.T) store.Store { return open(t, postgres.Options{URL: url, Mode: way.mode}) },
					Exec: func(t *testing.T, statement string) { exec(t, url, statement) },
				}
			})
		})
	}
}

// exec runs a statement past the store.
func exec(t testing.TB, url, statement string) {
	t.Helper()
	if _, err := connect(t, url).Exec(context.Background(), statement); err != nil {
		t.Fatal(err)
	}
}

// connect is a connection that ends with the test.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}
