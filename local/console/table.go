package console

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cell is one cell of a table.
type Cell struct {
	Text  string
	Style Style
}

// Table is lines of cells in columns that are as wide as they need. The last
// cell of a line is not padded, and may hold prose.
type Table struct {
	rows [][]Cell
}

// Row adds a line of plain cells.
func (t *Table) Row(cells ...string) {
	row := make([]Cell, len(cells))
	for i, c := range cells {
		row[i].Text = c
	}
	t.rows = append(t.rows, row)
}

// Head adds a line of column names.
func (t *Table) Head(names ...string) {
	row := make([]Cell, len(names))
	for i, name := range names {
		row[i] = Cell{name, Dim}
	}
	t.rows = append(t.rows, row)
}

// Cells adds a line.
func (t *Table) Cells(cells ...Cell) { t.rows = append(t.rows, cells) }

// Len is the number of lines, the head included.
func (t *Table) Len() int { return len(t.rows) }

// Write writes the table, each line behind indent.
func (t *Table) Write(w io.Writer, p Palette, indent string) error {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row[:max(0, len(row)-1)] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(Printable(c.Text)))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		line := indent
		for i, c := range row {
			text := Printable(c.Text)
			line += p.Text(c.Style, text)
			if i < len(row)-1 {
				line += strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+2)
			}
		}
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Printable is text without control characters, so that what came from others
// cannot steer a person's terminal. Line breaks become spaces.
func Printable(text string) string {
	clean := func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}
	return strings.Map(clean, text)
}

// Cut shortens text to at most n characters.
func Cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}
