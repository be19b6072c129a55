package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// conn is one connection with its prepared statements. One goroutine uses it at
// a time. Its statements run under no caller's context: the driver would start
// a goroutine for each, and a write must not stop half-way.
type conn struct {
	raw      *sql.Conn
	prepared map[string]*sql.Stmt
	count    *counters
	wrote    bool // a statement changed rows since the flag was cleared
	touched  bool // a statement changed rows, or failed, since the flag was cleared
}

func newConn(ctx context.Context, db *sql.DB, count *counters) (*conn, error) {
	raw, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw, prepared: map[string]*sql.Stmt{}, count: count}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, stmt := range c.prepared {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

// discard closes the connection for good, whatever state it is in: a plain close
// would give it back to the pool.
func (c *conn) discard() {
	for _, stmt := range c.prepared {
		_ = stmt.Close()
	}
	_ = c.raw.Raw(func(any) error { return driver.ErrBadConn })
}

// statement is the prepared form of a constant text.
func (c *conn) statement(text string) (*sql.Stmt, error) {
	c.count.statements.Add(1)
	if stmt, ok := c.prepared[text]; ok {
		return stmt, nil
	}
	stmt, err := c.raw.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	c.prepared[text] = stmt
	return stmt, nil
}

// control runs BEGIN, COMMIT and their like.
func (c *conn) control(text string) error {
	stmt, err := c.statement(text)
	if err != nil {
		return err
	}
	_, err = stmt.ExecContext(context.Background())
	return err
}

// pragma runs a PRAGMA. Those that take effect when they are compiled would do
// nothing as a prepared statement that is run again.
func (c *conn) pragma(text string) error {
	c.count.statements.Add(1)
	_, err := c.raw.ExecContext(context.Background(), text)
	return err
}

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(text string, args ...any) (int64, error) {
	stmt, err := c.statement(text)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(context.Background(), args...)
	if err != nil {
		c.touched = true
		return 0, err
	}
	n, err := result.RowsAffected()
	c.changed(n > 0 || err != nil)
	return n, err
}

func (c *conn) changed(rows bool) {
	c.wrote, c.touched = c.wrote || rows, c.touched || rows
}

// each calls scan for every row.
func (c *conn) each(text string, scan func(rows *sql.Rows) error, args ...any) error {
	stmt, err := c.statement(text)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(context.Background(), args...)
	if err == nil {
		err = drain(rows, scan)
	}
	c.touched = c.touched || err != nil
	return err
}

func drain(rows *sql.Rows, scan func(rows *sql.Rows) error) error {
	for rows.Next() {
		if err := scan(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// one reads the first row into dest, and tells whether there is one.
func (c *conn) one(text string, dest []any, args ...any) (found bool, err error) {
	err = c.each(text, func(rows *sql.Rows) error {
		if found {
			return nil
		}
		found = true
		return rows.Scan(dest...)
	}, args...)
	return found, err
}

// changing is one for a statement with RETURNING.
func (c *conn) changing(text string, dest []any, args ...any) (found bool, err error) {
	found, err = c.one(text, dest, args...)
	c.changed(found)
	return found, err
}

// driverConn is what the driver's connections can do.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

// lender makes a *sql.DB of one borrowed connection, which it does not close.
type lender struct{ lent driverConn }

// borrowed is a connection that stays open when its borrower is done.
type borrowed struct{ driverConn }

func (borrowed) Close() error { return nil }

func (l lender) Connect(context.Context) (driver.Conn, error) { return borrowed{l.lent}, nil }
func (l lender) Driver() driver.Driver                        { return nil }

// borrow lends the driver's connection to code that wants a *sql.DB.
func borrow(raw any) (*sql.DB, error) {
	lent, ok := raw.(driverConn)
	if !ok {
		return nil, fmt.Errorf("a driver connection of type %T cannot be lent", raw)
	}
	db := sql.OpenDB(lender{lent})
	db.SetMaxOpenConns(1)
	return db, nil
}
