package definition

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// locate finds where the byte at offset of a string's decoded text stands in
// the document, by reading the string as it was written side by side with what
// it says. Where the two cannot be matched the answer is the string's start.
func (s source) locate(n *node, offset int) place {
	if n.at.line == 0 || offset <= 0 && n.style != styleBlock {
		return s.firstCharacter(n)
	}
	w := walker{source: s, text: n.text, style: n.style, line: n.at.line}
	w.pos = byteOf(s.line(w.line), n.at.column)
	switch n.style {
	case styleSingle, styleDouble:
		w.pos++
	case styleBlock:
		if !w.enterBlock() {
			return n.at
		}
	}
	for w.read < offset {
		if !w.step() {
			return n.at
		}
	}
	w.toNextCharacter()
	return place{w.line, columnOf(s.line(w.line), w.pos)}
}

func (s source) firstCharacter(n *node) place {
	if n.at.line > 0 && n.isString() && (n.style == styleSingle || n.style == styleDouble) {
		return place{n.at.line, n.at.column + 1}
	}
	return n.at
}

// walker reads a string in the document (line, pos) and in its decoded text
// (read) at the same time.
type walker struct {
	source
	text   string
	style  style
	line   int
	pos    int // byte in the line
	indent int // of a block
	read   int // bytes of text
}

// enterBlock goes from the | or > to the first line that has text.
func (w *walker) enterBlock() bool {
	for line := w.line + 1; line <= len(w.lines); line++ {
		text := w.source.line(line)
		if strings.TrimLeft(text, " ") == "" {
			continue
		}
		w.indent = len(text) - len(strings.TrimLeft(text, " "))
		w.line, w.pos = line, w.indent
		return w.text == "" || w.text[0] != '\n'
	}
	return false
}

func (w *walker) rest() string {
	line := w.source.line(w.line)
	return line[min(w.pos, len(line)):]
}

// atBreak reports whether only white space that does not count is left on the
// line; in blocks all of it counts.
func (w *walker) atBreak() bool {
	if w.style == styleBlock {
		return w.rest() == ""
	}
	return strings.Trim(w.rest(), " \t") == ""
}

func (w *walker) toNextCharacter() {
	escaped := w.style == styleDouble && strings.HasPrefix(w.rest(), `\`) && strings.Trim(w.rest()[1:], " \t") == ""
	if (escaped || w.atBreak()) && w.line < len(w.lines) {
		w.breakLine()
	}
}

// step takes one character, escape or line break.
func (w *walker) step() bool {
	if w.read >= len(w.text) {
		return false
	}
	if w.atBreak() {
		breaks := w.breakLine()
		if breaks == 0 {
			return false
		}
		if w.text[w.read] == ' ' && breaks == 1 {
			w.read++
			return true
		}
		start := w.read
		for w.read < len(w.text) && w.text[w.read] == '\n' && breaks > 0 {
			w.read++
			breaks--
		}
		return w.read > start
	}
	rest := w.rest()
	switch {
	case w.style == styleSingle && strings.HasPrefix(rest, "''"):
		w.pos += 2
		w.read++
		return w.text[w.read-1] == '\''
	case w.style == styleDouble && rest[0] == '\\':
		return w.escape(rest)
	}
	r, size := utf8.DecodeRuneInString(rest)
	got, _ := utf8.DecodeRuneInString(w.text[w.read:])
	w.pos += size
	w.read += size
	return r == got
}

// breakLine goes to the next line that has text, and counts the line breaks.
func (w *walker) breakLine() int {
	breaks := 0
	for w.line < len(w.lines) {
		w.line++
		breaks++
		line := w.source.line(w.line)
		blanks := len(line) - len(strings.TrimLeft(line, " \t"))
		if blanks == len(line) {
			continue
		}
		w.pos = blanks
		if w.style == styleBlock {
			w.pos = min(w.indent, blanks)
		}
		return breaks
	}
	return 0
}

// escape takes an escape of double quotes; an escaped line break takes nothing
// of the text.
func (w *walker) escape(rest string) bool {
	if strings.Trim(rest[1:], " \t") == "" {
		return w.breakLine() == 1
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[rest[1]]
	_, size := utf8.DecodeRuneInString(w.text[w.read:])
	w.read += size
	w.pos += 2 + digits
	if digits != 4 || len(rest) < 12 {
		return len(rest) >= 2+digits
	}
	unit, err := strconv.ParseUint(rest[2:6], 16, 32)
	if err == nil && unit >= 0xD800 && unit < 0xDC00 {
		w.pos += 6 // the other half
	}
	return err == nil
}
