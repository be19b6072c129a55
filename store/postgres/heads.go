package postgres

import (
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"perigee/store"
)

// moved moves heads on that are still where they were seen.
const moved = `moved AS (
    UPDATE executions e
    SET status = h.status, last_seq = h.last_seq, last_at = h.last_at, due_at = NULLIF(h.due_at, 0), finished_at = NULLIF(h.finished_at, 0),
        error_count = h.error_count
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[], $7::text[], $8::bigint[], $9::bigint[])
        AS h (status, last_seq, last_at, due_at, finished_at, error_count, id, incarnation, seen)
    WHERE e.id = h.id AND e.incarnation = h.incarnation AND e.last_seq = h.seen
    RETURNING 1
)`

// A division by zero tells that a row is not as it was seen, and undoes the whole
// in the same round trip.
var moveHeadsSQL = forRows(`
WITH ` + moved + `
SELECT 1 / CASE WHEN count(*) = cardinality($1::text[]) THEN 1 ELSE 0 END
FROM moved`)

// moveHeads moves heads on, if they are still where they were seen.
func moveHeads(sc *script, heads []movedHead) {
	if len(heads) > 0 {
		sc.add(moveHeadsSQL.of(len(heads)), nil, movedColumns(heads)...).conflict = func(*pgconn.PgError) error { return &store.LostError{} }
	}
}

// movedColumns are the arguments of moved.
func movedColumns(heads []movedHead) []any {
	number := func(member func(*movedHead) int64) any { return column(heads, member) }
	return []any{
		column(heads, func(h *movedHead) string { return h.Status }),
		number(func(h *movedHead) int64 { return int64(h.LastSeq) }),
		number(func(h *movedHead) int64 { return h.LastAtMS }),
		number(func(h *movedHead) int64 { return h.DueAtMS }),
		number(func(h *movedHead) int64 { return h.FinishedAtMS }),
		column(heads, func(h *movedHead) int32 { return int32(h.ErrorCount) }),
		column(heads, func(h *movedHead) string { return h.ID }),
		number(func(h *movedHead) int64 { return h.seen.Incarnation }),
		number(func(h *movedHead) int64 { return int64(h.seen.Seq) }),
	}
}

// The head is counted first, so that it is locked before the row. The two guards
// fail with errors of their own: a division by zero, the logarithm of zero.
var advanceSQL = forRows(`
WITH ` + moved + `, removed AS (
    DELETE FROM tasks t
    USING unnest($10::text[], $11::integer[], $12::text[]) AS s (key, state, token_hash)
    WHERE ` + stillAsSeen + `
    RETURNING 1
)
SELECT CASE
    WHEN (SELECT count(*) FROM moved) = 1 THEN ln((SELECT count(*) FROM removed)::double precision)
    ELSE 1 / (SELECT count(*) FROM moved)
END`).one

// advance moves heads on and removes task rows, if they are as they were seen. One
// of each, which is a step, is one statement; of several, two are faster.
func advance(sc *script, c *changes) {
	if len(c.moved) != 1 || len(c.removed) != 1 {
		moveHeads(sc, c.moved)
		guarded(sc, removeTasksSQL, c.removed)
		return
	}
	sc.add(advanceSQL, nil, append(movedColumns(c.moved), seenColumns(c.removed)...)...).conflict = func(e *pgconn.PgError) error {
		if e.Code == codeLogarithmOfZero {
			return lostRows(c.removed)
		}
		return &store.LostError{}
	}
}

var createHeadsSQL = forRows(`
INSERT INTO executions (id, incarnation, workflow, version, definition_hash, status, last_seq, last_at,
    due_at, parent_id, parent_step, tags, created_at, finished_at, error_count, root_id)
SELECT id, incarnation, workflow, version, definition_hash, status, last_seq, last_at,
    NULLIF(due_at, 0), parent_id, parent_step, tags, created_at, NULLIF(finished_at, 0), error_count, NULLIF(root_id, '')
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[],
    $9::bigint[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14::bigint[], $15::integer[], $16::text[])
    AS h (id, incarnation, workflow, version, definition_hash, status, last_seq, last_at,
    due_at, parent_id, parent_step, tags, created_at, finished_at, error_count, root_id)`)

const createTagsSQL = `
INSERT INTO execution_tags (name, value, created_at, execution_id)
SELECT name, value, created_at, execution_id
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) AS t (name, value, created_at, execution_id)
ON CONFLICT DO NOTHING`

// createHeads inserts heads and their tags.
func createHeads(sc *script, heads []store.Head, taken func(*pgconn.PgError) error) error {
	texts := make(map[string]string, len(heads))
	var names, values, owners []string
	var created []int64
	for i := range heads {
		h := &heads[i]
		text, err := tagsText(h.Tags)
		if err != nil {
			return fmt.Errorf("tags of execution %s: %w", h.ID, err)
		}
		texts[h.ID] = text
		for _, name := range slices.Sorted(maps.Keys(h.Tags)) {
			names, values = append(names, name), append(values, h.Tags[name])
			owners, created = append(owners, h.ID), append(created, h.CreatedAtMS)
		}
	}
	sc.add(createHeadsSQL.of(len(heads)), nil,
		column(heads, func(h *store.Head) string { return h.ID }),
		column(heads, func(h *store.Head) int64 { return h.Incarnation }),
		column(heads, func(h *store.Head) string { return h.Workflow }),
		column(heads, func(h *store.Head) string { return h.Version }),
		column(heads, func(h *store.Head) string { return h.DefinitionHash }),
		column(heads, func(h *store.Head) string { return h.Status }),
		column(heads, func(h *store.Head) int64 { return int64(h.LastSeq) }),
		column(heads, func(h *store.Head) int64 { return h.LastAtMS }),
		column(heads, func(h *store.Head) int64 { return h.DueAtMS }),
		column(heads, func(h *store.Head) string { return h.ParentID }),
		column(heads, func(h *store.Head) string { return h.ParentStep }),
		column(heads, func(h *store.Head) string { return texts[h.ID] }),
		column(heads, func(h *store.Head) int64 { return h.CreatedAtMS }),
		column(heads, func(h *store.Head) int64 { return h.FinishedAtMS }),
		column(heads, func(h *store.Head) int32 { return int32(h.ErrorCount) }),
		column(heads, func(h *store.Head) string { return h.RootID }),
	).conflict = taken
	if len(names) > 0 {
		sc.add(createTagsSQL, nil, names, values, created, owners)
	}
	return nil
}
