package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	moveHeads(sc, c.moved)
	leaveQueue(sc, c)
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

// A division by zero tells that the head is not where it was seen, and undoes
// the whole in the same round trip.
const moveHeadSQL = `
WITH moved AS (
    UPDATE executions
    SET status = $1, last_seq = $2, last_at = $3, due_at = NULLIF($4::bigint, 0), finished_at = NULLIF($5::bigint, 0), error_count = $6
    WHERE id = $7 AND incarnation = $8 AND last_seq = $9
    RETURNING 1
)
SELECT 1 / count(*)
FROM moved`

const moveSeveralHeadsSQL = `
WITH moved AS (
    UPDATE executions e
    SET status = h.status, last_seq = h.last_seq, last_at = h.last_at, due_at = NULLIF(h.due_at, 0), finished_at = NULLIF(h.finished_at, 0),
        error_count = h.error_count
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[], $7::text[], $8::bigint[], $9::bigint[])
        AS h (status, last_seq, last_at, due_at, finished_at, error_count, id, incarnation, seen)
    WHERE e.id = h.id AND e.incarnation = h.incarnation AND e.last_seq = h.seen
    RETURNING 1
)
SELECT 1 / CASE WHEN count(*) = cardinality($1::text[]) THEN 1 ELSE 0 END
FROM moved`

// moveHeads moves heads on, if they are still where they were seen.
func moveHeads(sc *script, heads []movedHead) {
	if len(heads) == 0 {
		return
	}
	sql := moveSeveralHeadsSQL
	if len(heads) == 1 {
		sql = moveHeadSQL
	}
	number := func(member func(*movedHead) int64) any { return column(heads, member) }
	sc.add(sql, nil,
		column(heads, func(h *movedHead) string { return h.Status }),
		number(func(h *movedHead) int64 { return int64(h.LastSeq) }),
		number(func(h *movedHead) int64 { return h.LastAtMS }),
		number(func(h *movedHead) int64 { return h.DueAtMS }),
		number(func(h *movedHead) int64 { return h.FinishedAtMS }),
		column(heads, func(h *movedHead) int32 { return int32(h.ErrorCount) }),
		column(heads, func(h *movedHead) string { return h.ID }),
		number(func(h *movedHead) int64 { return h.seen.Incarnation }),
		number(func(h *movedHead) int64 { return int64(h.seen.Seq) }),
	).conflict = func(*pgconn.PgError) error { return &store.LostError{} }
}

var createHeadsSQL = forRows(`
INSERT INTO executions (id, incarnation, workflow, version, definition_hash, status, last_seq, last_at,
    due_at, parent_id, parent_step, tags, created_at, finished_at, error_count, root_id)
SELECT id, incarnation, workflow, version, definition_hash, status, last_seq, last_at,
    NULLIF(due_at, 0), parent_id, parent_step, tags, created_at, NULLIF(finished_at, 0), error_count, NULLIF(root_id, '')
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[],
    $9::bigint[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14::bigint[], $15::integer[], $16::text[])
    AS h (id, incarnation, workflow, version, definition_hash, status, last_seq, last_at,
    due_at, parent_id, parent_step, tags, created_at, finished_at, error_count, root_id)`)

const createTagsSQL = `
INSERT INTO execution_tags (name, value, created_at, execution_id)
SELECT name, value, created_at, execution_id
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) AS t (name, value, created_at, execution_id)
ON CONFLICT DO NOTHING`

// createHeads inserts heads and their tags.
func createHeads(sc *script, heads []store.Head, taken func(*pgconn.PgError) error) error {
	texts := make(map[string]string, len(heads))
	var names, values, owners []string
	var created []int64
	for i := range heads {
		h := &heads[i]
		text, err := tagsText(h.Tags)
		if err != nil {
			return fmt.Errorf("tags of execution %s: %w", h.ID, err)
		}
		texts[h.ID] = text
		for _, name := range slices.Sorted(maps.Keys(h.Tags)) {
			names, values = append(names, name), append(values, h.Tags[name])
			owners, created = append(owners, h.ID), append(created, h.CreatedAtMS)
		}
	}
	sc.add(createHeadsSQL.of(len(heads)), nil,
		column(heads, func(h *store.Head) string { return h.ID }),
		column(heads, func(h *store.Head) int64 { return h.Incarnation }),
		column(heads, func(h *store.Head) string { return h.Workflow }),
		column(heads, func(h *store.Head) string { return h.Version }),
		column(heads, func(h *store.Head) string { return h.DefinitionHash }),
		column(heads, func(h *store.Head) string { return h.Status }),
		column(heads, func(h *store.Head) int64 { return int64(h.LastSeq) }),
		column(heads, func(h *store.Head) int64 { return h.LastAtMS }),
		column(heads, func(h *store.Head) int64 { return h.DueAtMS }),
		column(heads, func(h *store.Head) string { return h.ParentID }),
		column(heads, func(h *store.Head) string { return h.ParentStep }),
		column(heads, func(h *store.Head) string { return texts[h.ID] }),
		column(heads, func(h *store.Head) int64 { return h.CreatedAtMS }),
		column(heads, func(h *store.Head) int64 { return h.FinishedAtMS }),
		column(heads, func(h *store.Head) int32 { return int32(h.ErrorCount) }),
		column(heads, func(h *store.Head) string { return h.RootID }),
	).conflict = taken
	if len(names) > 0 {
		sc.add(createTagsSQL, nil, names, values, created, owners)
	}
	return nil
}

// seen are the rows as the decision saw them. A ready row may be held: whoever
// saw it ready means both.
const seen = `unnest($1::text[], $2::integer[], $3::text[]) AS s (key, state, token_hash)`

const stillAsSeen = `t.key = s.key AND CASE WHEN s.state IN (0, 3) THEN t.state IN (0, 3) ELSE t.state = s.state AND t.token_hash = s.token_hash END`

var removeTasksSQL = forRows(`
WITH removed AS (
    DELETE FROM tasks t
    USING ` + seen + `
    WHERE ` + stillAsSeen + `
    RETURNING 1
)
SELECT 1 / CASE WHEN count(*) = cardinality($1::text[]) THEN 1 ELSE 0 END
FROM removed`)

var markTasksSQL = forRows(`
WITH marked AS (
    UPDATE tasks t
    SET state = CASE WHEN t.state = 0 THEN 3 ELSE t.state END, stop = t.stop OR t.state IN (1, 2)
    FROM ` + seen + `
    WHERE ` + stillAsSeen + `
    RETURNING 1
)
SELECT 1 / CASE WHEN count(*) = cardinality($1::text[]) THEN 1 ELSE 0 END
FROM marked`)

// The rows of an execution lie together in the order of keys: 0 follows /.
const removeAllTasksSQL = `
DELETE FROM tasks
WHERE key > $1 || '/' AND key < $1 || '0'`

// leaveQueue removes and marks the rows that are still as they were seen.
func leaveQueue(sc *script, c *changes) {
	if len(c.removed) > 0 {
		guarded(sc, removeTasksSQL, c.removed)
	}
	if len(c.marked) > 0 {
		guarded(sc, markTasksSQL, c.marked)
	}
	for _, id := range c.replaced {
		sc.add(removeAllTasksSQL, nil, id)
	}
}

// guarded adds a statement that must find every row as it was seen. Of several
// rows the database does not tell which one it missed.
func guarded(sc *script, sql rowsSQL, rows []store.TaskRemoval) {
	sc.add(sql.of(len(rows)), nil,
		column(rows, func(r *store.TaskRemoval) string { return r.Key }),
		column(rows, func(r *store.TaskRemoval) int32 { return int32(r.Guard.State) }),
		column(rows, func(r *store.TaskRemoval) string { return r.Guard.TokenHash }),
	).conflict = func(*pgconn.PgError) error {
		if len(rows) == 1 {
			return &store.LostError{Task: rows[0].Key}
		}
		return &store.LostError{}
	}
}

var insertTasksSQL = forRows(`
INSERT INTO tasks (key, execution_id, unit, state, queue, ready_at, ready_seq, due_at,
    task_name, contract_version, workflow, workflow_version, input, attempt, redelivery, timeout_ms,
    session, worker_id, claim_key, secret, token_hash, dispatched_at, deadline_at, suspect_at, stop,
    reported_success, reported_payload, reported_retry_after, reported_at, root_id)
SELECT key, execution_id, unit, state, queue, ready_at, ready_seq, NULLIF(due_at, 0),
    task_name, contract_version, workflow, workflow_version, input, attempt, redelivery, timeout_ms,
    session, worker_id, claim_key, secret, token_hash, dispatched_at, deadline_at, suspect_at, stop,
    reported_success, reported_payload, reported_retry_after, reported_at, NULLIF(root_id, '')
FROM unnest($1::text[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::boolean[], $16::bigint[],
    $17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::bigint[], $23::bigint[], $24::bigint[], $25::boolean[],
    $26::boolean[], $27::text[], $28::bigint[], $29::bigint[], $30::text[])
    AS t (key, execution_id, unit, state, queue, ready_at, ready_seq, due_at,
    task_name, contract_version, workflow, workflow_version, input, attempt, redelivery, timeout_ms,
    session, worker_id, claim_key, secret, token_hash, dispatched_at, deadline_at, suspect_at, stop,
    reported_success, reported_payload, reported_retry_after, reported_at, root_id)`)

// insertTasks puts rows into the queue. A key that is taken means that the
// decision did not know of a row: it was made from something older.
func insertTasks(sc *script, tasks []store.Task) {
	if len(tasks) == 0 {
		return
	}
	text := func(member func(*store.Task) string) any { return column(tasks, member) }
	number := func(member func(*store.Task) int64) any { return column(tasks, member) }
	sc.add(insertTasksSQL.of(len(tasks)), nil,
		text(func(t *store.Task) string { return t.Key }),
		text(func(t *store.Task) string { return t.ExecutionID }),
		text(func(t *store.Task) string { return t.Unit }),
		column(tasks, func(t *store.Task) int32 { return int32(t.State) }),
		text(func(t *store.Task) string { return t.Queue }),
		number(func(t *store.Task) int64 { return t.ReadyAtMS }),
		number(func(t *store.Task) int64 { return int64(t.ReadySeq) }),
		number(func(t *store.Task) int64 { return t.DueAtMS }),
		text(func(t *store.Task) string { return t.TaskName }),
		text(func(t *store.Task) string { return t.ContractVersion }),
		text(func(t *store.Task) string { return t.Workflow }),
		text(func(t *store.Task) string { return t.WorkflowVersion }),
		text(func(t *store.Task) string { return t.Input }),
		number(func(t *store.Task) int64 { return int64(t.Attempt) }),
		column(tasks, func(t *store.Task) bool { return t.Redelivery }),
		number(func(t *store.Task) int64 { return t.TimeoutMS }),
		text(func(t *store.Task) string { return t.Session }),
		text(func(t *store.Task) string { return t.WorkerID }),
		text(func(t *store.Task) string { return t.ClaimKey }),
		text(func(t *store.Task) string { return t.Secret }),
		text(func(t *store.Task) string { return t.TokenHash }),
		number(func(t *store.Task) int64 { return t.DispatchedMS }),
		number(func(t *store.Task) int64 { return t.DeadlineMS }),
		number(func(t *store.Task) int64 { return t.SuspectAtMS }),
		column(tasks, func(t *store.Task) bool { return t.Stop }),
		column(tasks, report(func(r *store.Report) *bool { return &r.Success })),
		column(tasks, report(func(r *store.Report) *string { return &r.Payload })),
		column(tasks, report(func(r *store.Report) *int64 { return r.RetryAfterMS })),
		column(tasks, report(func(r *store.Report) *int64 { return &r.AtMS })),
		text(func(t *store.Task) string { return t.RootID }),
	).conflict = func(e *pgconn.PgError) error {
		return &store.LostError{Task: named(e, tasks, func(t *store.Task) string { return t.Key })}
	}
}

// report is a member of a row's report, NULL where there is none.
func report[V any](member func(*store.Report) *V) func(*store.Task) *V {
	return func(t *store.Task) *V {
		if t.Report == nil {
			return nil
		}
		return member(t.Report)
	}
}

// named finds the row whose key the server's message names, "" where it names none.
func named[R any](e *pgconn.PgError, rows []R, key func(*R) string) string {
	for i := range rows {
		if k := key(&rows[i]); strings.Contains(e.Detail, "=("+k+")") {
			return k
		}
	}
	return ""
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

func (r *eventRows) insert(sc *script) {
	if len(r.ids) > 0 {
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
