package sqlite

import (
	"context"
	"database/sql"

	"perigee/store"
)

// A reported row's moment is when it has waited long enough.
const dueSQL = `
SELECT execution_id, MIN(moment)
FROM (
    SELECT id AS execution_id, due_at AS moment
    FROM executions
    WHERE due_at <= ?1 AND due_at IS NOT NULL AND finished_at IS NULL
    UNION ALL
    SELECT execution_id, due_at
    FROM tasks
    WHERE due_at <= ?1 AND due_at IS NOT NULL AND state < 2
    UNION ALL
    SELECT execution_id, reported_at + ?2
    FROM tasks
    WHERE reported_at <= ?1 - ?2 AND reported_at IS NOT NULL
)
WHERE execution_id NOT IN (SELECT value FROM json_each(?4))
GROUP BY execution_id
ORDER BY MIN(moment), execution_id
LIMIT ?3`

const outlookSQL = `
SELECT
    (SELECT MIN(due_at) FROM executions WHERE due_at > ?1 AND due_at IS NOT NULL AND finished_at IS NULL),
    (SELECT MIN(due_at) FROM tasks WHERE due_at > ?1 AND due_at IS NOT NULL AND state < 2),
    (SELECT MIN(reported_at) FROM tasks WHERE reported_at > ?1 - ?2 AND reported_at IS NOT NULL) + ?2,
    (SELECT MIN(created_at) FROM outbox WHERE created_at > ?1 - ?2) + ?2,
    EXISTS (SELECT 1 FROM outbox WHERE created_at <= ?1 - ?2)`

// The queues are walked by one descent each: an index that begins with the time
// would cost every task for a figure that is seldom read.
const oldestReadySQL = `
WITH RECURSIVE queues (queue) AS (
    SELECT MIN(queue) FROM tasks WHERE state = 0
    UNION ALL
    SELECT (SELECT MIN(t.queue) FROM tasks t WHERE t.queue > queues.queue AND t.state = 0)
    FROM queues
    WHERE queue IS NOT NULL
)
SELECT COALESCE(MIN((SELECT MIN(t.ready_at) FROM tasks t WHERE t.queue = queues.queue AND t.state = 0)), 0)
FROM queues`

// Due lists executions that have work.
func (s *Store) Due(ctx context.Context, r store.DueRequest) (store.Due, error) {
	d := store.Due{NowMS: s.now(r.NowMS)}
	except, err := toJSON(append([]string{}, r.Except...))
	if err != nil {
		return store.Due{}, wrap("list due executions", err)
	}
	err = s.snapshot(ctx, "list due executions", func(c *conn) error {
		err := c.each(dueSQL, func(rows *sql.Rows) error {
			var id string
			var moment int64
			if err := rows.Scan(&id, &moment); err != nil {
				return err
			}
			if len(d.ExecutionIDs) == 0 {
				d.OldestDueMS = moment
			}
			d.ExecutionIDs = append(d.ExecutionIDs, id)
			return nil
		}, d.NowMS, r.ReportedAgeMS, r.Limit, except)
		if err != nil {
			return err
		}
		var next [4]sql.NullInt64
		if _, err := c.one(outlookSQL, []any{&next[0], &next[1], &next[2], &next[3], &d.Outbox}, d.NowMS, r.ReportedAgeMS); err != nil {
			return err
		}
		for _, moment := range next {
			if moment.Valid && (d.NextMS == 0 || moment.Int64 < d.NextMS) {
				d.NextMS = moment.Int64
			}
		}
		_, err = c.one(oldestReadySQL, []any{&d.OldestReady})
		return err
	})
	if err != nil {
		return store.Due{}, err
	}
	return d, nil
}
