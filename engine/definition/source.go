package definition

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Format is the notation of a document.
type Format uint8

// The formats. A JSON document never goes to the YAML parser.
const (
	YAML Format = iota + 1
	JSON
)

// Bounds on a document, checked before it is parsed: the YAML parser's time
// grows with the square of what stands between newlines and commas.
const (
	maxYAMLBytes  = 256 << 10
	maxYAMLBreaks = 5000 // commas and newlines
	maxYAMLTabs   = 200  // in one run of white space
	maxJSONBytes  = 1 << 20
	maxDepth      = 64
	maxExpanded   = 1 << 20 // bytes of keys and values, aliases written out
)

// place is where something stands: a line and a column (in characters), both
// from 1. The zero place is unknown.
type place struct{ line, column int }

// source is a document's text by lines.
type source struct {
	format Format
	lines  []string
}

// newSource checks the bounds and the encoding. A fault means that the text
// must not be parsed.
func newSource(text []byte, format Format) (source, string, *Fault) {
	limit := maxYAMLBytes
	if format == JSON {
		limit = maxJSONBytes
	}
	if len(text) > limit {
		return source{}, "", refuse(CodeTooLarge, place{1, 1},
			fmt.Sprintf("the document has %d bytes, at most %d are taken", len(text), limit),
			"move large data out of the definition: into the input, or into workers")
	}
	clean := strings.TrimPrefix(string(text), "\uFEFF")
	if format == YAML {
		clean = strings.ReplaceAll(clean, "\r\n", "\n")
		clean = strings.ReplaceAll(clean, "\r", "\n")
	}
	if format == YAML {
		if fault := checkCharacters(clean); fault != nil {
			return source{}, "", fault
		}
		if fault := checkYAMLBounds(clean); fault != nil {
			return source{}, "", fault
		}
	}
	return source{format: format, lines: strings.Split(clean, "\n")}, clean, nil
}

func refuse(code string, at place, message, hint string) *Fault {
	return &Fault{Code: code, Severity: SeverityError, Line: at.line, Column: at.column, Message: message, Hint: hint}
}

// checkCharacters refuses what YAML may not hold as it is.
func checkCharacters(text string) *Fault {
	at := place{1, 1}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return refuse(CodeEncoding, at, fmt.Sprintf("the byte 0x%02x is not UTF-8", text[i]), "save the file as UTF-8")
		case r < ' ' && r != '\n' && r != '\t' && r != '\r', r == 0x7F, r >= 0x80 && r < 0xA0 && r != 0x85:
			return refuse(CodeEncoding, at, fmt.Sprintf("the control character U+%04X may not stand in a document", r), fmt.Sprintf(`write it as "\u%04x" in double quotes`, r))
		case r == '\uFEFF':
			return refuse(CodeEncoding, at, "a byte order mark stands inside the document", "remove it")
		}
		if at.column++; r == '\n' {
			at = place{at.line + 1, 1}
		}
		i += size
	}
	return nil
}

// checkYAMLBounds bounds what the parser's time and stack depend on. Brackets
// in strings and comments count too: to tell them apart is the parser's work.
func checkYAMLBounds(text string) *Fault {
	at := place{1, 1}
	breaks, depth := 0, 0
	indicators, leading := 0, true // of - and ? at the start of this line
	tabs := 0                      // in the white space up to here
	for _, r := range text {
		switch r {
		case '\t':
			tabs++
		case ' ':
		default:
			tabs = 0
		}
		switch r {
		case '\n', ',':
			breaks++
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case '-', '?', ':', '&', '!', '*':
			if leading {
				indicators++
			}
		}
		if r != ' ' && r != '\t' && r != '-' && r != '?' && r != ':' {
			leading = false
		}
		switch {
		case breaks > maxYAMLBreaks:
			return refuse(CodeTooLarge, at, fmt.Sprintf("the document has more than %d commas and newlines", maxYAMLBreaks), "register it as JSON, or split it into child workflows")
		case depth > maxDepth, indicators > maxDepth:
			return refuse(CodeTooLarge, at, fmt.Sprintf("the document nests more than %d deep here", maxDepth), "")
		case tabs > maxYAMLTabs:
			return refuse(CodeTooLarge, at, fmt.Sprintf("more than %d tabs follow each other", maxYAMLTabs), `write them as \t in double quotes`)
		}
		if at.column++; r == '\n' {
			at = place{at.line + 1, 1}
			indicators, leading = 0, true
		}
	}
	for number, line := range strings.Split(text, "\n") {
		if len(nestedTag.FindAllStringIndex(line, maxDepth)) == maxDepth {
			return refuse(CodeYAML, place{number + 1, 1}, "tags (!…) are not taken, and this line has many", "write the values without them")
		}
	}
	return nil
}

// nestedTag is a tag before an entry on the same line: each is a level more.
var nestedTag = regexp.MustCompile(`!\S*[ \t]+-[ \t]`)

// line is the text of a line counted from 1; "" where there is none.
func (s source) line(number int) string {
	if number < 1 || number > len(s.lines) {
		return ""
	}
	return s.lines[number-1]
}

// byteOf is the index in line of the character in column.
func byteOf(line string, column int) int {
	for i := range line {
		if column--; column == 0 {
			return i
		}
	}
	return len(line)
}

// columnOf is the column of the character at index i of line.
func columnOf(line string, i int) int {
	return utf8.RuneCountInString(line[:min(i, len(line))]) + 1
}
