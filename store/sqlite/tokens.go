package sqlite

import (
	"context"
	"database/sql"

	"perigee/store"
)

const tokenColumns = `name, hash, role, worker_ids, tasks, created_at`

// scanToken reads tokenColumns.
func scanToken(rows *sql.Rows) (store.Token, error) {
	var t store.Token
	var workers, tasks string
	err := rows.Scan(&t.Name, &t.Hash, &t.Role, &workers, &tasks, &t.CreatedAtMS)
	if err == nil {
		err = fromJSON("worker ids of token "+t.Name, workers, &t.WorkerIDs)
	}
	if err == nil {
		err = fromJSON("tasks of token "+t.Name, tasks, &t.Tasks)
	}
	return t, err
}

const putTokenSQL = `
INSERT INTO tokens (` + tokenColumns + `)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE
SET hash = excluded.hash, role = excluded.role, worker_ids = excluded.worker_ids, tasks = excluded.tasks, created_at = excluded.created_at`

// PutToken stores a token, in place of one of the same name.
func (s *Store) PutToken(ctx context.Context, t store.Token) error {
	workers, err := toJSON(t.WorkerIDs)
	if err != nil {
		return wrap("put token", err)
	}
	tasks, err := toJSON(t.Tasks)
	if err != nil {
		return wrap("put token", err)
	}
	if t.CreatedAtMS == 0 {
		t.CreatedAtMS = s.clock()
	}
	return s.write(ctx, "put token", func(c *conn) error {
		_, err := c.exec(putTokenSQL, t.Name, t.Hash, t.Role, workers, tasks, t.CreatedAtMS)
		return err
	})
}

const tokenByHashSQL = `
SELECT ` + tokenColumns + `
FROM tokens
WHERE hash = ?`

// TokenByHash finds a token.
func (s *Store) TokenByHash(ctx context.Context, hash string) (store.Token, error) {
	var found []store.Token
	err := s.read(ctx, "read token", func(c *conn) error {
		return c.each(tokenByHashSQL, appendTo(&found, scanToken), hash)
	})
	return first(found, err, "token")
}

const tokensSQL = `
SELECT ` + tokenColumns + `
FROM tokens
ORDER BY name`

// Tokens lists all tokens by name.
func (s *Store) Tokens(ctx context.Context) ([]store.Token, error) {
	var list []store.Token
	err := s.read(ctx, "list tokens", func(c *conn) error {
		return c.each(tokensSQL, appendTo(&list, scanToken))
	})
	return list, err
}

const deleteTokenSQL = `
DELETE FROM tokens
WHERE name = ?`

// DeleteToken removes a token by name.
func (s *Store) DeleteToken(ctx context.Context, name string) error {
	return s.write(ctx, "delete token", func(c *conn) error {
		n, err := c.exec(deleteTokenSQL, name)
		return someRow(n, err, "token "+name)
	})
}
