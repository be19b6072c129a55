package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"perigee/store"
)

const tokenColumns = `name, hash, role, worker_ids, tasks, created_at`

// scanToken reads tokenColumns.
func scanToken(rows pgx.Rows) (store.Token, error) {
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
SELECT $2, $3, $4, $5, $6, ` + nowSQL + `
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
	return s.write(ctx, "put token", func(sc *script) {
		sc.add(putTokenSQL, nil, t.CreatedAtMS, t.Name, t.Hash, t.Role, workers, tasks)
	})
}

const tokenByHashSQL = `
SELECT ` + tokenColumns + `
FROM tokens
WHERE hash = $1`

// TokenByHash finds a token.
func (s *Store) TokenByHash(ctx context.Context, hash string) (store.Token, error) {
	var found []store.Token
	err := s.read(ctx, "read token", func(sc *script) {
		found = nil
		sc.add(tokenByHashSQL, appendTo(&found, scanToken), hash)
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
	err := s.read(ctx, "list tokens", func(sc *script) {
		list = nil
		sc.add(tokensSQL, appendTo(&list, scanToken))
	})
	return list, err
}

const deleteTokenSQL = `
DELETE FROM tokens
WHERE name = $1`

// DeleteToken removes a token by name.
func (s *Store) DeleteToken(ctx context.Context, name string) error {
	var n int64
	err := s.write(ctx, "delete token", func(sc *script) {
		sc.add(deleteTokenSQL, nil, name).done = func(affected int64) { n = affected }
		sc.wrote = func() bool { return n > 0 }
	})
	return someRow(n, err, "token "+name)
}
