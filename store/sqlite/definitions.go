package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"perigee/store"
)

const definitionColumns = `name, version, hash, canonical, children, tasks, extensions, retired, created_at`

// scanDefinition reads definitionColumns.
func scanDefinition(rows *sql.Rows) (store.Definition, error) {
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
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (name, version) DO NOTHING`

const definitionByNameSQL = `
SELECT ` + definitionColumns + `
FROM definitions
WHERE name = ? AND version = ?`

// PutDefinition stores a definition that is not there yet.
func (s *Store) PutDefinition(ctx context.Context, d store.Definition) (stored store.Definition, created bool, err error) {
	if d.CreatedAtMS == 0 {
		d.CreatedAtMS = s.clock()
	}
	children, err := toJSON(d.Children)
	if err != nil {
		return store.Definition{}, false, wrap("put definition", err)
	}
	tasks, err := toJSON(d.Tasks)
	if err != nil {
		return store.Definition{}, false, wrap("put definition", err)
	}
	err = s.write(ctx, "put definition", func(c *conn) error {
		n, err := c.exec(putDefinitionSQL, d.Name, d.Version, d.Hash, d.Canonical, children, tasks, d.Extensions, d.Retired, d.CreatedAtMS)
		if err != nil {
			return err
		}
		created = n == 1
		return c.each(definitionByNameSQL, func(rows *sql.Rows) error {
			stored, err = scanDefinition(rows)
			return err
		}, d.Name, d.Version)
	})
	return stored, created && err == nil, err
}

const definitionByHashSQL = `
SELECT ` + definitionColumns + `
FROM definitions
WHERE hash = ?`

// Definition finds a definition by hash.
func (s *Store) Definition(ctx context.Context, hash string) (store.Definition, error) {
	var found []store.Definition
	err := s.read(ctx, "read definition", func(c *conn) error {
		return c.each(definitionByHashSQL, appendTo(&found, scanDefinition), hash)
	})
	return first(found, err, "definition "+hash)
}

// appendTo scans rows into a list.
func appendTo[T any](list *[]T, scan func(*sql.Rows) (T, error)) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		item, err := scan(rows)
		if err == nil {
			*list = append(*list, item)
		}
		return err
	}
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
WHERE ?1 = '' OR name = ?1
ORDER BY name, created_at, version`

// Definitions lists the versions of one workflow or of all.
func (s *Store) Definitions(ctx context.Context, name string) ([]store.Definition, error) {
	var list []store.Definition
	err := s.read(ctx, "list definitions", func(c *conn) error {
		return c.each(definitionsSQL, appendTo(&list, scanDefinition), name)
	})
	return list, err
}

const retireDefinitionSQL = `
UPDATE definitions
SET retired = 1
WHERE name = ? AND version = ?`

// RetireDefinition takes a version out of the default choice.
func (s *Store) RetireDefinition(ctx context.Context, name, version string) error {
	return s.write(ctx, "retire definition", func(c *conn) error {
		n, err := c.exec(retireDefinitionSQL, name, version)
		return someRow(n, err, name+"@"+version)
	})
}

// someRow is ErrNotFound where a statement changed nothing.
func someRow(n int64, err error, what string) error {
	if err == nil && n == 0 {
		return fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	return err
}
