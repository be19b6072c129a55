package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"perigee/engine/exactjson"
	"perigee/store"
)

const taskColumns = `key, execution_id, unit, state, queue, ready_at, ready_seq, due_at,
task_name, contract_version, workflow, workflow_version, input, attempt, redelivery, timeout_ms,
session, worker_id, claim_key, secret, token_hash, dispatched_at, deadline_at, suspect_at, stop,
reported_success, reported_payload, reported_retry_after, reported_at, root_id`

// scanTask reads taskColumns after others. A row of NULLs is a task without a key.
func scanTask(rows pgx.Rows, others ...any) (store.Task, error) {
	var t store.Task
	var state, readySeq, attempt zeronull.Int8
	var redelivery, stop, success *bool
	var payload zeronull.Text
	var retryAfter, reportedAt *int64
	text, number := func(s *string) any { return (*zeronull.Text)(s) }, func(n *int64) any { return (*zeronull.Int8)(n) }
	err := rows.Scan(append(others,
		text(&t.Key), text(&t.ExecutionID), text(&t.Unit), &state, text(&t.Queue), number(&t.ReadyAtMS), &readySeq, number(&t.DueAtMS),
		text(&t.TaskName), text(&t.ContractVersion), text(&t.Workflow), text(&t.WorkflowVersion), text(&t.Input), &attempt, &redelivery, number(&t.TimeoutMS),
		text(&t.Session), text(&t.WorkerID), text(&t.ClaimKey), text(&t.Secret), text(&t.TokenHash),
		number(&t.DispatchedMS), number(&t.DeadlineMS), number(&t.SuspectAtMS), &stop,
		&success, &payload, &retryAfter, &reportedAt, text(&t.RootID))...)
	t.State, t.ReadySeq, t.Attempt = store.TaskState(state), uint64(readySeq), uint32(attempt)
	t.Redelivery, t.Stop = redelivery != nil && *redelivery, stop != nil && *stop
	if reportedAt != nil {
		t.Report = &store.Report{
			Key: t.Key, TokenHash: t.TokenHash, Success: success != nil && *success, Payload: string(payload),
			RetryAfterMS: retryAfter, AtMS: *reportedAt,
		}
	}
	return t, err
}

// builtin is how the names of sessions begin that need no registration.
const builtin = "builtin:"

// How many ready tasks a claim looks at: enough that some of their heads are
// free, few enough that an empty poll stays cheap. Where all of them are busy,
// as those of one wide fan-out are, it looks once more, further, but not without
// end: what is behind them has to wait for its turn anyway.
const (
	candidates = 64
	further    = 1_024
)

// The claim is one statement. Its parts see one snapshot, run in no order, and
// a row is changed by one of them only.
//
//	$1 now  $2 session  $3 whether it is builtin  $4 worker  $5 claim key  $6 queues
//	$7 secrets  $8 their hashes  $9 session's time-out
//	$10, $11 worker and session as JSON strings  $12 executions to leave out
//	$13 how far to look
const (
	claimLookSQL = `
WITH clock AS MATERIALIZED (
    SELECT ` + nowSQL + ` AS now
), me AS MATERIALIZED (
    SELECT last_seen
    FROM worker_sessions
    WHERE hash = $2
    UNION ALL
    SELECT NULL
    WHERE $3::boolean
), held AS MATERIALIZED (
    SELECT 0::bigint AS seq, ` + taskColumns + `
    FROM tasks
    WHERE session = $2 AND claim_key = $5 AND $5::text <> '' AND state = 1 AND EXISTS (SELECT 1 FROM me)
), ready AS MATERIALIZED (
    -- For each queue one descent of its index, in order. Rows whose queue
    -- time-out has passed are the decider's.
    SELECT r.key, r.execution_id, r.ready_at, r.ready_seq
    FROM unnest($6::text[]) AS q (queue)
    CROSS JOIN LATERAL (
        SELECT f.key, f.execution_id, f.ready_at, f.ready_seq
        FROM (
            SELECT t.key, t.execution_id, t.ready_at, t.ready_seq
            FROM tasks t
            WHERE t.queue = q.queue AND t.state = 0 AND (t.due_at IS NULL OR t.due_at > (SELECT now FROM clock))
            ORDER BY t.ready_at, t.ready_seq, t.key
            LIMIT $13::bigint
        ) f
        WHERE f.execution_id <> ALL ($12::text[])
        ORDER BY f.ready_at, f.ready_seq, f.key
        LIMIT 64
    ) r
    WHERE cardinality($7::text[]) > 0 AND EXISTS (SELECT 1 FROM me) AND NOT EXISTS (SELECT 1 FROM held)
    ORDER BY r.ready_at, r.ready_seq, r.key
    LIMIT 64
)`

	// The loop over the candidates keeps their order and ends with the last
	// secret. For each one the head is locked, then the task under it; whoever
	// holds one of them is passed by. A lock returns the row's newest version,
	// which may be younger than the statement's snapshot. The task names its head
	// so that it comes second; not as a bare column, for which the planner might
	// walk all tasks of the execution.
	claimPickSQL = `, picked AS MATERIALIZED (
    SELECT r.key, r.execution_id, r.ready_at, r.ready_seq, h.last_seq, h.last_at, t.unit, t.attempt, t.timeout_ms
    FROM ready r
    CROSS JOIN LATERAL (
        SELECT e.id, e.last_seq, e.last_at
        FROM executions e
        WHERE e.id = r.execution_id
        FOR UPDATE SKIP LOCKED
    ) h
    CROSS JOIN LATERAL (
        SELECT t.unit, t.attempt, t.timeout_ms
        FROM tasks t
        WHERE t.key = r.key AND t.execution_id || '' = h.id AND t.state = 0
        FOR UPDATE SKIP LOCKED
    ) t
    LIMIT cardinality($7::text[])
), awake AS (
    -- A sixth of the session's time-out is half a heartbeat's interval.
    UPDATE worker_sessions
    SET last_seen = (SELECT now FROM clock)
    WHERE hash = (
        SELECT hash
        FROM worker_sessions
        WHERE hash = $2 AND last_seen < (SELECT now FROM clock) - $9::bigint / 6
        FOR UPDATE SKIP LOCKED
    )
    RETURNING 1
)`

	// Without locks the transaction fails where another claims the same row.
	// When that happens again ($14 > 0) it takes some of the first few at random.
	claimPickWithoutLocksSQL = `, few AS MATERIALIZED (
    SELECT key, execution_id, ready_at, ready_seq
    FROM ready
    ORDER BY ready_at, ready_seq, key
    LIMIT cardinality($7::text[]) + $14::integer
), picked AS MATERIALIZED (
    SELECT r.key, r.execution_id, r.ready_at, r.ready_seq, h.last_seq, h.last_at, t.unit, t.attempt, t.timeout_ms
    FROM (SELECT * FROM few ORDER BY random() LIMIT cardinality($7::text[])) r
    JOIN executions h ON h.id = r.execution_id
    JOIN tasks t ON t.key = r.key AND t.state = 0
), awake AS (
    UPDATE worker_sessions
    SET last_seen = (SELECT now FROM clock)
    WHERE hash = $2 AND last_seen < (SELECT now FROM clock) - $9::bigint / 6
    RETURNING 1
)`

	// An event's time is never below the head's last one; the worker's silence
	// counts from the clock. The head's due moment stays: a dispatch decides
	// nothing.
	claimWriteSQL = `, numbered AS MATERIALIZED (
    SELECT p.*, GREATEST(c.now, p.last_at) AS at,
        row_number() OVER (ORDER BY p.ready_at, p.ready_seq, p.key)::integer AS place,
        p.last_seq + row_number() OVER (PARTITION BY p.execution_id ORDER BY p.ready_at, p.ready_seq, p.key) AS seq
    FROM picked p
    CROSS JOIN clock c
), issued AS MATERIALIZED (
    SELECT n.*, ($7::text[])[n.place] AS secret, ($8::text[])[n.place] AS token_hash,
        CASE WHEN n.timeout_ms > 0 THEN n.at + n.timeout_ms END AS deadline
    FROM numbered n
), raised AS (
    UPDATE executions e
    SET last_seq = h.last_seq, last_at = h.at
    FROM (SELECT execution_id, max(seq) AS last_seq, max(at) AS at FROM issued GROUP BY execution_id) h
    WHERE e.id = h.execution_id
), assigned AS (
    UPDATE tasks
    SET state = 1, session = $2, worker_id = $4, claim_key = $5, secret = i.secret, token_hash = i.token_hash,
        dispatched_at = i.at, deadline_at = COALESCE(i.deadline, 0), suspect_at = 0, stop = FALSE,
        due_at = LEAST(i.deadline, (SELECT now FROM clock) + $9::bigint)
    FROM issued i
    WHERE tasks.key = i.key
    RETURNING i.seq, ` + taskColumnsOf + `
), appended AS (
    -- The text is what history.AppendFields gives for a StepDispatched.
    INSERT INTO events (execution_id, seq, type, at, data)
    SELECT i.execution_id, i.seq, 'StepDispatched', i.at,
        '{"step":' || to_json(i.unit)::text || ',"attempt":' || i.attempt || ',"token":"' || i.token_hash
        || '","worker_id":' || $10::text || ',"worker_session":' || $11::text
        || ',"deadline_ms":' || COALESCE(i.deadline::text, 'null') || '}'
    FROM issued i
), due AS (
    -- A few of the most overdue rows name up to three executions.
    SELECT id AS execution_id, due_at
    FROM (SELECT id, due_at FROM executions WHERE due_at <= (SELECT now FROM clock) AND NOT COALESCE(finished_at > 0, FALSE) ORDER BY due_at, id LIMIT 16) e
    UNION ALL
    SELECT execution_id, due_at
    FROM (SELECT execution_id, due_at FROM tasks WHERE due_at <= (SELECT now FROM clock) AND state < 2 ORDER BY due_at, execution_id LIMIT 16) t
)
SELECT c.now, EXISTS (SELECT 1 FROM me), EXISTS (SELECT 1 FROM held), EXISTS (SELECT 1 FROM awake),
    (SELECT count(*) FROM ready) > (SELECT count(*) FROM picked),
    CASE WHEN EXISTS (SELECT 1 FROM me) AND NOT EXISTS (SELECT 1 FROM held)
        THEN ARRAY(SELECT execution_id FROM due GROUP BY execution_id ORDER BY min(due_at), execution_id LIMIT 3) END,
    CASE WHEN (SELECT count(*) FROM ready) = 64 AND NOT EXISTS (SELECT 1 FROM picked)
        THEN ARRAY(SELECT DISTINCT execution_id FROM ready) END,
    t.*
FROM clock c
LEFT JOIN (SELECT * FROM held UNION ALL SELECT * FROM assigned) t ON TRUE
ORDER BY t.ready_at, t.ready_seq, t.key`

	claimSQL             = claimLookSQL + claimPickSQL + claimWriteSQL
	claimWithoutLocksSQL = claimLookSQL + claimPickWithoutLocksSQL + claimWriteSQL
)

// taskColumnsOf is taskColumns where another relation has columns of those names.
const taskColumnsOf = `tasks.key, tasks.execution_id, tasks.unit, tasks.state, tasks.queue, tasks.ready_at, tasks.ready_seq, tasks.due_at,
tasks.task_name, tasks.contract_version, tasks.workflow, tasks.workflow_version, tasks.input, tasks.attempt, tasks.redelivery, tasks.timeout_ms,
tasks.session, tasks.worker_id, tasks.claim_key, tasks.secret, tasks.token_hash, tasks.dispatched_at, tasks.deadline_at, tasks.suspect_at, tasks.stop,
tasks.reported_success, tasks.reported_payload, tasks.reported_retry_after, tasks.reported_at, tasks.root_id`

// Claim hands ready tasks to a worker session.
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (store.Claimed, error) {
	// A queue named twice must not give its tasks twice.
	r.Queues = slices.Compact(slices.Sorted(slices.Values(r.Queues)))
	claimed, busy, err := s.claim(ctx, &r, nil, candidates)
	if err == nil && len(busy) > 0 {
		claimed, _, err = s.claim(ctx, &r, busy, further)
		claimed.More = true
	}
	return claimed, err
}

// claim runs the statement once. busy are the executions whose heads others
// hold, where that is all that it found and there may be more behind them.
func (s *Store) claim(ctx context.Context, r *store.ClaimRequest, leaveOut []string, depth int) (claimed store.Claimed, busy []string, err error) {
	hashes := make([]string, len(r.Secrets))
	for i, secret := range r.Secrets {
		sum := sha256.Sum256([]byte(secret))
		hashes[i] = hex.EncodeToString(sum[:])
	}
	worker, session := string(exactjson.AppendQuoted(nil, r.WorkerID)), string(exactjson.AppendQuoted(nil, r.Session))
	var awake bool
	try := 0
	err = s.write(ctx, "claim tasks", func(sc *script) {
		claimed, busy = store.Claimed{}, nil
		sql, args := claimSQL, []any{
			r.NowMS, r.Session, strings.HasPrefix(r.Session, builtin), r.WorkerID, r.ClaimKey, listOf(r.Queues),
			listOf(r.Secrets), hashes, r.SessionTimeoutMS, worker, session, listOf(leaveOut), depth,
		}
		if s.noLocks {
			sql, args = claimWithoutLocksSQL, append(args, spread(try))
		}
		try++
		sc.add(sql, func(rows pgx.Rows) error {
			var seq zeronull.Int8
			task, err := scanTask(rows, &claimed.NowMS, &claimed.Known, &claimed.Repeated, &awake, &claimed.More, &claimed.DueIDs, &busy, &seq)
			if task.Key != "" {
				claimed.Tasks = append(claimed.Tasks, task)
				if !claimed.Repeated {
					claimed.Seqs = append(claimed.Seqs, uint64(seq))
				}
			}
			return err
		}, args...).conflict = func(*pgconn.PgError) error { return errConflict } // without locks: another's event has that number
		sc.wrote = func() bool { return awake || len(claimed.Tasks) > 0 && !claimed.Repeated }
	})
	if err != nil {
		return store.Claimed{}, nil, err
	}
	claimed.More = claimed.More || claimed.Repeated || len(r.Secrets) == 0 // nobody has looked
	return claimed, busy, nil
}

// spread is among how many more candidates than it wants a claim without locks
// chooses: none at first, more with each conflict after the second.
func spread(try int) int32 {
	if try < 2 {
		return 0
	}
	return int32(min(4*try, candidates))
}

// listOf is an array argument that is never NULL.
func listOf(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
