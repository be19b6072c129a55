package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"perigee/store"
)

const headColumns = `id, incarnation, workflow, version, definition_hash, status, last_seq, last_at,
COALESCE(due_at, 0), parent_id, parent_step, tags, created_at, COALESCE(finished_at, 0), error_count, COALESCE(root_id, '')`

// scanHead reads headColumns.
func scanHead(rows *sql.Rows) (store.Head, error) {
	var h store.Head
	var seq int64 // the driver's type: scanned without a detour over text
	var tags string
	err := rows.Scan(&h.ID, &h.Incarnation, &h.Workflow, &h.Version, &h.DefinitionHash, &h.Status, &seq, &h.LastAtMS,
		&h.DueAtMS, &h.ParentID, &h.ParentStep, &tags, &h.CreatedAtMS, &h.FinishedAtMS, &h.ErrorCount, &h.RootID)
	h.LastSeq = uint64(seq)
	if err == nil && tags != noTags {
		err = fromJSON("tags of execution "+h.ID, tags, &h.Tags)
	}
	return h, err
}

const noTags = `{}`

// tagsText is the column's form of tags.
func tagsText(tags map[string]string) (string, error) {
	if len(tags) == 0 {
		return noTags, nil
	}
	text, err := json.Marshal(tags)
	return string(text), err
}

// scanEvent reads seq, type, at and data.
func scanEvent(rows *sql.Rows) (store.Event, error) {
	var e store.Event
	var seq int64
	err := rows.Scan(&seq, &e.Type, &e.AtMS, &e.Data)
	e.Seq = uint64(seq)
	return e, err
}

// Load reads what a call needs of an execution, in one snapshot.
func (s *Store) Load(ctx context.Context, r store.LoadRequest) (store.Loaded, error) {
	r.NowMS = s.now(r.NowMS)
	var loaded store.Loaded
	err := s.snapshot(ctx, "load execution", func(c *conn) (err error) {
		loaded, err = load(c, r)
		return err
	})
	if err != nil {
		return store.Loaded{}, err
	}
	return loaded, nil
}

const headSQL = `
SELECT ` + headColumns + `
FROM executions
WHERE id = ?`

// load reads in the caller's transaction.
func load(c *conn, r store.LoadRequest) (store.Loaded, error) {
	l := store.Loaded{NowMS: r.NowMS}
	err := c.each(headSQL, func(rows *sql.Rows) error {
		h, err := scanHead(rows)
		l.Head = &h
		return err
	}, r.ID)
	if err != nil || l.Head == nil {
		return l, err
	}
	if err := loadHistory(c, r, &l); err != nil {
		return l, err
	}
	if l.Reported, err = reported(c, r.ID); err != nil || !r.DueTasks {
		return l, err
	}
	l.Due, err = dueTasks(c, r.ID, r.NowMS)
	return l, err
}

const snapshotSQL = `
SELECT seq, format, data
FROM snapshots
WHERE execution_id = ?1 AND ?2 IN (0, format)`

const eventsAfterSQL = `
SELECT seq, type, at, data
FROM events
WHERE execution_id = ? AND seq > ?
ORDER BY seq`

// loadHistory reads the events after the known state, where that is usable,
// or else the snapshot and the events after it.
func loadHistory(c *conn, r store.LoadRequest, l *store.Loaded) error {
	after := r.Known.Seq
	if r.Known.Incarnation != l.Head.Incarnation || r.Known.Seq > l.Head.LastSeq {
		var seq int64
		var snapshot store.Snapshot
		found, err := c.one(snapshotSQL, []any{&seq, &snapshot.Format, &snapshot.Data}, r.ID, r.SnapshotFormat)
		if err != nil {
			return err
		}
		snapshot.Seq, after = uint64(seq), uint64(seq)
		if found {
			l.Snapshot = &snapshot
		}
	}
	if after == l.Head.LastSeq {
		return nil
	}
	return c.each(eventsAfterSQL, appendTo(&l.Events, scanEvent), r.ID, int64(after))
}

const reportedSQL = `
SELECT key, token_hash, reported_success, reported_payload, reported_retry_after, reported_at
FROM tasks
WHERE execution_id = ? AND state = 2
ORDER BY reported_at, key`

// reported reads an execution's inbox.
func reported(c *conn, id string) ([]store.Report, error) {
	var reports []store.Report
	err := c.each(reportedSQL, appendTo(&reports, func(rows *sql.Rows) (r store.Report, err error) {
		err = rows.Scan(&r.Key, &r.TokenHash, &r.Success, &r.Payload, &r.RetryAfterMS, &r.AtMS)
		return r, err
	}), id)
	return reports, err
}

const dueTasksSQL = `
SELECT t.key, t.unit, t.token_hash, t.session, t.worker_id, t.dispatched_at, t.deadline_at, t.suspect_at, COALESCE(s.last_seen, 0)
FROM tasks t
LEFT JOIN worker_sessions s ON s.hash = t.session
WHERE t.execution_id = ? AND t.state = 1 AND t.due_at <= ?
ORDER BY t.key`

// dueTasks reads the dispatched rows whose moment has passed.
func dueTasks(c *conn, id string, nowMS int64) ([]store.DueTask, error) {
	var tasks []store.DueTask
	err := c.each(dueTasksSQL, appendTo(&tasks, func(rows *sql.Rows) (d store.DueTask, err error) {
		err = rows.Scan(&d.Key, &d.Unit, &d.TokenHash, &d.Session, &d.WorkerID, &d.DispatchedMS, &d.DeadlineMS, &d.SuspectAtMS, &d.LastSeenMS)
		return d, err
	}), id, nowMS)
	return tasks, err
}
