package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// script is a list of statements that go out together: one round trip and,
// without a BEGIN among them, one implicit transaction.
type script struct {
	batch pgx.Batch
	steps []step
	err   error // why it cannot be sent at all
	try   int   // from 1
	write bool  // it changes something
	// wrote says, once the script has run, whether it changed anything.
	wrote func() bool
}

// step is a statement of a script, beside its text and arguments.
type step struct {
	read func(pgx.Rows) error // called for each row; nil where there are none
	done func(affected int64) // called after the last row; may be nil
	// conflict makes a guard's failure (22012, 2201E) or a key that is taken (23505)
	// into what it means here; nil where neither can be.
	conflict func(*pgconn.PgError) error
}

// add appends a statement. Its rows, if any, go to read.
func (sc *script) add(sql string, read func(pgx.Rows) error, args ...any) *step {
	sc.batch.Queue(sql, args...)
	sc.steps = append(sc.steps, step{read: read})
	return &sc.steps[len(sc.steps)-1]
}

// one makes a reader of a single row.
func one(into ...any) func(pgx.Rows) error {
	return func(rows pgx.Rows) error { return rows.Scan(into...) }
}

// appendTo makes a reader that appends what scan makes of a row.
func appendTo[T any](list *[]T, scan func(pgx.Rows) (T, error)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		item, err := scan(rows)
		if err == nil {
			*list = append(*list, item)
		}
		return err
	}
}

// runError is how a script failed.
type runError struct {
	err error
	// acknowledged: each statement was, so that only the commit is open.
	acknowledged bool
}

func (e *runError) Error() string { return e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// send runs a script on a connection.
func (sc *script) send(ctx context.Context, conn *pgxpool.Conn) error {
	if sc.err != nil {
		return sc.err
	}
	results := conn.SendBatch(ctx, &sc.batch)
	for i := range sc.steps {
		if err := sc.steps[i].take(results); err != nil {
			results.Close() // says the same again
			return &runError{err: err}
		}
	}
	if err := results.Close(); err != nil {
		return &runError{err: err, acknowledged: true}
	}
	return nil
}

// take reads a statement's results.
func (st *step) take(results pgx.BatchResults) error {
	rows, err := results.Query()
	if err == nil {
		for rows.Next() && err == nil && st.read != nil {
			err = st.read(rows)
		}
		rows.Close()
		err = errors.Join(err, rows.Err())
	}
	if err == nil {
		if st.done != nil {
			st.done(rows.CommandTag().RowsAffected())
		}
		return nil
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && st.conflict != nil {
		switch pgErr.Code {
		case codeDivisionByZero, codeLogarithmOfZero, codeUniqueViolation:
			return st.conflict(pgErr)
		}
	}
	return err
}

// Transactions that the database gives up for another's sake are tried again.
const (
	conflictTries = 10
	conflictPause = 2 * time.Millisecond // doubled with each try; the wait is a random part of it
)

// read runs a script that changes nothing. Where the connection is lost it is
// tried once more, on another.
func (s *Store) read(ctx context.Context, operation string, build func(*script)) error {
	return wrap(operation, s.run(ctx, build, false))
}

// write runs a script that changes something. build is called for each try.
func (s *Store) write(ctx context.Context, operation string, build func(*script)) error {
	return wrap(operation, s.run(ctx, build, true))
}

func (s *Store) run(ctx context.Context, build func(*script), writes bool) error {
	lost := false
	for try := 1; ; try++ {
		sc := &script{try: try, write: writes}
		build(sc)
		err := s.once(ctx, sc)
		switch {
		case err == nil:
			if writes && (sc.wrote == nil || sc.wrote()) {
				s.stats.commits.Add(1)
			}
			return nil
		case isConflict(err) && try < conflictTries:
			if err := pause(ctx, try); err != nil {
				return err
			}
		case !lost && isConnectionLost(err) && ctx.Err() == nil && (!writes || notCommitted(err)):
			lost = true
		case writes:
			return commitError(err)
		default:
			return translate(err)
		}
	}
}

// once acquires a connection and sends a script.
func (s *Store) once(ctx context.Context, sc *script) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return s.deliver(ctx, conn, sc)
}

// deliver sends a script; tests let it fail where a transaction would.
func (s *Store) deliver(ctx context.Context, conn *pgxpool.Conn, sc *script) error {
	if s.disturb != nil {
		s.disturb(sc)
	}
	return sc.send(ctx, conn)
}

// acquire takes a connection from the pool, which makes one if it must. Where
// passwords are made for each connection, one that the server refuses is made
// anew, once: it may have been changed since.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil && s.config.BeforeConnect != nil && isRefused(err) {
		conn, err = s.pool.Acquire(ctx)
	}
	if err != nil {
		return nil, &connectError{err}
	}
	return conn, nil
}

// pause waits before the next try of a transaction, with full jitter.
func pause(ctx context.Context, try int) error {
	timer := time.NewTimer(rand.N(conflictPause << min(try, 7)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
