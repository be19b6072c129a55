package sqlite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perigee/store"
)

// Commit writes a decision, all or nothing.
func (s *Store) Commit(ctx context.Context, d store.Commit) error {
	return s.write(ctx, "commit", func(c *conn) error { return apply(c, &d) })
}

// apply writes a decision in the caller's transaction, guards first.
func apply(c *conn, d *store.Commit) error {
	if err := writeHead(c, d); err != nil {
		return err
	}
	if err := leaveQueue(c, d); err != nil {
		return err
	}
	if err := appendEvents(c, d.Head.ID, d.Events); err != nil {
		return err
	}
	for i := range d.Inserted {
		if err := insertTask(c, &d.Inserted[i]); err != nil {
			return err
		}
	}
	if err := putSnapshot(c, d.Head.ID, d.Snapshot); err != nil {
		return err
	}
	for i := range d.Children {
		if err := createChild(c, &d.Children[i]); err != nil {
			return err
		}
	}
	return writeMessages(c, d)
}

// Where only the position moves: SQLite writes each index of a column that a
// statement sets, also where its value stays.
const moveOnSQL = `
UPDATE executions
SET last_seq = ?, last_at = ?
WHERE id = ? AND incarnation = ? AND last_seq = ?
    AND status = ? AND due_at IS NULLIF(?, 0) AND finished_at IS NULLIF(?, 0) AND error_count = ?`

const moveHeadSQL = `
UPDATE executions
SET status = ?, last_seq = ?, last_at = ?, due_at = NULLIF(?, 0), finished_at = NULLIF(?, 0), error_count = ?
WHERE id = ? AND incarnation = ? AND last_seq = ?`

// writeHead creates the head or moves it on, if it is still where it was seen.
func writeHead(c *conn, d *store.Commit) error {
	h := &d.Head
	if d.Seen.Incarnation == 0 {
		err := createHead(c, h)
		if isTaken(err) {
			return &store.LostError{Exists: true}
		}
		return err
	}
	n, err := c.exec(moveOnSQL, int64(h.LastSeq), h.LastAtMS, h.ID, d.Seen.Incarnation, int64(d.Seen.Seq),
		h.Status, h.DueAtMS, h.FinishedAtMS, h.ErrorCount)
	if err != nil || n > 0 {
		return err
	}
	n, err = c.exec(moveHeadSQL, h.Status, int64(h.LastSeq), h.LastAtMS, h.DueAtMS, h.FinishedAtMS, h.ErrorCount,
		h.ID, d.Seen.Incarnation, int64(d.Seen.Seq))
	if err == nil && n == 0 {
		return &store.LostError{}
	}
	return err
}

const createHeadSQL = `
INSERT INTO executions (id, incarnation, workflow, version, definition_hash, status, last_seq, last_at,
    due_at, parent_id, parent_step, tags, created_at, finished_at, error_count, root_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, 0), ?, ?, ?, ?, NULLIF(?, 0), ?, NULLIF(?, ''))`

const tagSQL = `
INSERT INTO execution_tags (name, value, created_at, execution_id)
VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING`

// createHead inserts a head and its tags.
func createHead(c *conn, h *store.Head) error {
	tags, err := tagsText(h.Tags)
	if err != nil {
		return err
	}
	_, err = c.exec(createHeadSQL, h.ID, h.Incarnation, h.Workflow, h.Version, h.DefinitionHash, h.Status, int64(h.LastSeq), h.LastAtMS,
		h.DueAtMS, h.ParentID, h.ParentStep, tags, h.CreatedAtMS, h.FinishedAtMS, h.ErrorCount, h.RootID)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(h.Tags)) {
		if _, err := c.exec(tagSQL, name, h.Tags[name], h.CreatedAtMS, h.ID); err != nil {
			return err
		}
	}
	return nil
}

// A ready row may be held: whoever saw it ready means both.
const removeReadySQL = `
DELETE FROM tasks
WHERE key = ? AND state IN (0, 3)`

const removeIssuedSQL = `
DELETE FROM tasks
WHERE key = ? AND state = ? AND token_hash = ?`

const holdReadySQL = `
UPDATE tasks
SET state = 3
WHERE key = ? AND state IN (0, 3)`

const stopIssuedSQL = `
UPDATE tasks
SET stop = 1
WHERE key = ? AND state = ? AND token_hash = ?`

const removeAllSQL = `
DELETE FROM tasks
WHERE execution_id = ?`

// leaveQueue removes and marks the rows that are still as they were seen.
func leaveQueue(c *conn, d *store.Commit) error {
	for i := range d.Removed {
		if err := guarded(c, d.Removed[i].Key, d.Removed[i].Guard, removeReadySQL, removeIssuedSQL); err != nil {
			return err
		}
	}
	for i := range d.Marked {
		if err := guarded(c, d.Marked[i].Key, d.Marked[i].Guard, holdReadySQL, stopIssuedSQL); err != nil {
			return err
		}
	}
	if !d.ReplaceTasks {
		return nil
	}
	_, err := c.exec(removeAllSQL, d.Head.ID)
	return err
}

// guarded runs the statement that fits the guard; a row that it does not find
// is a lost race.
func guarded(c *conn, key string, g store.Guard, ready, issued string) (err error) {
	var n int64
	switch g.State {
	case store.TaskReady, store.TaskHeld:
		n, err = c.exec(ready, key)
	default:
		n, err = c.exec(issued, key, int(g.State), g.TokenHash)
	}
	if err == nil && n == 0 {
		return &store.LostError{Task: key}
	}
	return err
}

const appendEventsSQL = `
INSERT INTO events (execution_id, seq, type, at, data)
VALUES `

// eventsAtOnce bounds the events of one statement. Most commits have no more.
const eventsAtOnce = 4

// appendEventsOf are the texts for one event to eventsAtOnce.
var appendEventsOf = func() (texts [eventsAtOnce + 1]string) {
	for n := 1; n <= eventsAtOnce; n++ {
		texts[n] = appendEventsSQL + strings.Repeat("(?, ?, ?, ?, ?), ", n-1) + "(?, ?, ?, ?, ?)"
	}
	return texts
}()

func appendEvents(c *conn, id string, events []store.Event) error {
	for few := range slices.Chunk(events, eventsAtOnce) {
		args := make([]any, 0, 5*eventsAtOnce)
		for i := range few {
			e := &few[i]
			args = append(args, id, int64(e.Seq), e.Type, e.AtMS, e.Data)
		}
		if _, err := c.exec(appendEventsOf[len(few)], args...); err != nil {
			return fmt.Errorf("append events from %d of %s: %w", few[0].Seq, id, err)
		}
	}
	return nil
}

const insertTaskSQL = `
INSERT INTO tasks (key, execution_id, unit, state, queue, ready_at, ready_seq, due_at,
    task_name, contract_version, workflow, workflow_version, input, attempt, redelivery, timeout_ms,
    session, worker_id, claim_key, secret, token_hash, dispatched_at, deadline_at, suspect_at, stop,
    reported_success, reported_payload, reported_retry_after, reported_at, root_id)
VALUES (?, ?, ?, ?, ?, ?, ?, NULLIF(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, ''))`

func insertTask(c *conn, t *store.Task) error {
	var success, payload, retryAfter, at any
	if r := t.Report; r != nil {
		success, payload, at = r.Success, r.Payload, r.AtMS
		if r.RetryAfterMS != nil {
			retryAfter = *r.RetryAfterMS
		}
	}
	_, err := c.exec(insertTaskSQL, t.Key, t.ExecutionID, t.Unit, int(t.State), t.Queue, t.ReadyAtMS, int64(t.ReadySeq), t.DueAtMS,
		t.TaskName, t.ContractVersion, t.Workflow, t.WorkflowVersion, t.Input, int64(t.Attempt), t.Redelivery, t.TimeoutMS,
		t.Session, t.WorkerID, t.ClaimKey, t.Secret, t.TokenHash, t.DispatchedMS, t.DeadlineMS, t.SuspectAtMS, t.Stop,
		success, payload, retryAfter, at, t.RootID)
	if isTaken(err) {
		return &store.LostError{Task: t.Key}
	}
	if err != nil {
		return fmt.Errorf("insert task %s: %w", t.Key, err)
	}
	return nil
}

const putSnapshotSQL = `
INSERT INTO snapshots (execution_id, seq, format, data)
VALUES (?, ?, ?, ?)
ON CONFLICT (execution_id) DO UPDATE
SET seq = excluded.seq, format = excluded.format, data = excluded.data`

func putSnapshot(c *conn, id string, s *store.Snapshot) error {
	if s == nil {
		return nil
	}
	_, err := c.exec(putSnapshotSQL, id, int64(s.Seq), s.Format, s.Data)
	return err
}

func createChild(c *conn, child *store.NewExecution) error {
	err := createHead(c, &child.Head)
	if isTaken(err) {
		return &store.ChildExistsError{ID: child.Head.ID}
	}
	if err != nil {
		return err
	}
	return appendEvents(c, child.Head.ID, child.Events)
}

// The id is deterministic: a second row of it is the same message.
const putMessageSQL = `
INSERT INTO outbox (id, source, kind, target, unit, payload, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING`

const deleteMessageSQL = `
DELETE FROM outbox
WHERE id = ?`

func writeMessages(c *conn, d *store.Commit) error {
	for i := range d.Outbox {
		m := &d.Outbox[i]
		if _, err := c.exec(putMessageSQL, m.ID, m.Source, m.Kind, m.Target, m.Unit, m.Payload, m.CreatedAtMS); err != nil {
			return err
		}
	}
	return deleteMessages(c, d.Delivered)
}

func deleteMessages(c *conn, ids []string) error {
	for _, id := range ids {
		if _, err := c.exec(deleteMessageSQL, id); err != nil {
			return err
		}
	}
	return nil
}

// WithHeadLocked runs load, decide and apply in one transaction. SQLite's write
// lock is the lock on the head, and on all others: decide should be quick. It
// may be called a second time, see writer.
func (s *Store) WithHeadLocked(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	return s.locked(ctx, "commit with the head locked", r, decide)
}

func (s *Store) locked(ctx context.Context, operation string, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	var panicked any
	err := s.write(ctx, operation, func(c *conn) (err error) {
		// A panic belongs to the caller, not to the writer.
		defer func() {
			if panicked = recover(); panicked != nil {
				err = fmt.Errorf("decide panicked: %v", panicked)
			}
		}()
		r := r
		r.NowMS = s.now(r.NowMS)
		loaded, err := load(c, r)
		if err != nil {
			return err
		}
		d, err := decide(loaded)
		if err != nil || d == nil {
			return err
		}
		return apply(c, d)
	})
	if panicked != nil {
		panic(panicked)
	}
	return err
}
