package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"perigee/store"
)

// The row's lock is enough: who decides about the row guards on its state.
const reportSQL = `
UPDATE tasks
SET state = 2, reported_success = $2, reported_payload = $3, reported_retry_after = $4, reported_at = ` + nowSQL + `
WHERE key = $5 AND state = 1 AND token_hash = $6`

// Report puts a result into the inbox.
func (s *Store) Report(ctx context.Context, r store.Report) (bool, error) {
	taken := false
	err := s.write(ctx, "report result", func(sc *script) {
		taken = false
		sc.add(reportSQL, nil, r.NowMS, r.Success, r.Payload, r.RetryAfterMS, r.Key, r.TokenHash).
			done = func(n int64) { taken = n == 1 }
		sc.wrote = func() bool { return taken }
	})
	return taken && err == nil, err
}

// Nobody waits for a drain: whoever holds the head may look again itself.
const tryLockHeadSQL = headSQL + `
FOR UPDATE SKIP LOCKED`

// TryDrain is WithHeadLocked, but gives up at once where the head is held.
func (s *Store) TryDrain(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	if s.noLocks {
		return s.optimistic(ctx, r, decide)
	}
	return s.locked(ctx, "drain the inbox", r, tryLockHeadSQL, decide)
}

const taskSQL = `
SELECT ` + taskColumns + `
FROM tasks
WHERE key = $1`

// Task reads one task row.
func (s *Store) Task(ctx context.Context, key string) (store.Task, error) {
	var found []store.Task
	err := s.read(ctx, "read task", func(sc *script) {
		found = nil
		sc.add(taskSQL, appendTo(&found, scanTaskRow), key)
	})
	return first(found, err, "task "+key)
}

// scanTaskRow is scanTask for a row of taskColumns alone.
func scanTaskRow(rows pgx.Rows) (store.Task, error) { return scanTask(rows) }

const tasksSQL = `
SELECT ` + taskColumns + `
FROM tasks
WHERE key > $1 || '/' AND key < $1 || '0'
ORDER BY key`

// Tasks lists the task rows of an execution.
func (s *Store) Tasks(ctx context.Context, executionID string) ([]store.Task, error) {
	var list []store.Task
	err := s.read(ctx, "list tasks", func(sc *script) {
		list = nil
		sc.add(tasksSQL, appendTo(&list, scanTaskRow), executionID)
	})
	return list, err
}

// Rows that another transaction holds are about to move on; waiting for them,
// in an order that may not be its, could end in a deadlock.
var sightSQL = forRows(`
UPDATE tasks
SET due_at = NULLIF(f.due_at, 0), suspect_at = f.suspect_at
FROM (
    SELECT t.key, g.due_at, g.suspect_at
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS g (key, token_hash, due_at, suspect_at)
    JOIN tasks t ON t.key = g.key AND t.token_hash = g.token_hash AND t.state = 1
    FOR UPDATE OF t SKIP LOCKED
) f
WHERE tasks.key = f.key AND tasks.state = 1`)

var sightWithoutLocksSQL = forRows(`
UPDATE tasks t
SET due_at = NULLIF(g.due_at, 0), suspect_at = g.suspect_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS g (key, token_hash, due_at, suspect_at)
WHERE t.key = g.key AND t.token_hash = g.token_hash AND t.state = 1`)

// Sight records that dispatched tasks were seen.
func (s *Store) Sight(ctx context.Context, sightings []store.Sighting) error {
	if len(sightings) == 0 {
		return nil
	}
	sql := sightSQL
	if s.noLocks {
		sql = sightWithoutLocksSQL
	}
	var n int64
	return s.write(ctx, "sight tasks", func(sc *script) {
		sc.add(sql.of(len(sightings)), nil,
			column(sightings, func(g *store.Sighting) string { return g.Key }),
			column(sightings, func(g *store.Sighting) string { return g.TokenHash }),
			column(sightings, func(g *store.Sighting) int64 { return g.DueAtMS }),
			column(sightings, func(g *store.Sighting) int64 { return g.SuspectAtMS }),
		).done = func(affected int64) { n = affected }
		sc.wrote = func() bool { return n > 0 }
	})
}
