package sqlite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"slices"
	"strings"

	"perigee/engine/history"
	"perigee/store"
)

const taskColumns = `key, execution_id, unit, state, queue, ready_at, ready_seq, COALESCE(due_at, 0),
task_name, contract_version, workflow, workflow_version, input, attempt, redelivery, timeout_ms,
session, worker_id, claim_key, secret, token_hash, dispatched_at, deadline_at, suspect_at, stop,
reported_success, reported_payload, reported_retry_after, reported_at, COALESCE(root_id, '')`

// scanTask reads taskColumns.
func scanTask(rows *sql.Rows) (store.Task, error) {
	var t store.Task
	var state, readySeq, attempt int64
	var success sql.NullBool
	var payload sql.NullString
	var retryAfter *int64
	var reportedAt sql.NullInt64
	err := rows.Scan(&t.Key, &t.ExecutionID, &t.Unit, &state, &t.Queue, &t.ReadyAtMS, &readySeq, &t.DueAtMS,
		&t.TaskName, &t.ContractVersion, &t.Workflow, &t.WorkflowVersion, &t.Input, &attempt, &t.Redelivery, &t.TimeoutMS,
		&t.Session, &t.WorkerID, &t.ClaimKey, &t.Secret, &t.TokenHash, &t.DispatchedMS, &t.DeadlineMS, &t.SuspectAtMS, &t.Stop,
		&success, &payload, &retryAfter, &reportedAt, &t.RootID)
	t.State, t.ReadySeq, t.Attempt = store.TaskState(state), uint64(readySeq), uint32(attempt)
	if reportedAt.Valid {
		t.Report = &store.Report{
			Key: t.Key, TokenHash: t.TokenHash, Success: success.Bool, Payload: payload.String,
			RetryAfterMS: retryAfter, AtMS: reportedAt.Int64,
		}
	}
	return t, err
}

// builtin is how the names of sessions begin that need no registration.
const builtin = "builtin:"

// Claim hands ready tasks to a worker session. A poll that finds nothing to
// write does not disturb the writer.
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.Claimed, error) {
	now := s.now(r.NowMS)
	var v view
	if s.readers != nil {
		err := s.snapshot(ctx, "claim tasks", func(c *conn) (err error) {
			v, err = look(c, &r, now)
			return err
		})
		if err != nil {
			return store.Claimed{}, err
		}
		if !v.asleep && len(v.found) == 0 {
			return v.claimed, nil
		}
	}
	err := s.write(ctx, "claim tasks", func(c *conn) (err error) {
		if v, err = look(c, &r, now); err != nil {
			return err
		}
		if v.asleep {
			if _, err := c.exec(seenSQL, now, r.Session, now); err != nil {
				return err
			}
		}
		return dispatch(c, &r, &v)
	})
	if err != nil {
		return store.Claimed{}, err
	}
	return v.claimed, nil
}

// view is what a poll sees before it writes.
type view struct {
	claimed store.Claimed // the answer, but for the tasks found
	asleep  bool          // the session's last_seen has to be moved
	found   []candidate   // oldest first
}

// candidate is a ready task that a poll may take.
type candidate struct {
	key, execution string
	readyAt        int64
	readySeq       int64
}

const lastSeenSQL = `
SELECT last_seen
FROM worker_sessions
WHERE hash = ?`

// A row keeps its claim key when its result is reported: only what is still
// dispatched is handed out again.
const heldUnderSQL = `
SELECT ` + taskColumns + `
FROM tasks
WHERE session = ? AND session <> '' AND claim_key = ? AND state = 1
ORDER BY ready_at, ready_seq, key`

// look finds what a poll gets, without writing.
func look(c *conn, r *store.ClaimRequest, now int64) (v view, err error) {
	v.claimed.NowMS, v.claimed.Known = now, true
	if !strings.HasPrefix(r.Session, builtin) {
		var lastSeen int64
		v.claimed.Known, err = c.one(lastSeenSQL, []any{&lastSeen}, r.Session)
		if err != nil || !v.claimed.Known {
			return v, err
		}
		// A sixth of the session's time-out is half a heartbeat's interval.
		v.asleep = lastSeen < now-r.SessionTimeoutMS/6
	}
	if r.ClaimKey != "" {
		err := c.each(heldUnderSQL, appendTo(&v.claimed.Tasks, scanTask), r.Session, r.ClaimKey)
		v.claimed.Repeated = len(v.claimed.Tasks) > 0
		v.claimed.More = v.claimed.Repeated // nobody has looked
		if err != nil || v.claimed.Repeated {
			return v, err
		}
	}
	if v.found, v.claimed.More, err = candidates(c, r.Queues, len(r.Secrets), now); err != nil {
		return v, err
	}
	v.claimed.DueIDs, err = dueIDs(c, now)
	return v, err
}

// One descent of the queue's index, in its order. Rows whose queue time-out has
// passed are the decider's.
const candidatesSQL = `
SELECT key, execution_id, ready_at, ready_seq
FROM tasks
WHERE queue = ? AND state = 0 AND (due_at IS NULL OR due_at > ?)
ORDER BY ready_at, ready_seq, key
LIMIT ?`

// candidates merges the heads of the queues. more: there are more than n.
func candidates(c *conn, queues []string, n int, now int64) (found []candidate, more bool, err error) {
	if n == 0 {
		return nil, true, nil
	}
	for _, queue := range queues {
		err := c.each(candidatesSQL, appendTo(&found, func(rows *sql.Rows) (f candidate, err error) {
			err = rows.Scan(&f.key, &f.execution, &f.readyAt, &f.readySeq)
			return f, err
		}), queue, now, n+1)
		if err != nil {
			return nil, false, err
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.readyAt, b.readyAt), cmp.Compare(a.readySeq, b.readySeq), cmp.Compare(a.key, b.key))
	})
	found = slices.CompactFunc(found, func(a, b candidate) bool { return a.key == b.key }) // a queue named twice
	return found[:min(n, len(found))], len(found) > n, nil
}

const dueIDsSQL = `
SELECT execution_id
FROM (
    SELECT id AS execution_id, due_at AS moment
    FROM executions
    WHERE due_at <= ?1 AND due_at IS NOT NULL AND finished_at IS NULL
    UNION ALL
    SELECT execution_id, due_at
    FROM tasks
    WHERE due_at <= ?1 AND due_at IS NOT NULL AND state < 2
)
GROUP BY execution_id
ORDER BY MIN(moment), execution_id
LIMIT 3`

func dueIDs(c *conn, now int64) ([]string, error) {
	var ids []string
	err := c.each(dueIDsSQL, appendTo(&ids, scanText), now)
	return ids, err
}

func scanText(rows *sql.Rows) (text string, err error) {
	err = rows.Scan(&text)
	return text, err
}

// The event's time is never below the head's last one. due_at stays: a dispatch
// decides nothing.
const raiseHeadSQL = `
UPDATE executions
SET last_seq = last_seq + ?, last_at = MAX(last_at, ?)
WHERE id = ?
RETURNING last_seq, last_at`

// dispatch gives the tasks found to the session and appends their events.
func dispatch(c *conn, r *store.ClaimRequest, v *view) error {
	type head struct{ nextSeq, at int64 }
	heads := map[string]*head{}
	counts := map[string]int64{}
	for _, f := range v.found {
		counts[f.execution]++
	}
	for i, f := range v.found {
		h := heads[f.execution]
		if h == nil {
			h = &head{}
			n := counts[f.execution]
			if _, err := c.changing(raiseHeadSQL, []any{&h.nextSeq, &h.at}, n, v.claimed.NowMS, f.execution); err != nil {
				return err
			}
			h.nextSeq -= n
			heads[f.execution] = h
		}
		h.nextSeq++
		task, err := assign(c, r, f.key, r.Secrets[i], h.at, v.claimed.NowMS)
		if err != nil {
			return err
		}
		if err := appendEvents(c, f.execution, []store.Event{dispatched(task, h.nextSeq)}); err != nil {
			return err
		}
		v.claimed.Tasks = append(v.claimed.Tasks, task)
		v.claimed.Seqs = append(v.claimed.Seqs, uint64(h.nextSeq))
	}
	return nil
}

const assignSQL = `
UPDATE tasks
SET state = 1, session = ?2, worker_id = ?3, claim_key = ?4, secret = ?5, token_hash = ?6, dispatched_at = ?7,
    deadline_at = CASE WHEN timeout_ms > 0 THEN ?7 + timeout_ms ELSE 0 END,
    due_at = CASE WHEN timeout_ms > 0 THEN MIN(?7 + timeout_ms, ?8) ELSE ?8 END,
    suspect_at = 0, stop = 0
WHERE key = ?1
RETURNING ` + taskColumns

// assign makes a row dispatched. Its next look is at the deadline, or earlier,
// when a worker would have been silent for too long.
func assign(c *conn, r *store.ClaimRequest, key, secret string, at, now int64) (task store.Task, err error) {
	sum := sha256.Sum256([]byte(secret))
	c.changed(true)
	err = c.each(assignSQL, func(rows *sql.Rows) error {
		task, err = scanTask(rows)
		return err
	}, key, r.Session, r.WorkerID, r.ClaimKey, secret, hex.EncodeToString(sum[:]), at, now+r.SessionTimeoutMS)
	return task, err
}

// dispatched is the event of a row that was just assigned.
func dispatched(t store.Task, seq int64) store.Event {
	e := t.Dispatch()
	return store.Event{Seq: uint64(seq), Type: string(e.Type()), AtMS: t.DispatchedMS, Data: string(history.AppendFields(nil, e))}
}
