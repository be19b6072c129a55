package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"perigee/store"
)

// A reported row's moment is when it has waited long enough. However much is
// overdue, the earliest rows are enough for one list. That an execution is not
// finished is said in a way for which there is no index, and which the planner
// takes to be as likely as not: it might else read all of those and sort them.
const dueSQL = `
SELECT execution_id, min(moment)
FROM (
    (SELECT id AS execution_id, due_at AS moment
    FROM executions
    WHERE due_at <= $1 AND NOT COALESCE(finished_at > 0, FALSE) AND id <> ALL ($4::text[])
    ORDER BY due_at, id
    LIMIT $3)
    UNION ALL
    (SELECT execution_id, due_at
    FROM tasks
    WHERE due_at <= $1 AND state < 2 AND execution_id <> ALL ($4::text[])
    ORDER BY due_at, execution_id
    LIMIT 250)
    UNION ALL
    (SELECT execution_id, reported_at + $2::bigint
    FROM tasks
    WHERE reported_at <= $1 - $2::bigint AND execution_id <> ALL ($4::text[])
    ORDER BY reported_at, execution_id
    LIMIT 250)
) AS due
GROUP BY execution_id
ORDER BY min(moment), execution_id
LIMIT $3`

// LEAST passes NULLs by.
const outlookSQL = `
SELECT COALESCE(LEAST(
        (SELECT due_at FROM executions WHERE due_at > $1 AND NOT COALESCE(finished_at > 0, FALSE) ORDER BY due_at LIMIT 1),
        (SELECT due_at FROM tasks WHERE due_at > $1 AND state < 2 ORDER BY due_at LIMIT 1),
        (SELECT reported_at FROM tasks WHERE reported_at > $1 - $2::bigint ORDER BY reported_at LIMIT 1) + $2::bigint,
        (SELECT created_at FROM outbox WHERE created_at > $1 - $2::bigint ORDER BY created_at LIMIT 1) + $2::bigint
    ), 0),
    COALESCE((SELECT created_at FROM outbox ORDER BY created_at LIMIT 1) <= $1 - $2::bigint, FALSE)`

// The queues are walked by one descent each: an index that begins with the time
// would cost every task for a figure that is seldom read.
const oldestReadySQL = `
WITH RECURSIVE queues (queue) AS (
    (SELECT queue FROM tasks WHERE state = 0 ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT t.queue FROM tasks t WHERE t.queue > queues.queue AND t.state = 0 ORDER BY t.queue LIMIT 1)
    FROM queues
    WHERE queue IS NOT NULL
)
SELECT COALESCE(min((SELECT t.ready_at FROM tasks t WHERE t.queue = queues.queue AND t.state = 0 ORDER BY t.ready_at LIMIT 1)), 0)
FROM queues`

// Due lists executions that have work. The moment is the statements' argument:
// where the caller leaves it to the database it is asked for first.
func (s *Store) Due(ctx context.Context, r store.DueRequest) (store.Due, error) {
	now := r.NowMS
	if now == 0 {
		if err := s.read(ctx, "list due executions", func(sc *script) { sc.add(momentSQL, one(&now), 0) }); err != nil {
			return store.Due{}, err
		}
	}
	var d store.Due
	err := s.read(ctx, "list due executions", func(sc *script) {
		d = store.Due{NowMS: now}
		sc.add(dueSQL, func(rows pgx.Rows) error {
			var id string
			var moment int64
			err := rows.Scan(&id, &moment)
			if len(d.ExecutionIDs) == 0 {
				d.OldestDueMS = moment
			}
			d.ExecutionIDs = append(d.ExecutionIDs, id)
			return err
		}, now, r.ReportedAgeMS, r.Limit, listOf(r.Except))
		sc.add(outlookSQL, one(&d.NextMS, &d.Outbox), now, r.ReportedAgeMS)
		sc.add(oldestReadySQL, one(&d.OldestReady))
	})
	if err != nil {
		return store.Due{}, err
	}
	return d, nil
}
