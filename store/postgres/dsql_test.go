package postgres_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
)

// migratedAsDSQL is a new database with DSQL's schema, its indexes made the way
// that Postgres makes them.
func migratedAsDSQL(t testing.TB) (url string) {
	t.Helper()
	return pgtest.Template(t, "migrated as DSQL", func(url string) error {
		files, err := synchronous(os.DirFS("migrations_dsql"))
		if err != nil {
			return err
		}
		config, err := pgx.ParseConfig(url)
		if err != nil {
			return err
		}
		db := stdlib.OpenDB(*config)
		defer db.Close()
		provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
		if err != nil {
			return err
		}
		_, err = provider.Up(context.Background())
		return err
	}, "goose_db_version")
}

// synchronous has the same files without the one word that Postgres does not know.
func synchronous(files fs.FS) (fs.FS, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	rewritten := fstest.MapFS{}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		rewritten[name] = &fstest.MapFile{Data: []byte(strings.Replace(string(text), "CREATE INDEX ASYNC ", "CREATE INDEX ", 1))}
	}
	return rewritten, nil
}

func TestDSQLSchema_HasTheSameFiles(t *testing.T) {
	if diff := cmp.Diff(migrationNames(t, "migrations"), migrationNames(t, "migrations_dsql")); diff != "" {
		t.Errorf("migrations_dsql has not the files of migrations (-migrations +migrations_dsql):\n%s", diff)
	}
}

// dsqlStatements are the only ones in which DSQL's schema is written. What it
// refuses without a word from its linter (storage parameters) is in none.
var dsqlStatements = []*regexp.Regexp{
	regexp.MustCompile(`^CREATE TABLE IF NOT EXISTS [a-z_]+ \(\n(    [a-z_]+ +(text|bigint|integer|boolean)( +NOT NULL)?( PRIMARY KEY| UNIQUE| DEFAULT (FALSE|0))?,?\n)+(    PRIMARY KEY \([a-z_, ]+\)\n)?\);\n$`),
	regexp.MustCompile(`^ALTER TABLE [a-z_]+ ADD COLUMN IF NOT EXISTS [a-z_]+ (text|bigint|integer|boolean);\n$`),
	regexp.MustCompile(`^CREATE INDEX ASYNC IF NOT EXISTS [a-z_]+ ON [a-z_]+ \([a-z_, ]+\);\n$`),
}

func TestDSQLSchema_IsOneStatementAFileThatMayBeRepeated(t *testing.T) {
	for _, name := range migrationNames(t, "migrations_dsql") {
		text, err := os.ReadFile(filepath.Join("migrations_dsql", name))
		if err != nil {
			t.Fatal(err)
		}
		statement, found := strings.CutPrefix(string(text), "-- +goose NO TRANSACTION\n-- +goose Up\n")
		for strings.HasPrefix(statement, "-- ") {
			_, statement, _ = strings.Cut(statement, "\n")
		}
		known := slices.ContainsFunc(dsqlStatements, func(form *regexp.Regexp) bool { return form.MatchString(statement) })
		if !found || !known {
			t.Errorf("%s: want a CREATE TABLE of plain columns, an ADD COLUMN without constraint, or a CREATE INDEX ASYNC of columns, outside a transaction; got\n%s", name, text)
		}
	}
}

func migrationNames(t *testing.T, folder string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", folder, len(paths), err)
	}
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

// Catalogs without the collation, which DSQL has for all text, and without
// goose's own table. Key columns of an index are compared as a set: a condition
// that Postgres has in a partial index is a column more on DSQL.
const (
	columnsSQL = `
SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || COALESCE(column_default, '')
FROM information_schema.columns
WHERE table_schema = 'public' AND table_name <> 'goose_db_version'
ORDER BY table_name, ordinal_position`

	constraintsSQL = `
SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid)
FROM pg_constraint
WHERE connamespace = 'public'::regnamespace AND conrelid <> 'goose_db_version'::regclass AND contype IN ('p', 'u')
ORDER BY 1`

	indexesSQL = `
SELECT i.indexrelid::regclass || ' ' || i.indrelid::regclass, array_agg(a.attname::text ORDER BY a.attnum)
FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indexrelid
WHERE i.indrelid::regclass::text IN (SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public')
    AND i.indrelid <> 'goose_db_version'::regclass
GROUP BY i.indexrelid, i.indrelid
ORDER BY 1`
)

func TestDSQLSchema_HasTheSameTablesAndKeys(t *testing.T) {
	postgresURL, dsqlURL := pgtest.Migrated(t), migratedAsDSQL(t)
	for _, sql := range []string{columnsSQL, constraintsSQL} {
		want, got := lines(t, postgresURL, sql), lines(t, dsqlURL, sql)
		if len(want) < 10 {
			t.Fatalf("%d lines only: does the query still find the schema?", len(want))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("DSQL's schema is another (-migrations +migrations_dsql):\n%s", diff)
		}
	}
}

func TestDSQLSchema_HasTheSameIndexesOrWider(t *testing.T) {
	want, got := indexes(t, pgtest.Migrated(t)), indexes(t, migratedAsDSQL(t))
	if len(want) != len(got) {
		t.Errorf("migrations make %d indexes, migrations_dsql %d", len(want), len(got))
	}
	for index, columns := range want {
		for _, column := range columns {
			if !slices.Contains(got[index], column) {
				t.Errorf("index and table %s: it has the column %s on Postgres, on DSQL only %v", index, column, got[index])
			}
		}
	}
}

func lines(t *testing.T, url, sql string) []string {
	t.Helper()
	rows, err := connect(t, url).Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// indexes are the columns of each index by its name and table.
func indexes(t *testing.T, url string) map[string][]string {
	t.Helper()
	rows, err := connect(t, url).Query(t.Context(), indexesSQL)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string][]string{}
	var name string
	var columns []string
	if _, err := pgx.ForEachRow(rows, []any{&name, &columns}, func() error {
		list[name] = slices.Clone(columns)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// A store for DSQL takes DSQL's files: Postgres gets as far as it understands
// them, which is up to the first index.
func TestMigrate_DSQLHasItsOwnDDL(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, postgres.Options{URL: repeatableRead(url), DSQL: true})
	_, _, err := s.Migrate(t.Context())
	if err == nil || !strings.Contains(err.Error(), "42601") {
		t.Errorf("got %v; want Postgres to stumble over ASYNC", err)
	}
	if got := lines(t, url, `SELECT max(version_id)::text FROM goose_db_version`); !slices.Equal(got, []string{"9"}) {
		t.Errorf("the schema is at version %v; want 9, the last table", got)
	}
}

func TestCheckSchema_DSQLIsAtTheSameVersion(t *testing.T) {
	s := open(t, postgres.Options{URL: repeatableRead(migratedAsDSQL(t)), DSQL: true})
	if err := s.CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
}
