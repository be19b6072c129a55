package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"

	"perigee/store"
)

const outboxSQL = `
SELECT id, kind, source, target, unit, payload, created_at
FROM outbox
ORDER BY created_at, id
LIMIT ?`

const outboxOfSQL = `
SELECT id, kind, source, target, unit, payload, created_at
FROM outbox
WHERE source = ?
ORDER BY created_at, id
LIMIT ?`

// Outbox lists undelivered messages, oldest first.
func (s *Store) Outbox(ctx context.Context, source string, limit int) ([]store.Message, error) {
	var list []store.Message
	scan := appendTo(&list, func(rows *sql.Rows) (m store.Message, err error) {
		err = rows.Scan(&m.ID, &m.Kind, &m.Source, &m.Target, &m.Unit, &m.Payload, &m.CreatedAtMS)
		return m, err
	})
	err := s.read(ctx, "list messages", func(c *conn) error {
		if source == "" {
			return c.each(outboxSQL, scan, limit)
		}
		return c.each(outboxOfSQL, scan, source, limit)
	})
	return list, err
}

// DeleteMessages removes messages that need no delivery any more.
func (s *Store) DeleteMessages(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return s.write(ctx, "delete messages", func(c *conn) error { return deleteMessages(c, ids) })
}

// A negative limit is none.
const historySQL = `
SELECT seq, type, at, data
FROM events
WHERE execution_id = ? AND seq > ?
ORDER BY seq
LIMIT ?`

// errEnough ends a reading before its last row.
var errEnough = errors.New("enough rows")

// History reads stored events in order.
func (s *Store) History(ctx context.Context, executionID string, afterSeq uint64, limit int, maxBytes int) ([]store.Event, error) {
	if limit <= 0 {
		limit = -1
	}
	var events []store.Event
	size := 0
	err := s.read(ctx, "read history", func(c *conn) error {
		return c.each(historySQL, func(rows *sql.Rows) error {
			e, err := scanEvent(rows)
			if err != nil {
				return err
			}
			size += len(e.Data)
			if maxBytes > 0 && size > maxBytes && len(events) > 0 {
				return errEnough
			}
			events = append(events, e)
			return ctx.Err()
		}, executionID, int64(afterSeq), limit)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return events, nil
}

// Executions lists heads, newest first.
func (s *Store) Executions(ctx context.Context, f store.Filter) ([]store.Head, error) {
	text, args := listQuery(f)
	var list []store.Head
	err := s.read(ctx, "list executions", func(c *conn) error {
		c.count.statements.Add(1)
		// Filters make many texts: they are not kept prepared. A list may be
		// long, so that it ends with its caller.
		rows, err := c.raw.QueryContext(ctx, text, args...)
		if err != nil {
			return err
		}
		return drain(rows, appendTo(&list, scanHead))
	})
	return list, err
}

// listQuery puts together constant pieces, one for each member of the filter
// that is set; what the filter says is in the arguments.
func listQuery(f store.Filter) (text string, args []any) {
	from, order := "FROM executions e", "ORDER BY e.created_at DESC, e.id DESC"
	var where []string
	add := func(condition string, values ...any) {
		where = append(where, condition)
		args = append(args, values...)
	}
	for i, name := range slices.Sorted(maps.Keys(f.Tags)) {
		if i > 0 {
			add("EXISTS (SELECT 1 FROM execution_tags x WHERE x.name = ? AND x.value = ? AND x.created_at = e.created_at AND x.execution_id = e.id)", name, f.Tags[name])
			continue
		}
		// The first tag leads: its rows are in the list's order already. CROSS
		// JOIN keeps SQLite from beginning with the executions.
		from = "FROM execution_tags t CROSS JOIN executions e ON e.id = t.execution_id"
		order = "ORDER BY t.created_at DESC, t.execution_id DESC"
		add("t.name = ? AND t.value = ?", name, f.Tags[name])
		if f.AfterID != "" {
			add("(t.created_at, t.execution_id) < (?, ?)", f.AfterCreatedMS, f.AfterID)
		}
	}
	for _, member := range []struct{ condition, value string }{
		{"e.status = ?", f.Status}, {"e.workflow = ?", f.Workflow}, {"e.version = ?", f.Version},
		{"e.parent_id <> '' AND e.parent_id = ?", f.ParentID},
	} {
		if member.value != "" {
			add(member.condition, member.value)
		}
	}
	if f.CreatedAfterMS != 0 {
		add("e.created_at >= ?", f.CreatedAfterMS)
	}
	if f.CreatedBeforeMS != 0 {
		add("e.created_at < ?", f.CreatedBeforeMS)
	}
	if f.ErroredOnly {
		add("e.error_count > 0")
	}
	if f.AfterID != "" {
		add("(e.created_at, e.id) < (?, ?)", f.AfterCreatedMS, f.AfterID)
	}
	text = "SELECT " + headColumnsOf + "\n" + from
	if len(where) > 0 {
		text += "\nWHERE " + strings.Join(where, " AND ")
	}
	return text + "\n" + order + "\nLIMIT ?", append(args, f.Limit)
}

const headColumnsOf = `e.id, e.incarnation, e.workflow, e.version, e.definition_hash, e.status, e.last_seq, e.last_at,
COALESCE(e.due_at, 0), e.parent_id, e.parent_step, e.tags, e.created_at, COALESCE(e.finished_at, 0), e.error_count, COALESCE(e.root_id, '')`

const countActiveSQL = `
SELECT COUNT(*)
FROM (
    SELECT 1
    FROM executions
    WHERE finished_at IS NULL AND parent_id = ''
    LIMIT ?
)`

// CountActive counts top-level executions that are not terminal.
func (s *Store) CountActive(ctx context.Context, limit int) (int, error) {
	count := 0
	err := s.read(ctx, "count active executions", func(c *conn) error {
		_, err := c.one(countActiveSQL, []any{&count}, limit)
		return err
	})
	return count, err
}
