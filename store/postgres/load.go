package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"perigee/store"
)

const headColumns = `id, incarnation, workflow, version, definition_hash, status, last_seq, last_at,
COALESCE(due_at, 0), parent_id, parent_step, tags, created_at, COALESCE(finished_at, 0), error_count, COALESCE(root_id, '')`

// scanHead reads headColumns.
func scanHead(rows pgx.Rows) (store.Head, error) {
	var h store.Head
	var tags string
	err := rows.Scan(&h.ID, &h.Incarnation, &h.Workflow, &h.Version, &h.DefinitionHash, &h.Status, &h.LastSeq, &h.LastAtMS,
		&h.DueAtMS, &h.ParentID, &h.ParentStep, &tags, &h.CreatedAtMS, &h.FinishedAtMS, &h.ErrorCount, &h.RootID)
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
	return toJSON(tags)
}

// scanEvent reads seq, type, at and data.
func scanEvent(rows pgx.Rows) (store.Event, error) {
	var e store.Event
	err := rows.Scan(&e.Seq, &e.Type, &e.AtMS, &e.Data)
	return e, err
}

// beginReadSQL makes the statements of a load see one moment: in READ
// COMMITTED each would see its own, and a commit between two of them would
// give a head without its events. Sent in the batch, it costs no round trip.
const beginReadSQL = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`

const commitSQL = `COMMIT`

// Load reads what a call needs of an execution, in one snapshot.
func (s *Store) Load(ctx context.Context, r store.LoadRequest) (store.Loaded, error) {
	var l store.Loaded
	err := s.read(ctx, "load execution", func(sc *script) {
		l = store.Loaded{}
		sc.add(beginReadSQL, nil)
		load(sc, r, headSQL, &l)
		sc.add(commitSQL, nil)
	})
	if err != nil {
		return store.Loaded{}, err
	}
	return l, nil
}

const headSQL = `
SELECT ` + headColumns + `
FROM executions
WHERE id = $1`

// known says whether the state that the caller has, of incarnation $2 and seq
// $3, is a point of the history of the head e.
const known = `(e.incarnation = $2 AND e.last_seq >= $3)`

const snapshotSQL = `
SELECT s.seq, s.format, s.data
FROM executions e
JOIN snapshots s ON s.execution_id = e.id
WHERE e.id = $1 AND NOT ` + known + ` AND $4 IN (0, s.format)`

// The events' key gives them in order.
const eventsAfterSQL = `
SELECT seq, type, at, data
FROM events
WHERE execution_id = $1 AND seq > (
    SELECT CASE WHEN ` + known + ` THEN $3 ELSE COALESCE((SELECT s.seq FROM snapshots s WHERE s.execution_id = e.id AND $4 IN (0, s.format)), 0) END
    FROM executions e
    WHERE e.id = $1
)
ORDER BY seq`

const reportedSQL = `
SELECT key, token_hash, reported_success, reported_payload, reported_retry_after, reported_at
FROM tasks
WHERE execution_id = $1 AND state = 2
ORDER BY reported_at, key`

// A session that is not there was last seen never. The moment is a subquery so
// that it is read once and the index can be entered with it.
const dueTasksSQL = `
SELECT t.key, t.unit, t.token_hash, t.session, t.worker_id, t.dispatched_at, t.deadline_at, t.suspect_at, COALESCE(s.last_seen, 0)
FROM tasks t
LEFT JOIN worker_sessions s ON s.hash = t.session
WHERE t.execution_id = $2 AND t.state = 1 AND t.due_at <= (SELECT ` + nowSQL + `)
ORDER BY t.key`

// load reads in the transaction that the script has begun. The reports come
// before the overdue attempts, so that an attempt whose result comes in between
// is in neither list where the statements see different moments (under a lock
// on the head, in READ COMMITTED). The clock comes last: what is due is due by it.
func load(sc *script, r store.LoadRequest, headSQL string, l *store.Loaded) {
	sc.add(headSQL, func(rows pgx.Rows) error {
		h, err := scanHead(rows)
		l.Head = &h
		return err
	}, r.ID)
	sc.add(snapshotSQL, func(rows pgx.Rows) error {
		l.Snapshot = &store.Snapshot{}
		return rows.Scan(&l.Snapshot.Seq, &l.Snapshot.Format, &l.Snapshot.Data)
	}, r.ID, r.Known.Incarnation, r.Known.Seq, r.SnapshotFormat)
	sc.add(eventsAfterSQL, appendTo(&l.Events, scanEvent), r.ID, r.Known.Incarnation, r.Known.Seq, r.SnapshotFormat)
	sc.add(reportedSQL, appendTo(&l.Reported, scanReport), r.ID)
	if r.DueTasks {
		sc.add(dueTasksSQL, appendTo(&l.Due, scanDueTask), r.NowMS, r.ID)
	}
	if l.NowMS = r.NowMS; l.NowMS == 0 {
		sc.add(momentSQL, one(&l.NowMS), 0)
	}
}

// scanReport reads a row of reportedSQL.
func scanReport(rows pgx.Rows) (store.Report, error) {
	var r store.Report
	err := rows.Scan(&r.Key, &r.TokenHash, &r.Success, &r.Payload, &r.RetryAfterMS, &r.AtMS)
	return r, err
}

// scanDueTask reads a row of dueTasksSQL.
func scanDueTask(rows pgx.Rows) (store.DueTask, error) {
	var d store.DueTask
	err := rows.Scan(&d.Key, &d.Unit, &d.TokenHash, &d.Session, &d.WorkerID, &d.DispatchedMS, &d.DeadlineMS, &d.SuspectAtMS, &d.LastSeenMS)
	return d, err
}
