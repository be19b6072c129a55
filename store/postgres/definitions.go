package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perigee/store"
)

const definitionColumns = `name, version, hash, canonical, children, tasks, extensions, retired, created_at`

// scanDefinition reads definitionColumns.
func scanDefinition(rows pgx.Rows) (store.Definition, error) {
	var d store.Definition
	var children, tasks string
	err := rows.Scan(&d.Name, &d.Version, &d.Hash, &d.Canonical, &children, &tasks, &d.Extensions, &d.Retired, &d.CreatedAtMS)
	if err == nil {
		err = errors.Join(
			fromJSON("children of a definition", children, &d.Children),
			fromJSON("tasks of a definition", tasks, &d.Tasks))
	}
	return d, err
}

// toJSON is a column's text of a list or map; members of maps are in order.
func toJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

func fromJSON(what, text string, into any) error {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

const putDefinitionSQL = `
INSERT INTO definitions (` + definitionColumns + `)
SELECT $2, $3, $4, $5, $6, $7, $8, $9, ` + nowSQL + `
ON CONFLICT DO NOTHING`

const definitionByNameSQL = `
SELECT ` + definitionColumns + `
FROM definitions
WHERE name = $1 AND version = $2`

// PutDefinition stores a definition that is not there yet. The second
// statement sees what another transaction put before the first.
func (s *Store) PutDefinition(ctx context.Context, d store.Definition) (stored store.Definition, created bool, err error) {
	children, err := toJSON(d.Children)
	if err != nil {
		return store.Definition{}, false, wrap("put definition", err)
	}
	tasks, err := toJSON(d.Tasks)
	if err != nil {
		return store.Definition{}, false, wrap("put definition", err)
	}
	err = s.write(ctx, "put definition", func(sc *script) {
		stored, created = store.Definition{}, false
		sc.add(putDefinitionSQL, nil, d.CreatedAtMS, d.Name, d.Version, d.Hash, d.Canonical, children, tasks, d.Extensions, d.Retired).
			done = func(n int64) { created = n == 1 }
		sc.add(definitionByNameSQL, func(rows pgx.Rows) (err error) {
			stored, err = scanDefinition(rows)
			return err
		}, d.Name, d.Version)
		sc.wrote = func() bool { return created }
	})
	if err == nil && stored.Hash == "" {
		err = fmt.Errorf("put definition: another definition than %s@%s has the hash %s", d.Name, d.Version, d.Hash)
	}
	return stored, created && err == nil, err
}

const definitionByHashSQL = `
SELECT ` + definitionColumns + `
FROM definitions
WHERE hash = $1`

// Definition finds a definition by hash.
func (s *Store) Definition(ctx context.Context, hash string) (store.Definition, error) {
	var found []store.Definition
	err := s.read(ctx, "read definition", func(sc *script) {
		found = nil
		sc.add(definitionByHashSQL, appendTo(&found, scanDefinition), hash)
	})
	return first(found, err, "definition "+hash)
}

// first is the only row found, or ErrNotFound.
func first[T any](found []T, err error, what string) (T, error) {
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	if err != nil {
		var none T
		return none, err
	}
	return found[0], nil
}

const definitionsSQL = `
SELECT name, version, hash, '', children, tasks, extensions, retired, created_at
FROM definitions
WHERE $1::text = '' OR name = $1::text
ORDER BY name, created_at, version`

// Definitions lists the versions of one workflow or of all.
func (s *Store) Definitions(ctx context.Context, name string) ([]store.Definition, error) {
	var list []store.Definition
	err := s.read(ctx, "list definitions", func(sc *script) {
		list = nil
		sc.add(definitionsSQL, appendTo(&list, scanDefinition), name)
	})
	return list, err
}

const retireDefinitionSQL = `
UPDATE definitions
SET retired = TRUE
WHERE name = $1 AND version = $2`

// RetireDefinition takes a version out of the default choice.
func (s *Store) RetireDefinition(ctx context.Context, name, version string) error {
	var n int64
	err := s.write(ctx, "retire definition", func(sc *script) {
		sc.add(retireDefinitionSQL, nil, name, version).done = func(affected int64) { n = affected }
		sc.wrote = func() bool { return n > 0 }
	})
	return someRow(n, err, name+"@"+version)
}

// someRow is ErrNotFound where a statement changed nothing.
func someRow(n int64, err error, what string) error {
	if err == nil && n == 0 {
		return fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	return err
}
