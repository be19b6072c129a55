package definition

import (
	"slices"
	"strings"

	"perigee/engine/exactjson"
	"perigee/engine/expr"
)

// stepRefs is the ids of the steps that a program names, sorted. That of a
// stored definition is read off the text, since parsing its expressions would
// be most of what a cold call costs; where the text is not simple enough for
// that, and always for a definition that is being checked, the parser says it.
func (c *compiler) stepRefs(program *expr.Program, n *node, expression bool) []string {
	if !c.check {
		if ids, ok := mentionedSteps(n, expression); ok {
			return ids
		}
	}
	return parsedSteps(program)
}

func parsedSteps(program *expr.Program) []string {
	var ids []string
	for _, ref := range program.Refs() {
		if ref.Root == "steps" && len(ref.Path) > 0 {
			ids = append(ids, ref.Path[0].Name)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// mentionedSteps reads the ids off a value: an expression, or a template.
func mentionedSteps(n *node, expression bool) (ids []string, ok bool) {
	if n.raw != "" && !strings.Contains(string(n.raw), "steps") && !strings.Contains(string(n.raw), `\u`) {
		return nil, true
	}
	s := mentionScanner{ok: true}
	if expression {
		s.expression(n.text)
	} else {
		s.template(n)
	}
	slices.Sort(s.ids)
	return slices.Compact(s.ids), s.ok
}

// mentionScanner splits expressions that are known to be good into tokens. ok
// turns false where it cannot tell what the parser would say.
type mentionScanner struct {
	ids  []string
	ok   bool
	text string
	pos  int
}

func (s *mentionScanner) template(n *node) {
	for _, item := range n.array() {
		s.template(item)
	}
	for _, m := range n.object() {
		s.template(m.node)
	}
	if n.kind != exactjson.KindString {
		return
	}
	s.text, s.pos = n.text, 0
	for s.ok {
		i := strings.Index(s.text[s.pos:], "${")
		if i < 0 {
			return
		}
		s.pos += i + 2
		if at := s.pos - 2; at == 0 || s.text[at-1] != '$' {
			s.scan()
		}
	}
}

func (s *mentionScanner) expression(text string) {
	s.text, s.pos = text, 0
	s.scan()
}

// scan reads tokens up to the end or a closing brace too many.
func (s *mentionScanner) scan() {
	depth := 0
	operand := false // the last token ends an operand
	member := false  // what comes is a member: behind operand. or operand.?
	for s.ok && s.pos < len(s.text) {
		c := s.text[s.pos]
		switch {
		case strings.IndexByte(" \t\r\n\f", c) >= 0:
			s.pos++
			continue
		case c == '`' || strings.HasPrefix(s.text[s.pos:], "//"):
			s.ok = false
			return
		case c == '"' || c == '\'':
			s.str(false)
			operand, member = true, false
			continue
		case isWord(c):
			word := s.word()
			if s.pos < len(s.text) && (s.text[s.pos] == '"' || s.text[s.pos] == '\'') {
				s.str(strings.ContainsAny(word, "rR"))
			} else if word == "steps" && !member {
				s.id()
			}
			operand, member = true, false
			continue
		case c == '.':
			member = operand
		case c == '?':
			// behind a dot it belongs to it
		default:
			member = false
		}
		if c == '{' {
			depth++
		}
		if c == '}' {
			if depth--; depth < 0 {
				s.pos++
				return
			}
		}
		if c == '?' && !s.behindDot() {
			member = false
		}
		operand = c == ')' || c == ']' || c == '}'
		s.pos++
	}
}

func (s *mentionScanner) behindDot() bool {
	return strings.HasSuffix(strings.TrimRight(s.text[:s.pos], " \t\r\n\f"), ".")
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (s *mentionScanner) word() string {
	start := s.pos
	for s.pos < len(s.text) && isWord(s.text[s.pos]) {
		s.pos++
	}
	return s.text[start:s.pos]
}

// str takes a string literal and gives what is between its quotes.
func (s *mentionScanner) str(raw bool) string {
	quote := s.text[s.pos : s.pos+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s.text[s.pos:], triple) {
		quote = triple
	}
	s.pos += len(quote)
	start := s.pos
	for s.pos < len(s.text) {
		switch {
		case strings.HasPrefix(s.text[s.pos:], quote):
			s.pos += len(quote)
			return s.text[start : s.pos-len(quote)]
		case s.text[s.pos] == '\\' && !raw:
			s.pos++
		}
		s.pos++
	}
	s.ok = false
	s.pos = len(s.text)
	return ""
}

// id takes what follows the word steps: .id, .?id, ["id"] or [?"id"].
func (s *mentionScanner) id() {
	opening := s.next()
	if opening != '.' && opening != '[' {
		s.ok = false
		return
	}
	s.pos++
	if s.next() == '?' {
		s.pos++
	}
	c := s.next()
	id := ""
	switch {
	case opening == '.' && isWord(c):
		id = s.word()
	case opening == '[' && (c == '"' || c == '\''):
		id = s.str(false)
	}
	if id == "" || strings.Contains(id, `\`) {
		s.ok = false
		return
	}
	s.ids = append(s.ids, id)
}

// next is the byte behind white space, 0 at the end.
func (s *mentionScanner) next() byte {
	for s.pos < len(s.text) && strings.IndexByte(" \t\r\n\f", s.text[s.pos]) >= 0 {
		s.pos++
	}
	if s.pos == len(s.text) {
		return 0
	}
	return s.text[s.pos]
}
