package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"perigee/store"
)

const sessionColumns = `hash, worker_id, runtime, sdk, contracts, registered_at, last_seen`

// scanSession reads sessionColumns, and whatever follows into more.
func scanSession(rows pgx.Rows, more ...any) (store.Session, error) {
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
SELECT $2, $3, $4, $5, $6, now, now
FROM (SELECT ` + nowSQL + ` AS now) AS clock
ON CONFLICT (hash) DO UPDATE
SET worker_id = excluded.worker_id, runtime = excluded.runtime, sdk = excluded.sdk, contracts = excluded.contracts,
    registered_at = excluded.registered_at, last_seen = excluded.last_seen`

// PutSession registers a worker session.
func (s *Store) PutSession(ctx context.Context, session store.Session) error {
	contracts, err := toJSON(session.Contracts)
	if err != nil {
		return wrap("put session", err)
	}
	return s.write(ctx, "put session", func(sc *script) {
		sc.add(putSessionSQL, nil, session.NowMS, session.Hash, session.WorkerID, session.Runtime, session.SDK, contracts)
	})
}

const sessionSQL = `
SELECT ` + sessionColumns + `
FROM worker_sessions
WHERE hash = $1`

// Session finds a session by its hash.
func (s *Store) Session(ctx context.Context, hash string) (store.Session, error) {
	var found []store.Session
	err := s.read(ctx, "read session", func(sc *script) {
		found = nil
		sc.add(sessionSQL, appendTo(&found, func(rows pgx.Rows) (store.Session, error) { return scanSession(rows) }), hash)
	})
	return first(found, err, "session")
}

const heldSQL = `
SELECT key, execution_id, unit, state, token_hash, secret, dispatched_at, attempt, stop
FROM tasks
WHERE session = $1 AND session <> '' AND state IN (1, 2)
ORDER BY key`

// scanHeld reads a row of heldSQL.
func scanHeld(rows pgx.Rows) (store.HeldTask, error) {
	var t store.HeldTask
	err := rows.Scan(&t.Key, &t.ExecutionID, &t.Unit, &t.State, &t.TokenHash, &t.Secret, &t.DispatchedMS, &t.Attempt, &t.Stop)
	return t, err
}

// A session that another call holds is being seen by it. Most heartbeats find
// nothing to write.
const touchSessionSQL = `
WITH clock AS MATERIALIZED (
    SELECT ` + nowSQL + ` AS now
), awake AS (
    UPDATE worker_sessions
    SET last_seen = (SELECT now FROM clock)
    WHERE hash = (
        SELECT hash
        FROM worker_sessions
        WHERE hash = $2 AND last_seen < (SELECT now FROM clock) - $3::bigint AND last_seen < (SELECT now FROM clock)
        FOR UPDATE SKIP LOCKED
    )
    RETURNING 1
)
SELECT c.now, s.worker_id, EXISTS (SELECT 1 FROM awake)
FROM worker_sessions s
CROSS JOIN clock c
WHERE s.hash = $2`

const touchSessionWithoutLocksSQL = `
WITH clock AS MATERIALIZED (
    SELECT ` + nowSQL + ` AS now
), awake AS (
    UPDATE worker_sessions
    SET last_seen = (SELECT now FROM clock)
    WHERE hash = $2 AND last_seen < (SELECT now FROM clock) - $3::bigint AND last_seen < (SELECT now FROM clock)
    RETURNING 1
)
SELECT c.now, s.worker_id, EXISTS (SELECT 1 FROM awake)
FROM worker_sessions s
CROSS JOIN clock c
WHERE s.hash = $2`

// TouchSession moves last_seen where it is old.
func (s *Store) TouchSession(ctx context.Context, hash string, nowMS, minAgeMS int64) (store.Touched, error) {
	sql := touchSessionSQL
	if s.noLocks {
		sql = touchSessionWithoutLocksSQL
	}
	return s.touch(ctx, "touch session", sql, hash, nowMS, hash, minAgeMS)
}

const deleteSessionSQL = `
DELETE FROM worker_sessions
WHERE hash = $2
RETURNING ` + nowSQL + `, worker_id, TRUE`

// DeleteSession removes a session and returns its task rows.
func (s *Store) DeleteSession(ctx context.Context, hash string) (store.Touched, error) {
	return s.touch(ctx, "delete session", deleteSessionSQL, hash, 0, hash)
}

// touch runs a statement that returns the moment, the session's worker and
// whether it wrote, and reads the rows that the session holds.
func (s *Store) touch(ctx context.Context, operation, sql, hash string, args ...any) (store.Touched, error) {
	var t store.Touched
	var found, wrote bool
	err := s.write(ctx, operation, func(sc *script) {
		t, found, wrote = store.Touched{}, false, false
		sc.add(sql, func(rows pgx.Rows) error {
			found = true
			return rows.Scan(&t.NowMS, &t.WorkerID, &wrote)
		}, args...)
		sc.add(heldSQL, appendTo(&t.Held, scanHeld), hash)
		sc.wrote = func() bool { return wrote }
	})
	if err == nil && !found {
		err = someRow(0, nil, "session")
	}
	if err != nil {
		return store.Touched{}, err
	}
	return t, nil
}

const workersSQL = `
SELECT ` + sessionColumns + `,
    (SELECT count(*) FROM tasks t WHERE t.session = worker_sessions.hash AND t.session <> '' AND t.state IN (1, 2))
FROM worker_sessions
ORDER BY worker_id, registered_at, hash`

// Workers lists all sessions with their load.
func (s *Store) Workers(ctx context.Context) ([]store.WorkerSession, error) {
	var list []store.WorkerSession
	err := s.read(ctx, "list workers", func(sc *script) {
		list = nil
		sc.add(workersSQL, appendTo(&list, func(rows pgx.Rows) (w store.WorkerSession, err error) {
			w.Session, err = scanSession(rows, &w.Inflight)
			return w, err
		}))
	})
	return list, err
}

const dropSessionsSQL = `
DELETE FROM worker_sessions
WHERE last_seen < $1`

// DropSessions removes sessions that were last seen before the moment.
func (s *Store) DropSessions(ctx context.Context, lastSeenBeforeMS int64) error {
	var n int64
	return s.write(ctx, "drop sessions", func(sc *script) {
		sc.add(dropSessionsSQL, nil, lastSeenBeforeMS).done = func(affected int64) { n = affected }
		sc.wrote = func() bool { return n > 0 }
	})
}
