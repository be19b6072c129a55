package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"perigee/store"
)

// Memory is the Path of a database that lives and dies with its Store.
const Memory = ":memory:"

// Options say which database to open and how.
type Options struct {
	// Path of the database file, which is created where there is none, or Memory.
	Path string
	// BusyTimeout is how long a call waits for other processes. 0: 5 s.
	BusyTimeout time.Duration
	// NoGroupCommit gives every write a transaction of its own.
	NoGroupCommit bool
	// ReadConns is the number of reading connections. 0: 4. In memory there are none.
	ReadConns int
	// Clock is the store's clock, in epoch milliseconds, safe for concurrent
	// use. nil: the process's.
	Clock func() int64
}

func (o *Options) validate() error {
	switch {
	case o.Path == "":
		return errors.New("sqlite options: Path is empty; name a file, or Memory for a database in memory")
	case o.BusyTimeout < 0:
		return fmt.Errorf("sqlite options: BusyTimeout is %s; it must not be negative", o.BusyTimeout)
	case o.ReadConns < 0:
		return fmt.Errorf("sqlite options: ReadConns is %d; it must not be negative", o.ReadConns)
	}
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.ReadConns == 0 {
		o.ReadConns = 4
	}
	if o.Clock == nil {
		o.Clock = func() int64 { return time.Now().UnixMilli() }
	}
	return nil
}

// counters are what Stats tells.
type counters struct {
	calls, statements, commits atomic.Int64
}

// Store is a SQLite database; see package store for its methods.
type Store struct {
	path    string
	clock   func() int64
	count   *counters
	writer  *writer
	readDB  *sql.DB    // nil in memory, where the writer's connection reads, too
	readers chan *conn // idle reading connections
	opened  int        // how many reading connections there are

	closing   chan struct{} // closed when Close begins
	closeOnce sync.Once
	closeErr  error
}

var _ store.Store = (*Store)(nil)

// Open opens a database without touching its schema. Its errors are one line
// that says what to do.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Store{path: o.Path, clock: o.Clock, count: &counters{}, closing: make(chan struct{})}
	writing, reading, err := sources(o)
	if err != nil {
		return nil, err
	}
	s.writer, err = startWriter(ctx, writing, s.count, o)
	if err != nil {
		return nil, openError(o.Path, err)
	}
	if reading == "" {
		return s, nil
	}
	if err := s.openReaders(ctx, reading, o.ReadConns); err != nil {
		return nil, errors.Join(openError(o.Path, err), s.Close())
	}
	return s, nil
}

// Page caches of a connection, each filled in time by a database that is larger.
// What is written are the last leaves of a few trees; what misses is in the
// memory of the system, most often.
const (
	writerCacheKiB = 8 << 10
	readerCacheKiB = 2 << 10
)

// sources are the data source names of the writing and reading connections; no
// reading ones in memory, where each connection would have its own database.
func sources(o Options) (writing, reading string, err error) {
	if o.Path == Memory {
		return Memory, "", nil
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return "", "", fmt.Errorf("open %s: %w", o.Path, err)
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive letter
		path = "/" + path
	}
	base := "file://" + (&url.URL{Path: path}).EscapedPath() + fmt.Sprintf("?_pragma=busy_timeout(%d)&_pragma=temp_store(MEMORY)", o.BusyTimeout.Milliseconds())
	// FULL: a commit is on the disk before it is answered.
	writing = fmt.Sprintf("%s&_pragma=cache_size(-%d)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)", base, writerCacheKiB)
	return writing, fmt.Sprintf("%s&_pragma=cache_size(-%d)&_query_only=1", base, readerCacheKiB), nil
}

func (s *Store) openReaders(ctx context.Context, source string, n int) error {
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(n)
	s.readDB, s.readers = db, make(chan *conn, n)
	for range n {
		c, err := newConn(ctx, db, s.count)
		if err != nil {
			return err
		}
		s.readers <- c
		s.opened++
	}
	return nil
}

// Close answers the writes that wait, waits for the reads under way and closes
// the database. Calls after it fail with ErrUnavailable.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		errs := []error{s.writer.close()}
		for range s.opened {
			errs = append(errs, (<-s.readers).close())
		}
		if s.readDB != nil {
			errs = append(errs, s.readDB.Close())
		}
		s.closeErr = wrap("close", errors.Join(errs...))
	})
	return s.closeErr
}

// now is the moment to work with.
func (s *Store) now(requested int64) int64 {
	if requested != 0 {
		return requested
	}
	return s.clock()
}

// write runs a transition in a transaction. It may be run again from the start,
// so run sets its results anew each time.
func (s *Store) write(ctx context.Context, operation string, run func(c *conn) error) error {
	s.count.calls.Add(1)
	return wrap(operation, s.writer.submit(ctx, &job{run: run, done: make(chan struct{})}))
}

// read runs statements of which each sees the database by itself.
func (s *Store) read(ctx context.Context, operation string, run func(c *conn) error) error {
	s.count.calls.Add(1)
	if s.readers == nil {
		return wrap(operation, s.writer.submit(ctx, &job{plain: true, run: run, done: make(chan struct{})}))
	}
	if err := ctx.Err(); err != nil {
		return wrap(operation, err)
	}
	select {
	case <-s.closing:
		return wrap(operation, errClosed)
	default:
	}
	select {
	case c := <-s.readers:
		defer func() { s.readers <- c }()
		return wrap(operation, run(c))
	case <-s.closing:
		return wrap(operation, errClosed)
	case <-ctx.Done():
		return wrap(operation, ctx.Err())
	}
}

// snapshot runs statements that see the database at one moment. In memory
// nothing comes between them anyway.
func (s *Store) snapshot(ctx context.Context, operation string, run func(c *conn) error) error {
	if s.readers == nil {
		return s.read(ctx, operation, run)
	}
	return s.read(ctx, operation, func(c *conn) error {
		if err := c.control(beginReadSQL); err != nil {
			return err
		}
		err := run(c)
		return errors.Join(err, c.control(commitSQL))
	})
}

const pingSQL = `SELECT 1`

// Ping reads nothing from the database.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, "ping", func(c *conn) error {
		var one int64
		_, err := c.one(pingSQL, []any{&one})
		return err
	})
}

// Stats counts a turn on a connection as a round trip, for there is no wire:
// one for most calls, two for a Claim or TouchSession that looks and then
// writes. Statements include BEGIN, SAVEPOINT and their like; a group of writes
// is one commit.
func (s *Store) Stats() store.Stats {
	return store.Stats{
		RoundTrips: s.count.calls.Load(), Statements: s.count.statements.Load(), Commits: s.count.commits.Load(),
	}
}
