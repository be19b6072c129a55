package postgres

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"perigee/store"
)

const outboxSQL = `
SELECT id, kind, source, target, unit, payload, created_at
FROM outbox
ORDER BY created_at, id
LIMIT $1`

const outboxOfSQL = `
SELECT id, kind, source, target, unit, payload, created_at
FROM outbox
WHERE source = $2
ORDER BY created_at, id
LIMIT $1`

// Outbox lists undelivered messages, oldest first.
func (s *Store) Outbox(ctx context.Context, source string, limit int) ([]store.Message, error) {
	sql, args := outboxSQL, []any{limit}
	if source != "" {
		sql, args = outboxOfSQL, append(args, source)
	}
	var list []store.Message
	err := s.read(ctx, "list messages", func(sc *script) {
		list = nil
		sc.add(sql, appendTo(&list, func(rows pgx.Rows) (m store.Message, err error) {
			err = rows.Scan(&m.ID, &m.Kind, &m.Source, &m.Target, &m.Unit, &m.Payload, &m.CreatedAtMS)
			return m, err
		}), args...)
	})
	return list, err
}

// DeleteMessages removes messages that need no delivery any more.
func (s *Store) DeleteMessages(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	var n int64
	return s.write(ctx, "delete messages", func(sc *script) {
		sc.add(deleteMessagesSQL, nil, ids).done = func(affected int64) { n = affected }
		sc.wrote = func() bool { return n > 0 }
	})
}

// The sizes are summed where the data is, so that only what fits is sent.
const historySQL = `
SELECT seq, type, at, data
FROM (
    SELECT seq, type, at, data, sum(octet_length(data)) OVER (ORDER BY seq) AS size, row_number() OVER (ORDER BY seq) AS place
    FROM events
    WHERE execution_id = $1 AND seq > $2
    ORDER BY seq
    LIMIT NULLIF($3::bigint, 0)
) AS e
WHERE place = 1 OR $4::bigint = 0 OR size <= $4::bigint
ORDER BY seq`

// History reads stored events in order.
func (s *Store) History(ctx context.Context, executionID string, afterSeq uint64, limit int, maxBytes int) ([]store.Event, error) {
	var events []store.Event
	err := s.read(ctx, "read history", func(sc *script) {
		events = nil
		sc.add(historySQL, appendTo(&events, scanEvent), executionID, afterSeq, max(limit, 0), max(maxBytes, 0))
	})
	return events, err
}

// Executions lists heads, newest first.
func (s *Store) Executions(ctx context.Context, f store.Filter) ([]store.Head, error) {
	text, args := listQuery(f)
	var list []store.Head
	err := s.read(ctx, "list executions", func(sc *script) {
		list = nil
		sc.add(text, appendTo(&list, scanHead), args...)
	})
	return list, err
}

const headColumnsOf = `e.id, e.incarnation, e.workflow, e.version, e.definition_hash, e.status, e.last_seq, e.last_at,
COALESCE(e.due_at, 0), e.parent_id, e.parent_step, e.tags, e.created_at, COALESCE(e.finished_at, 0), e.error_count, COALESCE(e.root_id, '')`

// listQuery puts together constant pieces, one for each member of the filter
// that is set; what the filter says is in the arguments. With one statement for
// all of them the planner could use no index.
func listQuery(f store.Filter) (text string, args []any) {
	from, order := "FROM executions e", "ORDER BY e.created_at DESC, e.id DESC"
	var where []string
	// add replaces each ? by the number of its argument.
	add := func(condition string, values ...any) {
		for _, value := range values {
			args = append(args, value)
			condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(args)), 1)
		}
		where = append(where, condition)
	}
	for i, name := range slices.Sorted(maps.Keys(f.Tags)) {
		if i > 0 {
			add(`EXISTS (SELECT 1 FROM execution_tags x WHERE x.name = ? AND x.value = ?
				AND x.created_at = e.created_at AND x.execution_id = e.id)`, name, f.Tags[name])
			continue
		}
		// The first tag leads: its rows are in the list's order already.
		from = "FROM execution_tags t JOIN executions e ON e.id = t.execution_id"
		order = "ORDER BY t.created_at DESC, t.execution_id DESC"
		add("t.name = ? AND t.value = ?", name, f.Tags[name])
		if f.AfterID != "" {
			add("(t.created_at, t.execution_id) < (?, ?)", f.AfterCreatedMS, f.AfterID)
		}
	}
	for _, member := range []struct{ condition, value string }{
		{"e.status = ?", f.Status}, {"e.workflow = ?", f.Workflow}, {"e.version = ?", f.Version}, {"e.parent_id = ?", f.ParentID},
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
	if f.ParentID != "" {
		add("e.parent_id <> ''") // the condition of the index
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
	args = append(args, f.Limit)
	return text + "\n" + order + "\nLIMIT $" + strconv.Itoa(len(args)), args
}

// The order, in which all are equal, keeps the planner on the index: it takes
// active executions to be spread over the table, but they are at its end.
const countActiveSQL = `
SELECT count(*)
FROM (
    SELECT 1
    FROM executions
    WHERE finished_at IS NULL AND parent_id = ''
    ORDER BY parent_id
    LIMIT $1
) AS active`

// CountActive counts top-level executions that are not terminal.
func (s *Store) CountActive(ctx context.Context, limit int) (int, error) {
	count := 0
	err := s.read(ctx, "count active executions", func(sc *script) { sc.add(countActiveSQL, one(&count), limit) })
	return count, err
}
