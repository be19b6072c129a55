package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/pressly/goose/v3"

	"perigee/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	normalSQL = `PRAGMA synchronous = NORMAL`
	fullSQL   = `PRAGMA synchronous = FULL`
)

// Migrate brings the schema to the version of this release, and leaves a newer
// one that this release works with as it is.
func (s *Store) Migrate(ctx context.Context) (from, to int64, err error) {
	err = s.writer.submit(ctx, &job{plain: true, done: make(chan struct{}), run: func(c *conn) error {
		// A migration that a power cut undid is run again: it need not wait for
		// the disk. The next commit flushes what these wrote, too.
		if err := c.pragma(normalSQL); err != nil {
			return err
		}
		err := c.raw.Raw(func(driverConn any) (err error) {
			from, to, err = migrate(ctx, driverConn)
			return err
		})
		return errors.Join(err, c.pragma(fullSQL))
	}})
	return from, to, wrap("migrate", err)
}

// migrate runs goose on the writing connection, so that it is alone in this
// process. Two processes may run it at once: each migration may be repeated.
func migrate(ctx context.Context, driverConn any) (from, to int64, err error) {
	db, err := borrow(driverConn)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return 0, 0, err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, 0, err
	}
	from, to, err = provider.GetVersions(ctx)
	if err != nil {
		return 0, 0, err
	}
	if from > to {
		var oldest int64
		if err := db.QueryRowContext(ctx, oldestReleaseSQL).Scan(&oldest); err != nil {
			return from, from, err
		}
		return from, from, store.CheckVersion(from, to, oldest)
	}
	// Which release is the oldest is said before anything is changed for which
	// that one would be too old.
	if err := up(ctx, db, provider, store.OldestReleaseTable); err != nil {
		return from, to, err
	}
	if _, err := db.ExecContext(ctx, putOldestReleaseSQL, store.OldestRelease); err != nil {
		return from, to, err
	}
	return from, to, up(ctx, db, provider, to)
}

// Never lowered: two releases may migrate at the same time.
const putOldestReleaseSQL = `
INSERT INTO oldest_release (id, version)
VALUES (1, ?)
ON CONFLICT (id) DO UPDATE SET version = EXCLUDED.version
WHERE oldest_release.version < EXCLUDED.version`

const oldestReleaseSQL = `
SELECT COALESCE(MAX(version), 0)
FROM oldest_release`

const putVersionSQL = `
INSERT INTO goose_db_version (version_id, is_applied)
VALUES (?, TRUE)`

// up applies the migrations that are missing, up to a version. SQLite has no ADD COLUMN IF NOT
// EXISTS: where a migration died before its version was written, or another
// process was faster, the column is there, and only the version is still due.
func up(ctx context.Context, db *sql.DB, provider *goose.Provider, to int64) error {
	for {
		_, err := provider.UpTo(ctx, to)
		partial, ok := errors.AsType[*goose.PartialError](err)
		if !ok || !isColumnThere(partial.Err) {
			return err
		}
		if _, err := db.ExecContext(ctx, putVersionSQL, partial.Failed.Source.Version); err != nil {
			return err
		}
	}
}

// releaseVersion is the number of the last migration.
func releaseVersion() (int64, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return 0, err
	}
	return goose.NumericComponent(filepath.Base(files[len(files)-1]))
}

const versionSQL = `
SELECT COALESCE(MAX(version_id), 0)
FROM goose_db_version
WHERE is_applied`

const tableSQL = `
SELECT COUNT(*)
FROM sqlite_schema
WHERE type = 'table' AND name = ?`

// CheckSchema fails with ErrSchema where this release does not work with the schema.
func (s *Store) CheckSchema(ctx context.Context) error {
	release, err := releaseVersion()
	if err != nil {
		return err
	}
	var version, oldest int64
	err = s.snapshot(ctx, "check schema", func(c *conn) error {
		if version, err = number(c, "goose_db_version", versionSQL); err != nil || version <= release {
			return err
		}
		oldest, err = number(c, "oldest_release", oldestReleaseSQL)
		return err
	})
	if err != nil {
		return err
	}
	return store.CheckVersion(version, release, oldest)
}

// number reads one of a table that need not be there; then it is 0.
func number(c *conn, table, sql string) (n int64, err error) {
	var tables int64
	if _, err := c.one(tableSQL, []any{&tables}, table); err != nil || tables == 0 {
		return 0, err
	}
	_, err = c.one(sql, []any{&n})
	return n, err
}
