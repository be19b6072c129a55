package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// ledger is the least that any engine without memory has to do for a durable
// sequence: note its begin and, for each step, read where it stands and write
// where it stands then, with two events, in one commit. No dispatch, no queue,
// no HTTP: what the scenarios are compared with.
type ledger interface {
	begin(ctx context.Context, id string, state []byte) error
	read(ctx context.Context, id string) (state []byte, seq int64, err error)
	advance(ctx context.Context, id string, seq int64, state []byte) error
	// element notes one finished element of a fan-out, apart from the state.
	element(ctx context.Context, id string, n int, output []byte) error
	// note moves the row on by one event, wherever it stands.
	note(ctx context.Context, id string, state []byte) error
	close()
}

var errMoved = errors.New("someone else moved the ledger's row")

// limits measures the ledger in the place of the scenarios, and the wire.
func (s *suite) limits(ctx context.Context, store string) error {
	open := s.openFile
	if store == "postgres" {
		open = s.openTable
	}
	l, err := open(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	if _, err := together(50, 16, func(i int) (float64, error) { return 0, sequence(ctx, l, fmt.Sprint("warm-", i), 3) }); err != nil {
		return err
	}
	if err := s.checkpoint(ctx, store); err != nil {
		return err
	}
	n := s.count(1000)
	began := time.Now()
	if _, err := together(n, 16, func(i int) (float64, error) { return 0, sequence(ctx, l, fmt.Sprint("a-", i), 3) }); err != nil {
		return err
	}
	s.sheet.add(limit(s1), store, float64(n)/time.Since(began).Seconds(), "workflows/s")
	took, err := together(s.count(200), 1, timed(func(i int) error { return sequence(ctx, l, fmt.Sprint("b-", i), 3) }))
	if err != nil {
		return err
	}
	s.sheet.add(limit(s2), store, median(took), "ms p50")
	took, err = together(s.count(20), 1, timed(func(i int) error { return elements(ctx, l, fmt.Sprint("c-", i), 100) }))
	if err != nil {
		return err
	}
	s.sheet.add(limit(s3), store, median(took), "ms p50")
	took, err = together(1, 1, timed(func(int) error { return sequence(ctx, l, "d", 1000) }))
	if err != nil {
		return err
	}
	s.sheet.add(limit(s4), store, took[0]/1000, "s")
	return s.hotRow(ctx, l, store)
}

// hotRow measures how often 16 writers move one row on.
func (s *suite) hotRow(ctx context.Context, l ledger, store string) error {
	state, err := json.Marshal(newDocument("e"))
	if err != nil {
		return err
	}
	if err := l.begin(ctx, "e", state); err != nil {
		return err
	}
	n := s.count(1600)
	began := time.Now()
	if _, err := together(n, 16, func(int) (float64, error) { return 0, l.note(ctx, "e", state) }); err != nil {
		return err
	}
	s.sheet.add(limit(writers), store, float64(n)/time.Since(began).Seconds(), "commits/s")
	return nil
}

// timed gives the milliseconds that f takes.
func timed(f func(i int) error) func(i int) (float64, error) {
	return func(i int) (float64, error) {
		began := time.Now()
		err := f(i)
		return milliseconds(time.Since(began)), err
	}
}

// sequence runs n steps in a row.
func sequence(ctx context.Context, l ledger, id string, n int) error {
	state, err := json.Marshal(newDocument(id))
	if err != nil {
		return err
	}
	if err := l.begin(ctx, id, state); err != nil {
		return err
	}
	for range n {
		state, seq, err := l.read(ctx, id)
		if err != nil {
			return err
		}
		d, err := step(state)
		if err != nil {
			return err
		}
		if state, err = json.Marshal(d); err != nil {
			return err
		}
		if err := l.advance(ctx, id, seq, state); err != nil {
			return err
		}
	}
	return nil
}

// elements runs n steps at once and joins them.
func elements(ctx context.Context, l ledger, id string, n int) error {
	state, err := json.Marshal(newDocument(id))
	if err != nil {
		return err
	}
	if err := l.begin(ctx, id, state); err != nil {
		return err
	}
	if _, err := together(n, 16, func(i int) (float64, error) { return 0, l.element(ctx, id, i, state) }); err != nil {
		return err
	}
	return l.advance(ctx, id, 2, state)
}

// event is what the ledger writes beside the state.
func event(kind string, document []byte) string {
	return fmt.Sprintf(`{"type":%q,"at":%d,"document":%s}`, kind, time.Now().UnixMilli(), document)
}

const ledgerSchema = `
CREATE TABLE ledger (id text PRIMARY KEY, seq bigint NOT NULL, state text NOT NULL);
CREATE TABLE ledger_events (id text NOT NULL, seq bigint NOT NULL, data text NOT NULL, PRIMARY KEY (id, seq));
CREATE TABLE ledger_elements (id text NOT NULL, element bigint NOT NULL, output text NOT NULL, PRIMARY KEY (id, element))`

// table is a ledger in Postgres.
type table struct{ pool *pgxpool.Pool }

func (s *suite) openTable(ctx context.Context) (ledger, error) {
	url, err := s.database(ctx, "postgres")
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, ledgerSchema); err != nil {
		return nil, err
	}
	return &table{pool}, nil
}

func (t *table) begin(ctx context.Context, id string, state []byte) error {
	var b pgx.Batch
	b.Queue(`INSERT INTO ledger VALUES ($1, 2, $2)`, id, string(state))
	b.Queue(`INSERT INTO ledger_events VALUES ($1, 1, $2), ($1, 2, $3)`, id, event("begun", state), event("scheduled", state))
	return t.pool.SendBatch(ctx, &b).Close()
}

func (t *table) read(ctx context.Context, id string) (state []byte, seq int64, err error) {
	err = t.pool.QueryRow(ctx, `SELECT state, seq FROM ledger WHERE id = $1`, id).Scan(&state, &seq)
	return state, seq, err
}

func (t *table) advance(ctx context.Context, id string, seq int64, state []byte) error {
	var b pgx.Batch
	moved := int64(0)
	b.Queue(`UPDATE ledger SET seq = $2 + 2, state = $3 WHERE id = $1 AND seq = $2`, id, seq, string(state)).
		Exec(func(tag pgconn.CommandTag) error { moved = tag.RowsAffected(); return nil })
	b.Queue(`INSERT INTO ledger_events VALUES ($1, $2, $3), ($1, $4, $5)`, id, seq+1, event("succeeded", state), seq+2, event("scheduled", state))
	err := t.pool.SendBatch(ctx, &b).Close()
	if err == nil && moved != 1 {
		err = errMoved
	}
	return err
}

func (t *table) element(ctx context.Context, id string, n int, output []byte) error {
	_, err := t.pool.Exec(ctx, `INSERT INTO ledger_elements VALUES ($1, $2, $3)`, id, n, event("succeeded", output))
	return err
}

func (t *table) note(ctx context.Context, id string, state []byte) error {
	_, err := t.pool.Exec(ctx, `WITH moved AS (UPDATE ledger SET seq = seq + 1 WHERE id = $1 RETURNING seq) INSERT INTO ledger_events SELECT $1, seq, $2 FROM moved`,
		id, event("noted", state))
	return err
}

func (t *table) close() { t.pool.Close() }

// file is a ledger in SQLite, which flushes each commit to the disk.
type file struct{ writing, reading *sql.DB }

func (s *suite) openFile(ctx context.Context) (ledger, error) {
	s.made++
	source := "file:" + filepath.Join(s.dir, fmt.Sprintf("ledger_%d.db", s.made)) +
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_txlock=immediate"
	f := &file{}
	var err error
	if f.writing, err = sql.Open("sqlite", source); err != nil {
		return nil, err
	}
	f.writing.SetMaxOpenConns(1)
	if f.reading, err = sql.Open("sqlite", source); err != nil {
		return nil, err
	}
	f.reading.SetMaxOpenConns(4)
	_, err = f.writing.ExecContext(ctx, ledgerSchema)
	return f, err
}

// commit runs statements in one transaction.
func (f *file) commit(ctx context.Context, run func(tx *sql.Tx) error) error {
	tx, err := f.writing.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := run(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (f *file) begin(ctx context.Context, id string, state []byte) error {
	return f.commit(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO ledger VALUES (?, 2, ?)`, id, string(state)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO ledger_events VALUES (?1, 1, ?2), (?1, 2, ?3)`, id, event("begun", state), event("scheduled", state))
		return err
	})
}

func (f *file) read(ctx context.Context, id string) (state []byte, seq int64, err error) {
	err = f.reading.QueryRowContext(ctx, `SELECT state, seq FROM ledger WHERE id = ?`, id).Scan(&state, &seq)
	return state, seq, err
}

func (f *file) advance(ctx context.Context, id string, seq int64, state []byte) error {
	return f.commit(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `UPDATE ledger SET seq = ?2 + 2, state = ?3 WHERE id = ?1 AND seq = ?2`, id, seq, string(state))
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return errors.Join(errMoved, err)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO ledger_events VALUES (?1, ?2, ?3), (?1, ?4, ?5)`,
			id, seq+1, event("succeeded", state), seq+2, event("scheduled", state))
		return err
	})
}

func (f *file) element(ctx context.Context, id string, n int, output []byte) error {
	return f.commit(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO ledger_elements VALUES (?, ?, ?)`, id, n, event("succeeded", output))
		return err
	})
}

func (f *file) note(ctx context.Context, id string, state []byte) error {
	return f.commit(ctx, func(tx *sql.Tx) error {
		var seq int64
		if err := tx.QueryRowContext(ctx, `UPDATE ledger SET seq = seq + 1 WHERE id = ? RETURNING seq`, id).Scan(&seq); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO ledger_events VALUES (?, ?, ?)`, id, seq, event("noted", state))
		return err
	})
}

func (f *file) close() {
	_ = f.writing.Close() // nothing in it is needed any more
	_ = f.reading.Close()
}
