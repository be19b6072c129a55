package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"perigee/store"
)

// Two dialects of the same tables and indexes, by the same numbers and names.
//
//go:embed migrations/*.sql migrations_dsql/*.sql
var migrations embed.FS

// The folders of migrations.
const (
	postgresFolder = "migrations"
	dsqlFolder     = "migrations_dsql"
)

// folder has the migrations that the database can run.
func (s *Store) folder() string {
	if s.dsql {
		return dsqlFolder
	}
	return postgresFolder
}

// Migrate brings the schema to the version of this release, and leaves a newer
// one that this release works with as it is.
//
// Two callers at once need no lock, which neither a transaction-pooling proxy
// nor DSQL would give: each migration may be repeated, a version is written
// once, and who meets the other half-way (the catalog's own keys are taken
// then) starts again from what is there.
func (s *Store) Migrate(ctx context.Context) (from, to int64, err error) {
	var options []stdlib.OptionOpenDB
	if s.config.BeforeConnect != nil {
		options = append(options, stdlib.OptionBeforeConnect(s.config.BeforeConnect))
	}
	db := stdlib.OpenDB(*s.config.ConnConfig, options...)
	defer func() { err = errors.Join(err, db.Close()) }()
	from = -1
	for try, before := 1, int64(-1); ; try++ {
		current, release, err := migrate(ctx, db, s.folder())
		if from < 0 {
			from = current
		}
		if err == nil {
			break
		}
		if current > before { // it is getting on, by whoever's hand
			try, before = 1, current
		}
		if !isMigrationRace(err) || try == conflictTries {
			return current, release, wrap("migrate", translateConnect(err))
		}
		if err := pause(ctx, try); err != nil {
			return current, release, wrap("migrate", err)
		}
	}
	to, err = releaseVersion()
	if from > to {
		return from, from, err // a newer release's, which this one works with
	}
	if err == nil && !s.dsql {
		_, err = db.ExecContext(ctx, storageSQL)
	}
	if err != nil {
		err = translateConnect(err)
	}
	return from, to, wrap("migrate", err)
}

// storageSQL is no migration, for DSQL has no storage parameters. Rows of the
// queue and heads change and go all the time: room on each page lets a head's
// new version stay beside the old one, without touching the indexes, and the
// dead rows are cleared away early. Events are only ever inserted.
const storageSQL = `
ALTER TABLE executions SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE tasks SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000);
ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
ALTER TABLE worker_sessions SET (fillfactor = 50)`

// migrate runs goose, which keeps DDL out of transactions, as DSQL needs it, and
// writes the version after it.
func migrate(ctx context.Context, db *sql.DB, folder string) (from, to int64, err error) {
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return 0, 0, err
	}
	provider, err := goose.NewProvider(goose.DialectCustom, db, files,
		goose.WithStore(versions{}), goose.WithIsolateDDL(true), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, 0, err
	}
	if err := (versions{}).begin(ctx, db); err != nil {
		return 0, 0, err
	}
	from, to, err = provider.GetVersions(ctx)
	if err != nil {
		return 0, 0, err
	}
	if from > to {
		return from, to, checkNewer(ctx, db, from, to)
	}
	// Which release is the oldest is said before anything is changed for which
	// that one would be too old.
	if _, err = provider.UpTo(ctx, store.OldestReleaseTable); err != nil {
		return from, to, err
	}
	if _, err = db.ExecContext(ctx, putOldestReleaseSQL, store.OldestRelease); err != nil {
		return from, to, err
	}
	_, err = provider.Up(ctx)
	return from, to, err
}

// Never lowered: two releases may migrate at the same time.
const putOldestReleaseSQL = `
INSERT INTO oldest_release (id, version)
VALUES (1, $1)
ON CONFLICT (id) DO UPDATE SET version = EXCLUDED.version
WHERE oldest_release.version < EXCLUDED.version`

const oldestReleaseSQL = `
SELECT COALESCE(MAX(version), 0)
FROM oldest_release`

// checkNewer fails with ErrSchema where the schema of a newer release is not
// for this one.
func checkNewer(ctx context.Context, db *sql.DB, version, release int64) error {
	var oldest int64
	err := db.QueryRowContext(ctx, oldestReleaseSQL).Scan(&oldest)
	if err != nil && sqlState(err) != codeUndefinedTable {
		return err
	}
	return store.CheckVersion(version, release, oldest)
}

// isMigrationRace reports the errors of two migrations that create the same
// thing at the same moment.
func isMigrationRace(err error) bool {
	switch sqlState(err) {
	case codeUniqueViolation, codeDuplicateTable, codeDuplicateObject, codeSerializationFailure, codeDeadlock, codeInternal:
		return true
	}
	return false
}

// releaseVersion is the number of the last migration, in either folder.
func releaseVersion() (int64, error) {
	files, err := fs.Glob(migrations, postgresFolder+"/*.sql")
	if err != nil {
		return 0, err
	}
	return goose.NumericComponent(filepath.Base(files[len(files)-1]))
}

const versionSQL = `
SELECT COALESCE(MAX(version_id), 0)
FROM goose_db_version
WHERE is_applied`

// CheckSchema fails with ErrSchema where this release does not work with the schema.
func (s *Store) CheckSchema(ctx context.Context) error {
	release, err := releaseVersion()
	if err != nil {
		return err
	}
	version, err := s.number(ctx, versionSQL)
	if err != nil {
		return err
	}
	oldest := int64(0)
	if version > release {
		if oldest, err = s.number(ctx, oldestReleaseSQL); err != nil {
			return err
		}
	}
	return store.CheckVersion(version, release, oldest)
}

// number reads one of a table that need not be there; then it is 0.
func (s *Store) number(ctx context.Context, sql string) (n int64, err error) {
	err = s.run(ctx, func(sc *script) { sc.add(sql, one(&n)) }, false)
	if err != nil && sqlState(err) != codeUndefinedTable {
		return 0, wrap("check schema", err)
	}
	return n, nil
}

// versions keeps the versions for goose. Its own table has an identity column,
// and would take the same version twice.
type versions struct{}

var _ database.Store = versions{}

// Tablename is what both backends call it.
func (versions) Tablename() string { return "goose_db_version" }

const versionTableSQL = `
CREATE TABLE IF NOT EXISTS goose_db_version (
    version_id bigint      NOT NULL PRIMARY KEY,
    is_applied boolean     NOT NULL,
    tstamp     timestamptz NOT NULL DEFAULT now()
)`

// begin makes the table and its version zero before goose looks at them: goose
// expects the one to come with the other.
func (v versions) begin(ctx context.Context, db *sql.DB) error {
	if err := v.CreateVersionTable(ctx, db); err != nil {
		return err
	}
	return v.Insert(ctx, db, database.InsertRequest{Version: 0})
}

// CreateVersionTable tries again where another creates it at the same moment.
func (versions) CreateVersionTable(ctx context.Context, db database.DBTxConn) error {
	for try := 1; ; try++ {
		_, err := db.ExecContext(ctx, versionTableSQL)
		if err == nil || !isMigrationRace(err) || try == conflictTries {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

const putVersionSQL = `
INSERT INTO goose_db_version (version_id, is_applied)
VALUES ($1, TRUE)
ON CONFLICT (version_id) DO NOTHING`

func (versions) Insert(ctx context.Context, db database.DBTxConn, r database.InsertRequest) error {
	_, err := db.ExecContext(ctx, putVersionSQL, r.Version)
	return err
}

const deleteVersionSQL = `
DELETE FROM goose_db_version
WHERE version_id = $1`

func (versions) Delete(ctx context.Context, db database.DBTxConn, version int64) error {
	_, err := db.ExecContext(ctx, deleteVersionSQL, version)
	return err
}

const oneVersionSQL = `
SELECT tstamp, is_applied
FROM goose_db_version
WHERE version_id = $1`

func (versions) GetMigration(ctx context.Context, db database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
	var m database.GetMigrationResult
	err := db.QueryRowContext(ctx, oneVersionSQL, version).Scan(&m.Timestamp, &m.IsApplied)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: %d", database.ErrVersionNotFound, version)
	}
	return &m, err
}

const latestVersionSQL = `
SELECT MAX(version_id)
FROM goose_db_version`

func (versions) GetLatestVersion(ctx context.Context, db database.DBTxConn) (int64, error) {
	var version sql.NullInt64
	err := db.QueryRowContext(ctx, latestVersionSQL).Scan(&version)
	if err == nil && !version.Valid {
		err = fmt.Errorf("latest version: %w", database.ErrVersionNotFound)
	}
	return version.Int64, err
}

const allVersionsSQL = `
SELECT version_id, is_applied
FROM goose_db_version
ORDER BY version_id DESC`

func (versions) ListMigrations(ctx context.Context, db database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	rows, err := db.QueryContext(ctx, allVersionsSQL)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []*database.ListMigrationsResult
	for rows.Next() {
		var m database.ListMigrationsResult
		if err := rows.Scan(&m.Version, &m.IsApplied); err != nil {
			return nil, err
		}
		list = append(list, &m)
	}
	return list, rows.Err()
}

// translateConnect is translate for an error from database/sql, in which a
// failure to connect is the driver's own.
func translateConnect(err error) error {
	if connect, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return connectFailure(connect)
	}
	return translate(err)
}
