package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"perigee/store"
)

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

// guarded adds a statement that must find every row, if there are any, as it was
// seen.
func guarded(sc *script, sql rowsSQL, rows []store.TaskRemoval) {
	if len(rows) > 0 {
		sc.add(sql.of(len(rows)), nil, seenColumns(rows)...).conflict = func(*pgconn.PgError) error { return lostRows(rows) }
	}
}

// lostRows is that one of rows was not as it was seen. Of several the database does
// not tell which.
func lostRows(rows []store.TaskRemoval) error {
	if len(rows) == 1 {
		return &store.LostError{Task: rows[0].Key}
	}
	return &store.LostError{}
}

// removeAllTasks removes the rows of executions.
func removeAllTasks(sc *script, executions []string) {
	for _, id := range executions {
		sc.add(removeAllTasksSQL, nil, id)
	}
}

// seenColumns are the arguments of seen.
func seenColumns(rows []store.TaskRemoval) []any {
	return []any{
		column(rows, func(r *store.TaskRemoval) string { return r.Key }),
		column(rows, func(r *store.TaskRemoval) int32 { return int32(r.Guard.State) }),
		column(rows, func(r *store.TaskRemoval) string { return r.Guard.TokenHash }),
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
