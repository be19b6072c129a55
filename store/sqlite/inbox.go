package sqlite

import (
	"context"

	"perigee/store"
)

const reportSQL = `
UPDATE tasks
SET state = 2, reported_success = ?, reported_payload = ?, reported_retry_after = ?, reported_at = ?
WHERE key = ? AND state = 1 AND token_hash = ?`

// Report puts a result into the inbox.
func (s *Store) Report(ctx context.Context, r store.Report) (bool, error) {
	now := s.now(r.NowMS)
	taken := false
	err := s.write(ctx, "report result", func(c *conn) error {
		n, err := c.exec(reportSQL, r.Success, r.Payload, r.RetryAfterMS, now, r.Key, r.TokenHash)
		taken = n == 1
		return err
	})
	return taken && err == nil, err
}

// TryDrain is WithHeadLocked: there is one writer, whose turn is never far off.
func (s *Store) TryDrain(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	return s.locked(ctx, "drain the inbox", r, decide)
}

const taskSQL = `
SELECT ` + taskColumns + `
FROM tasks
WHERE key = ?`

// Task reads one task row.
func (s *Store) Task(ctx context.Context, key string) (store.Task, error) {
	var found []store.Task
	err := s.read(ctx, "read task", func(c *conn) error {
		return c.each(taskSQL, appendTo(&found, scanTask), key)
	})
	return first(found, err, "task "+key)
}

const tasksSQL = `
SELECT ` + taskColumns + `
FROM tasks
WHERE execution_id = ?
ORDER BY key`

// Tasks lists the task rows of an execution.
func (s *Store) Tasks(ctx context.Context, executionID string) ([]store.Task, error) {
	var list []store.Task
	err := s.read(ctx, "list tasks", func(c *conn) error {
		return c.each(tasksSQL, appendTo(&list, scanTask), executionID)
	})
	return list, err
}

const sightSQL = `
UPDATE tasks
SET due_at = NULLIF(?, 0), suspect_at = ?
WHERE key = ? AND state = 1 AND token_hash = ?`

// Sight records that dispatched tasks were seen.
func (s *Store) Sight(ctx context.Context, sightings []store.Sighting) error {
	if len(sightings) == 0 {
		return nil
	}
	return s.write(ctx, "sight tasks", func(c *conn) error {
		for _, g := range sightings {
			if _, err := c.exec(sightSQL, g.DueAtMS, g.SuspectAtMS, g.Key, g.TokenHash); err != nil {
				return err
			}
		}
		return nil
	})
}
