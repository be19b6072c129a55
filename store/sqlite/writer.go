package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"perigee/store"
)

// IMMEDIATE takes the write lock at once: a transaction that reads first and
// then cannot write would have to be run again.
const (
	beginSQL     = `BEGIN IMMEDIATE`
	beginReadSQL = `BEGIN`
	commitSQL    = `COMMIT`
	rollbackSQL  = `ROLLBACK`
)

// maxGroup bounds how many writes share a transaction, and so how long the
// first of them waits.
const maxGroup = 64

// job is a call that waits for the writer. Its run ends with the first error:
// where SQLite has undone the transaction by itself, as on a full disk, further
// statements would each be a transaction of their own.
type job struct {
	run   func(c *conn) error
	plain bool        // run outside a transaction of the writer's
	taken atomic.Bool // by the writer, or by its caller who gave up
	err   error       // set before done is closed
	done  chan struct{}
}

// writer owns the writing connection.
type writer struct {
	db    *sql.DB
	count *counters
	limit int  // of members in a group
	file  bool // the connection may be replaced without losing the database
	c     *conn

	queue  chan *job
	closed bool         // guarded by gate
	gate   sync.RWMutex // held for reading while a job is put into the queue
	ended  chan struct{}
	last   error // of closing; read after ended

	// fault, where a test sets it before the first call, is asked before each
	// control statement, and its error is the statement's.
	fault func(text string) error
}

func startWriter(ctx context.Context, source string, count *counters, o Options) (*writer, error) {
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	w := &writer{
		db: db, count: count, limit: maxGroup, file: source != Memory,
		queue: make(chan *job, 2*maxGroup), ended: make(chan struct{}),
	}
	if o.NoGroupCommit {
		w.limit = 1
	}
	if w.c, err = newConn(ctx, db, count); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := w.probe(); err != nil {
		return nil, errors.Join(err, w.c.close(), db.Close())
	}
	go w.work()
	return w, nil
}

const journalSQL = `PRAGMA journal_mode`

// probe fails on a file that can be opened but not used. One that another
// process writes to at the moment can.
func (w *writer) probe() error {
	var mode string
	if _, err := w.c.one(journalSQL, []any{&mode}); err != nil {
		return err
	}
	if w.file && mode != "wal" {
		return fmt.Errorf("write-ahead logging cannot be switched on (the journal mode stays %q); use a local disk", mode)
	}
	if err := w.c.control(beginSQL); err != nil {
		if isBusy(err) {
			return nil
		}
		return err
	}
	return w.c.control(rollbackSQL)
}

// submit waits until the job is done. A caller whose context ends before the
// writer came to its job takes it back, and nothing is written.
func (w *writer) submit(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.enqueue(ctx, j); err != nil {
		return err
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		if j.take() {
			return ctx.Err()
		}
		<-j.done
		return j.err
	}
}

func (w *writer) enqueue(ctx context.Context, j *job) error {
	w.gate.RLock()
	defer w.gate.RUnlock()
	if w.closed {
		return errClosed
	}
	select {
	case w.queue <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take reports whether the caller is the first to take the job.
func (j *job) take() bool { return j.taken.CompareAndSwap(false, true) }

func (w *writer) close() error {
	w.gate.Lock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
	w.gate.Unlock()
	<-w.ended
	return w.last
}

// work serves the queue until it is closed and empty.
func (w *writer) work() {
	defer close(w.ended)
	group := make([]*job, 0, w.limit)
	for j := range w.queue {
		var plain *job
		group, plain = w.gather(group[:0], j)
		w.write(group)
		if plain != nil {
			plain.err = plain.run(w.c)
			close(plain.done)
		}
	}
	w.last = errors.Join(w.c.close(), w.db.Close())
}

// gather takes the writes that wait, up to the first job that is none.
func (w *writer) gather(group []*job, j *job) (writes []*job, plain *job) {
	for {
		switch {
		case !j.take():
		case j.plain:
			return group, j
		default:
			group = append(group, j)
		}
		if len(group) == w.limit {
			return group, nil
		}
		select {
		case next, open := <-w.queue:
			if !open {
				return group, nil
			}
			j = next
		default:
			return group, nil
		}
	}
}

// write runs the group and answers all its members, who hear nothing before.
func (w *writer) write(group []*job) {
	switch {
	case len(group) == 1:
		group[0].err = w.alone(group[0])
	case len(group) > 1:
		w.together(group)
	}
	for _, j := range group {
		close(j.done)
	}
}

// alone runs one job in a transaction of its own.
func (w *writer) alone(j *job) error {
	if err := w.begin(); err != nil {
		return err
	}
	if err := j.run(w.c); err != nil {
		w.abandon()
		return err
	}
	return w.commit()
}

// together runs a group in one transaction. Where a member would have to be undone
// alone, the whole group is, and each is run again alone, once.
func (w *writer) together(group []*job) {
	err := w.begin()
	if err == nil {
		if !w.members(group) {
			w.abandon()
			for _, j := range group {
				j.err = w.alone(j)
			}
			return
		}
		err = w.commit()
	}
	if err == nil {
		return
	}
	// Nobody is told anything else, the losers neither: what they lost against
	// did not happen.
	for _, j := range group {
		j.err = err
	}
}

// members runs each job. False: one failed half-way. Nearly all that fail do so at
// their first statement, a guard that changed nothing and leaves nothing to undo:
// savepoints, which copy each page that a member changes, would cost the others
// a fifth of their time.
func (w *writer) members(group []*job) bool {
	for _, j := range group {
		w.c.touched = false
		if j.err = j.run(w.c); j.err != nil && w.c.touched {
			return false
		}
	}
	return true
}

func (w *writer) control(text string) error {
	if w.fault != nil {
		if err := w.fault(text); err != nil {
			return err
		}
	}
	return w.c.control(text)
}

func (w *writer) begin() error {
	w.c.wrote = false
	err := w.control(beginSQL)
	switch {
	case err == nil:
		return nil
	case isBusy(err):
		return err
	}
	w.replace()
	return fmt.Errorf("%w: begin: %w", store.ErrUnavailable, err)
}

func (w *writer) commit() error {
	err := w.control(commitSQL)
	if err != nil {
		w.replace()
		return commitError(err)
	}
	if w.c.wrote {
		w.count.commits.Add(1)
	}
	return nil
}

// abandon undoes the transaction.
func (w *writer) abandon() {
	if w.control(rollbackSQL) != nil {
		w.replace()
	}
}

// replace gives the writer a connection without a transaction. Closing the old
// one undoes whatever was open there. In memory the connection is the database,
// so that only an undo can be tried.
func (w *writer) replace() {
	if !w.file {
		_ = w.c.control(rollbackSQL) // fails where SQLite has undone it already
		return
	}
	w.c.discard()
	c, err := newConn(context.Background(), w.db, w.count)
	if err != nil {
		// The next BEGIN fails on the closed connection and tries again.
		return
	}
	w.c = c
}
