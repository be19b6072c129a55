package definition

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// misread is what the YAML parser has refused. Its messages tell what the parser
// was about to do; what an author did is seen in the lines around, and mostly it
// is an indentation, a quote or a bracket.
type misread struct {
	source
	token   *token.Token // where it stopped
	at      place
	message string // its own
}

// yamlSyntax turns the parser's error into a fault.
func yamlSyntax(src source, err error) *Fault {
	m := misread{source: src, at: place{1, 1}, token: &token.Token{}}
	var located interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &located) {
		m.message = err.Error()
	} else { // whose Error() prints the text around, in time that grows with its square
		m.message = located.GetMessage()
		if tk := located.GetToken(); tk != nil && tk.Position != nil {
			m.token, m.at = tk, placeOf(tk)
		}
	}
	for _, explain := range []func() *Fault{m.quote, m.behindQuote, m.bracket, m.tab, m.block, m.twoValues, m.indentation, m.keyless, m.character} {
		if fault := explain(); fault != nil {
			return fault
		}
	}
	return m.fault(m.at, m.message, m.unlessExpression(""))
}

func (m *misread) fault(at place, message, hint string) *Fault {
	return refuse(CodeSyntax, at, "this is no YAML: "+message, hint)
}

// says reports whether the parser's message has one of these in it.
func (m *misread) says(parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(m.message, part) {
			return true
		}
	}
	return false
}

// before is the token in front, a comment included; never nil.
func (m *misread) before() *token.Token {
	if m.token.Prev == nil || m.token.Prev.Position == nil {
		return &token.Token{Position: &token.Position{}}
	}
	return m.token.Prev
}

var expressionKey = regexp.MustCompile(`(^|[\s{,-])(when|for|until|sleep|compute|message|output|timeout|queue_timeout)\s*:`)

func mayHoldExpression(line string) bool {
	return strings.Contains(line, "${") || expressionKey.MatchString(line) ||
		strings.Contains(line, "steps.") || strings.Contains(line, "input.")
}

// quoteIt is the hint that a value needs quotes, those that it does not hold
// itself if there are such.
func (m *misread) quoteIt() string {
	line := m.line(m.at.line)
	what, quotes := "value", `"…"`
	if mayHoldExpression(line) {
		what = "expression"
	}
	if strings.Contains(line, `"`) {
		if quotes = `'…'`; strings.Contains(line, "'") {
			quotes = `"…", with \" for each " in it`
		}
	}
	return fmt.Sprintf("quote the %s: put the whole value into %s", what, quotes)
}

// quote is for a text in quotes without its end.
func (m *misread) quote() *Fault {
	if !m.says("could not find end character of") {
		return nil
	}
	quote := `"`
	if m.says("single-quoted") {
		quote = "'"
	}
	return m.fault(m.at, fmt.Sprintf("the text that begins here with %s has no end", quote), "close it with another "+quote)
}

// behindQuote is for what follows a text in quotes: it was closed too early, or
// too late because its own quote is missing.
func (m *misread) behindQuote() *Fault {
	before := m.before()
	if !quoted(before) || !m.says("value is not allowed in this context", "must be specified") || m.firstOnLine() {
		return nil
	}
	quote, inside, around := `"`, `\"`, `'…'`
	if before.Type == token.SingleQuoteType {
		quote, inside, around = "'", "''", `"…"`
	}
	if start := placeOf(before); strings.Contains(strings.TrimSpace(before.Origin), "\n") {
		return m.fault(start, fmt.Sprintf("the text that begins here with %s goes on up to line %d", quote, m.at.line), "close it where it ends, with another "+quote)
	}
	if m.says("must be specified") && m.token.Next != nil && m.token.Next.Type == token.MappingValueType {
		return m.fault(m.at, "expected a comma before the next key", "")
	}
	hint := fmt.Sprintf("a %s inside of the text is written %s; or put the whole value into %s", quote, inside, around)
	if mayHoldExpression(m.line(m.at.line)) {
		hint = m.quoteIt()
	}
	return m.fault(m.at, fmt.Sprintf("the value goes on behind its closing %s", quote), hint)
}

// bracket is for { } and [ ] that do not match.
func (m *misread) bracket() *Fault {
	value, opener := m.token.Value, m.opener()
	separator := m.says("',' or '}' must", "',' or ']' must")
	switch {
	case m.says("could not find flow mapping end token", "sequence end token"):
		return m.unclosed(m.token)
	case m.says("could not find flow map content"):
		return m.fault(m.at, "expected a key, got "+value, m.unlessExpression(""))
	case opener != nil && (separator && placeOf(m.before()).line < m.at.line || value == "}" || value == "]"):
		return m.unclosed(opener)
	case separator:
		return m.fault(m.at, "expected "+strings.TrimSuffix(m.message, " must be specified"), m.quoteIt())
	case value == "}" || value == "]":
		return m.fault(m.at, fmt.Sprintf("no bracket is open for this %s", value), m.unlessExpression("remove it"))
	}
	return nil
}

// unlessExpression is a hint for a line without ${ }; one with it needs quotes.
func (m *misread) unlessExpression(hint string) string {
	if strings.Contains(m.line(m.at.line), "${") {
		return m.quoteIt()
	}
	return hint
}

// opener is the bracket around the place where the parser stopped, nil for none.
func (m *misread) opener() *token.Token {
	closed := 0
	for tk := m.before(); tk != nil && tk.Position != nil; tk = tk.Prev {
		switch tk.Type {
		case token.MappingEndType, token.SequenceEndType:
			closed++
		case token.MappingStartType, token.SequenceStartType:
			if closed--; closed < 0 {
				return tk
			}
		}
	}
	return nil
}

// unclosed is for a bracket whose end is missing, or behind a #.
func (m *misread) unclosed(opener *token.Token) *Fault {
	end := "}"
	if opener.Type == token.SequenceStartType {
		end = "]"
	}
	for tk := opener.Next; tk != nil && tk.Position != nil && tk != m.token; tk = tk.Next {
		if tk.Type == token.CommentType && strings.Contains(tk.Value, end) {
			return m.fault(placeOf(tk), fmt.Sprintf("from this # on the line is a comment, and with it the %s", end), "quote the value, if the # belongs to it")
		}
	}
	m.at = placeOf(opener)
	return m.fault(m.at, fmt.Sprintf("this %s has no %s", opener.Value, end), m.unlessExpression("close it with "+end))
}

// lastLine is the last line of what the parser stopped at.
func (m *misread) lastLine() int {
	return m.at.line + strings.Count(strings.TrimSpace(m.token.Origin), "\n")
}

// tab is for lines that are indented with tabs.
func (m *misread) tab() *Fault {
	for number := m.at.line; number <= m.lastLine(); number++ {
		line := m.line(number)
		white := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if tab := strings.Index(white, "\t"); tab >= 0 && white != line {
			return m.fault(place{number, tab + 1}, fmt.Sprintf("line %d is indented with a tab", number), "YAML takes no tabs; indent with spaces")
		}
	}
	return nil
}

// block is for a line that has left the text behind a | or >.
func (m *misread) block() *Fault {
	text := m.before()
	header := text.Prev
	if header == nil || header.Type != token.LiteralType && header.Type != token.FoldedType || !m.firstOnLine() || likeKey.MatchString(m.line(m.at.line)) {
		return nil
	}
	first := m.line(text.Position.Line)
	return m.fault(m.at, fmt.Sprintf("line %d is indented by %d, the text that it belongs to by %d", m.at.line, m.at.column-1, indentOf(first)), "indent the lines of a text alike")
}

// twoValues is for a second value: a key is not expected there.
func (m *misread) twoValues() *Fault {
	if !m.says("mapping value is not allowed") {
		return nil
	}
	number := m.lastLine()
	line, above := m.line(number), m.line(m.at.line)
	switch {
	case gluedDash.MatchString(above):
		return m.fault(place{m.at.line, indentOf(above) + 1}, "a - without a space is no entry of a list", "put a space behind the -")
	case number == m.at.line:
		return m.fault(m.at, `this value has a ": " in it, as only a key has`, m.quoteIt())
	case !likeKey.MatchString(line):
		return m.fault(m.at, fmt.Sprintf(`this value has a ": " in it, in line %d, as only a key has`, number), m.quoteIt())
	}
	indent := keyIndent(above)
	return m.fault(place{number, indentOf(line) + 1},
		fmt.Sprintf("line %d is indented by %d and line %d, which has a value already, by %d", number, indentOf(line), m.at.line, indent),
		fmt.Sprintf("indent it by %d like line %d", indent, m.at.line))
}

// keyless is for a line that is no key with a value.
func (m *misread) keyless() *Fault {
	if !m.says("non-map value is specified", "unexpected key name") {
		return nil
	}
	line := strings.TrimSpace(m.line(m.at.line))
	hint := "write key: value"
	if gluedColon.MatchString(line) {
		hint = "put a space behind the :"
	}
	return m.fault(m.at, "expected a key with its value, got "+shown(line), hint)
}

var (
	likeKey    = regexp.MustCompile(`^\s*(-\s+)*("[^"]*"|'[^']*'|[\w.-]+)\s*:(\s|$)`)
	gluedDash  = regexp.MustCompile(`^\s*-[A-Za-z_]\w*:`)
	gluedColon = regexp.MustCompile(`^(-\s+)*[\w.-]+:\S`)
	escapeSaid = regexp.MustCompile(`found unknown escape character '(.)'`)
)

// character is for what a value cannot begin with, or hold.
func (m *misread) character() *Fault {
	if match := escapeSaid.FindStringSubmatch(m.message); match != nil {
		return m.fault(m.at, `\`+match[1]+" is no escape", fmt.Sprintf(`write \\%s, or put the text into '…', where a \ is a \`, match[1]))
	}
	line := m.line(m.at.line)
	i := byteOf(line, m.at.column)
	if i == len(line) || !m.says("reserved character", "unexpected directive value", "invalid header option") {
		return nil
	}
	return m.fault(m.at, fmt.Sprintf("a value cannot begin with %c", line[i]), m.quoteIt())
}
