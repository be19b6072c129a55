package sqlite

import (
	"context"
	"database/sql"

	"perigee/store"
)

const sessionColumns = `hash, worker_id, runtime, sdk, contracts, registered_at, last_seen`

// scanSession reads sessionColumns, and whatever follows into more.
func scanSession(rows *sql.Rows, more ...any) (store.Session, error) {
	var s store.Session
	var contracts string
	err := rows.Scan(append([]any{&s.Hash, &s.WorkerID, &s.Runtime, &s.SDK, &contracts, &s.RegisteredAtMS, &s.LastSeenMS}, more...)...)
	if err == nil {
		err = fromJSON("contracts of session "+s.Hash, contracts, &s.Contracts)
	}
	return s, err
}

const putSessionSQL = `
INSERT INTO worker_sessions (` + sessionColumns + `)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
ON CONFLICT (hash) DO UPDATE
SET worker_id = excluded.worker_id, runtime = excluded.runtime, sdk = excluded.sdk, contracts = excluded.contracts,
    registered_at = excluded.registered_at, last_seen = excluded.last_seen`

// PutSession registers a worker session.
func (s *Store) PutSession(ctx context.Context, session store.Session) error {
	contracts, err := toJSON(session.Contracts)
	if err != nil {
		return wrap("put session", err)
	}
	now := s.now(session.NowMS)
	return s.write(ctx, "put session", func(c *conn) error {
		_, err := c.exec(putSessionSQL, session.Hash, session.WorkerID, session.Runtime, session.SDK, contracts, now)
		return err
	})
}

const sessionSQL = `
SELECT ` + sessionColumns + `
FROM worker_sessions
WHERE hash = ?`

// Session finds a session by its hash.
func (s *Store) Session(ctx context.Context, hash string) (store.Session, error) {
	var found []store.Session
	err := s.read(ctx, "read session", func(c *conn) error {
		return c.each(sessionSQL, func(rows *sql.Rows) error {
			session, err := scanSession(rows)
			found = append(found, session)
			return err
		}, hash)
	})
	return first(found, err, "session")
}

const workerSQL = `
SELECT worker_id, last_seen
FROM worker_sessions
WHERE hash = ?`

const heldSQL = `
SELECT key, execution_id, unit, state, token_hash, secret, dispatched_at, attempt, stop
FROM tasks
WHERE session = ? AND session <> '' AND state IN (1, 2)
ORDER BY key`

// A session that was seen later already, by another call, stays.
const seenSQL = `
UPDATE worker_sessions
SET last_seen = ?
WHERE hash = ? AND last_seen < ?`

// held reads the rows that a session holds.
func held(c *conn, hash string) ([]store.HeldTask, error) {
	var tasks []store.HeldTask
	err := c.each(heldSQL, appendTo(&tasks, func(rows *sql.Rows) (t store.HeldTask, err error) {
		var state, attempt int64
		err = rows.Scan(&t.Key, &t.ExecutionID, &t.Unit, &state, &t.TokenHash, &t.Secret, &t.DispatchedMS, &attempt, &t.Stop)
		t.State, t.Attempt = store.TaskState(state), uint32(attempt)
		return t, err
	}), hash)
	return tasks, err
}

// touched reads a session's worker and rows, and when it was last seen.
func touched(c *conn, hash string, now int64) (t store.Touched, lastSeen int64, err error) {
	t.NowMS = now
	found, err := c.one(workerSQL, []any{&t.WorkerID, &lastSeen}, hash)
	if err != nil {
		return t, 0, err
	}
	if !found {
		return t, 0, someRow(0, nil, "session")
	}
	t.Held, err = held(c, hash)
	return t, lastSeen, err
}

// TouchSession moves last_seen where it is old. Most heartbeats only read.
func (s *Store) TouchSession(ctx context.Context, hash string, nowMS, minAgeMS int64) (store.Touched, error) {
	now := s.now(nowMS)
	var t store.Touched
	var lastSeen int64
	err := s.snapshot(ctx, "touch session", func(c *conn) (err error) {
		t, lastSeen, err = touched(c, hash, now)
		return err
	})
	if err == nil && lastSeen < now-minAgeMS {
		err = s.write(ctx, "touch session", func(c *conn) error {
			_, err := c.exec(seenSQL, now, hash, now)
			return err
		})
	}
	if err != nil {
		return store.Touched{}, err
	}
	return t, nil
}

const deleteSessionSQL = `
DELETE FROM worker_sessions
WHERE hash = ?`

// DeleteSession removes a session and returns its task rows.
func (s *Store) DeleteSession(ctx context.Context, hash string) (store.Touched, error) {
	now := s.clock()
	var t store.Touched
	err := s.write(ctx, "delete session", func(c *conn) (err error) {
		if t, _, err = touched(c, hash, now); err != nil {
			return err
		}
		_, err = c.exec(deleteSessionSQL, hash)
		return err
	})
	if err != nil {
		return store.Touched{}, err
	}
	return t, nil
}

const workersSQL = `
SELECT ` + sessionColumns + `,
    (SELECT COUNT(*) FROM tasks t WHERE t.session = worker_sessions.hash AND t.session <> '' AND t.state IN (1, 2))
FROM worker_sessions
ORDER BY worker_id, registered_at, hash`

// Workers lists all sessions with their load.
func (s *Store) Workers(ctx context.Context) ([]store.WorkerSession, error) {
	var list []store.WorkerSession
	err := s.read(ctx, "list workers", func(c *conn) error {
		return c.each(workersSQL, appendTo(&list, func(rows *sql.Rows) (w store.WorkerSession, err error) {
			w.Session, err = scanSession(rows, &w.Inflight)
			return w, err
		}))
	})
	return list, err
}

const dropSessionsSQL = `
DELETE FROM worker_sessions
WHERE last_seen < ?`

// DropSessions removes sessions that were last seen before the moment.
func (s *Store) DropSessions(ctx context.Context, lastSeenBeforeMS int64) error {
	return s.write(ctx, "drop sessions", func(c *conn) error {
		_, err := c.exec(dropSessionsSQL, lastSeenBeforeMS)
		return err
	})
}
