package postgres

import "strings"

// rowsSQL is a statement about rows that come as arrays, one for each column. A
// single row, which is what most calls write, comes as plain values: to pack and
// unpack arrays of one element costs both sides more than the row does.
type rowsSQL struct{ many, one string }

// forRows makes both texts of the one for many rows, in which they are
// unnest($1::text[], …) and their number is cardinality($1::text[]).
func forRows(many string) rowsSQL { return rowsSQL{many, singleRow.Replace(many)} }

var singleRow = strings.NewReplacer(
	"cardinality($1::text[])", "1",
	"unnest(", "(VALUES (",
	"[])", "))",
	"[]", "",
)

// of is the text for n rows.
func (q rowsSQL) of(n int) string {
	if n == 1 {
		return q.one
	}
	return q.many
}

// column is one member of each row: an array, or of a single row the value.
func column[R, V any](rows []R, member func(*R) V) any {
	if len(rows) == 1 {
		return member(&rows[0])
	}
	values := make([]V, len(rows))
	for i := range rows {
		values[i] = member(&rows[i])
	}
	return values
}
