package sqlite

import (
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"perigee/store"
)

var errClosed = fmt.Errorf("%w: the store is closed", store.ErrUnavailable)

// code is SQLite's extended result code, 0 for an error that is not SQLite's.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// primary is the result code without its extension.
func primary(err error) int { return code(err) & 0xff }

func isBusy(err error) bool {
	return primary(err) == sqlite3.SQLITE_BUSY || primary(err) == sqlite3.SQLITE_LOCKED
}

// isTaken reports whether a row of that key exists already.
func isTaken(err error) bool {
	return code(err) == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || code(err) == sqlite3.SQLITE_CONSTRAINT_UNIQUE
}

// isColumnThere reports whether a column exists already, for which SQLite has a
// sentence, but no code.
func isColumnThere(err error) bool {
	return code(err) == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "duplicate column name")
}

// wrap names the operation and makes SQLite's codes ours.
func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", operation, translate(err))
}

func translate(err error) error {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownOutcome) {
		return err
	}
	switch primary(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: another process keeps the database locked; wait for it or stop it: %w", store.ErrUnavailable, err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: the disk is full: %w", store.ErrUnavailable, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return fmt.Errorf("%w: the database is read-only; check the permissions of the file and its folder: %w", store.ErrUnavailable, err)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOMEM:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%w: the file is damaged or no SQLite database: %w", store.ErrUnavailable, err)
	case sqlite3.SQLITE_TOOBIG:
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	}
	return err
}

// commitError tells a COMMIT that certainly did nothing from one of which a
// part may have reached the disk.
func commitError(err error) error {
	if isBusy(err) || primary(err) == sqlite3.SQLITE_FULL {
		return translate(err)
	}
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
}

// openError is one line that says what is wrong with the path.
func openError(path string, err error) error {
	hint := "cannot be used"
	switch primary(err) {
	case sqlite3.SQLITE_CANTOPEN:
		hint = "cannot be opened or created; check that its folder exists and may be written to"
	case sqlite3.SQLITE_NOTADB:
		hint = "is not a SQLite database; name another file"
	case sqlite3.SQLITE_CORRUPT:
		hint = "is a damaged SQLite database; restore it from a backup"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR:
		hint = "may not be written to; check the permissions of the file and its folder"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		hint = "is locked by another process; wait for it or stop it"
	}
	return fmt.Errorf("%w: open %s: the file %s: %w", store.ErrUnavailable, path, hint, err)
}
