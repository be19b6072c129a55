package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"perigee/store"
)

// Commit writes a decision, all or nothing.
func (s *Store) Commit(ctx context.Context, c store.Commit) error {
	return s.groups.write(ctx, &c)
}

// apply adds the statements that decisions need: the guards first, so that a
// lost race does as little as it can, and heads before tasks, which is the order
// of locks.
func apply(sc *script, commits ...*store.Commit) error {
	c := changesOf(commits)
	if len(c.created) > 0 {
		if err := createHeads(sc, c.created, func(*pgconn.PgError) error { return &store.LostError{Exists: true} }); err != nil {
			return err
		}
	}
	advance(sc, c)
	guarded(sc, markTasksSQL, c.marked)
	removeAllTasks(sc, c.replaced)
	insertTasks(sc, c.inserted)
	c.events.insert(sc)
	for _, s := range c.snapshots {
		putSnapshot(sc, s.execution, s.Snapshot)
	}
	if err := createChildren(sc, c.children); err != nil {
		return err
	}
	writeMessages(sc, c)
	return nil
}

// eventRows are events of one or more executions, as columns.
type eventRows struct {
	ids, types, data []string
	seqs, ats        []int64
}

func (r *eventRows) append(id string, events []store.Event) {
	for i := range events {
		e := &events[i]
		r.ids, r.seqs, r.types = append(r.ids, id), append(r.seqs, int64(e.Seq)), append(r.types, e.Type)
		r.ats, r.data = append(r.ats, e.AtMS), append(r.data, e.Data)
	}
}

const appendEventsSQL = `
INSERT INTO events (execution_id, seq, type, at, data)
SELECT execution_id, seq, type, at, data
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[]) AS e (execution_id, seq, type, at, data)`

// fewEvents is how many events go as plain values: those of a step. Arrays cost
// both sides more than so few rows do.
const fewEvents = 4

// appendFewSQL are the texts for one event to fewEvents.
var appendFewSQL = func() (texts [fewEvents + 1]string) {
	rows := ""
	for n := 1; n <= fewEvents; n++ {
		first := 5 * (n - 1)
		rows += fmt.Sprintf(", ($%d, $%d, $%d, $%d, $%d)", first+1, first+2, first+3, first+4, first+5)
		texts[n] = "\nINSERT INTO events (execution_id, seq, type, at, data)\nVALUES " + rows[len(", "):]
	}
	return texts
}()

func (r *eventRows) insert(sc *script) {
	n := len(r.ids)
	switch {
	case n == 0:
	case n <= fewEvents:
		args := make([]any, 0, 5*fewEvents)
		for i := range n {
			args = append(args, r.ids[i], r.seqs[i], r.types[i], r.ats[i], r.data[i])
		}
		sc.add(appendFewSQL[n], nil, args...)
	default:
		sc.add(appendEventsSQL, nil, r.ids, r.seqs, r.types, r.ats, r.data)
	}
}

const putSnapshotSQL = `
INSERT INTO snapshots (execution_id, seq, format, data)
VALUES ($1, $2, $3, $4)
ON CONFLICT (execution_id) DO UPDATE
SET seq = excluded.seq, format = excluded.format, data = excluded.data`

func putSnapshot(sc *script, id string, s *store.Snapshot) {
	sc.add(putSnapshotSQL, nil, id, s.Seq, s.Format, s.Data)
}

// createChildren inserts the heads of all children, then their first events.
func createChildren(sc *script, children []store.NewExecution) error {
	if len(children) == 0 {
		return nil
	}
	heads := make([]store.Head, len(children))
	for i := range children {
		heads[i] = children[i].Head
	}
	err := createHeads(sc, heads, func(e *pgconn.PgError) error {
		return &store.ChildExistsError{ID: named(e, heads, func(h *store.Head) string { return h.ID })}
	})
	events := &eventRows{}
	for i := range children {
		events.append(children[i].Head.ID, children[i].Events)
	}
	events.insert(sc)
	return err
}

// The id is deterministic: a second row of it is the same message.
var putMessagesSQL = forRows(`
INSERT INTO outbox (id, source, kind, target, unit, payload, created_at)
SELECT id, source, kind, target, unit, payload, created_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])
    AS m (id, source, kind, target, unit, payload, created_at)
ON CONFLICT (id) DO NOTHING`)

const deleteMessagesSQL = `
DELETE FROM outbox
WHERE id = ANY ($1::text[])`

func writeMessages(sc *script, c *changes) {
	if len(c.outbox) > 0 {
		text := func(member func(*store.Message) string) any { return column(c.outbox, member) }
		sc.add(putMessagesSQL.of(len(c.outbox)), nil,
			text(func(m *store.Message) string { return m.ID }),
			text(func(m *store.Message) string { return m.Source }),
			text(func(m *store.Message) string { return m.Kind }),
			text(func(m *store.Message) string { return m.Target }),
			text(func(m *store.Message) string { return m.Unit }),
			text(func(m *store.Message) string { return m.Payload }),
			column(c.outbox, func(m *store.Message) int64 { return m.CreatedAtMS }))
	}
	if len(c.delivered) > 0 {
		sc.add(deleteMessagesSQL, nil, c.delivered)
	}
}

const beginSQL = `BEGIN`

const rollbackSQL = `ROLLBACK`

// A transaction that holds the head makes others wait, and its statements see
// what they wrote before.
const lockHeadSQL = headSQL + `
FOR UPDATE`

// WithHeadLocked runs load, decide and apply in one transaction: BEGIN, lock
// and load in one round trip, what was decided and COMMIT in another.
func (s *Store) WithHeadLocked(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	if s.noLocks {
		return s.optimistic(ctx, r, decide)
	}
	return s.locked(ctx, "commit with the head locked", r, lockHeadSQL, decide)
}

// locked runs a transaction that takes the head as headSQL says.
func (s *Store) locked(ctx context.Context, operation string, r store.LoadRequest, headSQL string, decide func(store.Loaded) (*store.Commit, error)) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return wrap(operation, translate(err))
	}
	defer conn.Release()
	l, err := s.loadLocked(ctx, conn, r, headSQL)
	if err != nil {
		s.rollback(conn)
		return wrap(operation, translate(err))
	}
	// A panic of decide must not leave the transaction open.
	committed := false
	defer func() {
		if !committed {
			s.rollback(conn)
		}
	}()
	c, err := decide(l)
	if err != nil || c == nil {
		return wrap(operation, err)
	}
	sc := &script{}
	if err := apply(sc, c); err != nil {
		return wrap(operation, err)
	}
	sc.add(commitSQL, nil)
	if err := s.deliver(ctx, conn, sc); err != nil {
		return wrap(operation, lostOnConflict(commitError(err)))
	}
	committed = true
	s.stats.commits.Add(1)
	return nil
}

// existsSQL tells a head that another transaction holds from one that is not there.
const existsSQL = `
SELECT EXISTS (SELECT 1 FROM executions WHERE id = $1)`

// loadLocked begins a transaction, takes the head and loads under its lock.
// ErrBusy: there is a head, but it was not to be had.
func (s *Store) loadLocked(ctx context.Context, conn *pgxpool.Conn, r store.LoadRequest, headSQL string) (store.Loaded, error) {
	var l store.Loaded
	var exists bool
	sc := &script{}
	sc.add(beginSQL, nil)
	load(sc, r, headSQL, &l)
	sc.add(existsSQL, one(&exists), r.ID)
	if err := s.deliver(ctx, conn, sc); err != nil {
		return store.Loaded{}, err
	}
	if exists && l.Head == nil {
		return store.Loaded{}, store.ErrBusy
	}
	return l, nil
}

// rollback ends a transaction that came to nothing. Where even that fails the
// pool closes the connection, which ends it, too.
func (s *Store) rollback(conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
	defer cancel()
	if !conn.Conn().IsClosed() && conn.Conn().PgConn().TxStatus() != 'I' {
		conn.Exec(ctx, rollbackSQL)
	}
}

// optimistic is locked for a database without locks: load, decide, commit, and
// again where someone was faster.
func (s *Store) optimistic(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	for try := 1; ; try++ {
		l, err := s.Load(ctx, r)
		if err != nil {
			return err
		}
		c, err := decide(l)
		if err != nil || c == nil {
			return err
		}
		err = s.Commit(ctx, *c)
		if !isLost(err) || try == conflictTries {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return wrap("commit", err)
		}
	}
}
