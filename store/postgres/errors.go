package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"perigee/store"
)

// The SQLSTATE codes that mean something to the store.
const (
	codeDivisionByZero       = "22012" // of a guard
	codeLogarithmOfZero      = "2201E" // of the second guard of a statement
	codeUniqueViolation      = "23505"
	codeReadOnlyTransaction  = "25006" // the server became a replica
	codeIdleInTransaction    = "25P03"
	codeInvalidAuthorization = "28000"
	codeInvalidPassword      = "28P01"
	codeSerializationFailure = "40001"
	codeDeadlock             = "40P01"
	codeUndefinedTable       = "42P01"
	codeTooLarge             = "54000"
	codeDuplicateTable       = "42P07"
	codeDuplicateObject      = "42710"
	codeInternal             = "XX000" // "tuple concurrently updated", of two ALTERs
	codeLockNotAvailable     = "55P03"
	codeQueryCanceled        = "57014" // the server's statement time-out
	codeCrashShutdown        = "57P02"
)

// connectError is a failure to get a connection: nothing was sent.
type connectError struct{ err error }

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// sqlState is the code of a server's error, "" for any other.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// errConflict is a conflict that shows itself as a key that is taken.
var errConflict = errors.New("another transaction was faster")

// isConflict reports whether the database gave up the transaction so that
// another could go on: nothing was written, and it may be run again.
func isConflict(err error) bool {
	if errors.Is(err, errConflict) {
		return true
	}
	code := sqlState(err)
	return code == codeSerializationFailure || code == codeDeadlock
}

// isRefused reports whether the server did not let the user in.
func isRefused(err error) bool {
	code := sqlState(err)
	return code == codeInvalidPassword || code == codeInvalidAuthorization
}

// isConnectionLost reports whether the connection broke: whether the server
// did what it was sent is open. A server's error is none, but for those with
// which it ends a session.
func isConnectionLost(err error) bool {
	if _, ok := errors.AsType[*connectError](err); ok {
		return false
	}
	switch code := sqlState(err); {
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "57P"), code == codeIdleInTransaction:
		return true
	case code != "":
		return false
	}
	_, isNet := errors.AsType[net.Error](err)
	return isNet || isClosed(err)
}

// isClosed reports the ways in which the driver says that a connection ended.
func isClosed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "unexpected EOF") || strings.Contains(text, "conn closed") ||
		strings.Contains(text, "closed network connection") || strings.Contains(text, "conn busy")
}

// isLost reports a lost race.
func isLost(err error) bool {
	_, ok := errors.AsType[*store.LostError](err)
	return ok
}

// lostOnConflict is a lost race where the database gave up the transaction for
// another's sake, time and again.
func lostOnConflict(err error) error {
	if isConflict(err) {
		return fmt.Errorf("%w: %w", &store.LostError{}, err)
	}
	return err
}

// wrap names the operation.
func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// notCommitted reports whether a failed script certainly wrote nothing: it was
// never sent, or the server answered with an error before it acknowledged the
// last statement. It may then have ended the session as well, as it does when
// it is shut down; but who crashes (57P02), and a pooler that speaks for a
// server it has lost (class 08), cannot know.
func notCommitted(err error) bool {
	run, sent := errors.AsType[*runError](err)
	if !sent || pgconn.SafeToRetry(err) {
		return true
	}
	code := sqlState(err)
	return code != "" && code != codeCrashShutdown && !strings.HasPrefix(code, "08") && !run.acknowledged
}

// commitError is translate for a script that writes: a connection that broke,
// or was given up, while it was under way leaves the outcome open.
func commitError(err error) error {
	switch {
	case notCommitted(err):
		return translate(err)
	case isConnectionLost(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, line(err))
	}
	return translate(err)
}

// translate makes the driver's and the server's errors ours.
func translate(err error) error {
	if _, ok := errors.AsType[*connectError](err); ok {
		return connectFailure(err)
	}
	if isConnectionLost(err) {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, line(err))
	}
	switch code := sqlState(err); {
	case errors.Is(err, errConflict):
		return fmt.Errorf("%w: %w", store.ErrBusy, err)
	case code == "":
		return err
	case code == codeSerializationFailure, code == codeDeadlock, code == codeLockNotAvailable:
		return fmt.Errorf("%w: %w", store.ErrBusy, err)
	case code == codeReadOnlyTransaction, code == codeQueryCanceled, strings.HasPrefix(code, "53"):
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case code == codeUndefinedTable:
		return fmt.Errorf("%w: %w; run `perigee migrate`", store.ErrSchema, err)
	case code == codeTooLarge:
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	}
	return err
}

// connectFailure says in one line why there is no connection. A caller that
// gave up is told just that.
func connectFailure(err error) error {
	if errors.Is(err, context.Canceled) {
		return line(err)
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, line(err))
}

// lineError shows an error on one line.
type lineError struct{ err error }

func line(err error) error { return &lineError{err} }

func (e *lineError) Error() string { return strings.Join(strings.Fields(e.err.Error()), " ") }
func (e *lineError) Unwrap() error { return e.err }

// urlError says what is wrong with a database URL, without showing it: it may
// hold a password.
func urlError(url string, err error) error {
	_, reason, found := strings.Cut(err.Error(), "`: ")
	_, credentials, _ := strings.Cut(url, "://")
	credentials, _, hasUser := cutLast(credentials, "@")
	_, password, hasPassword := strings.Cut(credentials, ":")
	if !found || (hasUser && hasPassword && password != "" && strings.Contains(reason, password)) {
		reason = "it cannot be read"
	}
	return fmt.Errorf("postgres options: URL: want postgres://user:password@host:port/database?sslmode=verify-full, with what is special in the password escaped by %%: %s", reason)
}

// cutLast cuts at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}
