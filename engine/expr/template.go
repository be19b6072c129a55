package expr

import (
	"strconv"
	"strings"

	"perigee/engine/exactjson"
)

// part is a place of a template: one of a literal, an expression, a text with
// expressions in it, an object or an array.
type part struct {
	literal  exactjson.Value
	whole    *expression
	text     []textPart
	keys     []exactjson.Value // of an object, as they were written
	children []*part           // of an object or array
	kind     exactjson.Kind    // object or array, with children
}

// textPart is a literal piece of a text or, if inner is set, an expression.
type textPart struct {
	literal string
	inner   *expression
}

// HasTemplate reports whether s, in a place for literals, looks like a template:
// it has a ${ that is not written $${.
func HasTemplate(s string) bool {
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			return false
		}
		if i == 0 || s[i-1] != '$' {
			return true
		}
		s = s[i+2:]
	}
}

// templateParser takes templates apart; it gathers the problems of all places.
type templateParser struct {
	scope       Scope
	expressions []*expression
	problems    []Problem
}

// value is the part for v, which stands at path.
func (p *templateParser) value(v exactjson.Value, path string) *part {
	if !strings.Contains(string(v), "$") && !strings.Contains(string(v), `\u`) {
		return &part{literal: v.OrNull()} // $ can also be written \u0024
	}
	switch v.Kind() {
	case exactjson.KindString:
		return p.text(v, path)
	case exactjson.KindArray:
		node := &part{kind: exactjson.KindArray}
		i := 0
		for element := range v.Elements() {
			node.children = append(node.children, p.value(element, exactjson.JoinPointer(path, strconv.Itoa(i))))
			i++
		}
		return node.folded(v)
	case exactjson.KindObject:
		node := &part{kind: exactjson.KindObject}
		for token, member := range v.Tokens() {
			key, _ := token.Text()
			node.keys = append(node.keys, token)
			node.children = append(node.children, p.value(member, exactjson.JoinPointer(path, key)))
		}
		return node.folded(v)
	}
	return &part{literal: v.OrNull()}
}

// folded is a literal if all children are what they were in v.
func (n *part) folded(v exactjson.Value) *part {
	i := 0
	same := true
	check := func(child exactjson.Value) {
		same = same && n.children[i].literal == child
		i++
	}
	if n.kind == exactjson.KindArray {
		for child := range v.Elements() {
			check(child)
		}
	} else {
		for _, child := range v.Tokens() {
			check(child)
		}
	}
	if same {
		return &part{literal: v}
	}
	return n
}

// text is the part for a string.
func (p *templateParser) text(v exactjson.Value, path string) *part {
	s, _ := v.Text()
	if !strings.Contains(s, "${") {
		return &part{literal: v}
	}
	var pieces []textPart
	literal := ""
	for rest := 0; ; {
		i := strings.Index(s[rest:], "${")
		if i < 0 {
			literal += s[rest:]
			break
		}
		i += rest
		if i > rest && s[i-1] == '$' {
			literal += s[rest:i-1] + "${"
			rest = i + 2
			continue
		}
		literal += s[rest:i]
		inner, end := p.inner(s, i, path)
		if inner == nil {
			return &part{literal: v}
		}
		if literal != "" {
			pieces = append(pieces, textPart{literal: literal})
			literal = ""
		}
		pieces = append(pieces, textPart{inner: inner})
		rest = end
	}
	if literal != "" {
		pieces = append(pieces, textPart{literal: literal})
	}
	switch {
	case len(pieces) == 1 && pieces[0].inner != nil:
		return &part{whole: pieces[0].inner}
	case len(pieces) == 1:
		return &part{literal: exactjson.FromString(pieces[0].literal)}
	}
	return &part{text: pieces}
}

// inner is the expression of the ${ at start, and where its } ends; nil with a
// problem if there is none.
func (p *templateParser) inner(s string, start int, path string) (inner *expression, end int) {
	closing, cut := closingBrace(s, start+2)
	if closing < 0 {
		problem := halfOpen(s, start, cut, "close it, or write $${ for a literal ${")
		problem.Path = path
		p.problems = append(p.problems, problem)
		return nil, 0
	}
	source := s[start+2 : closing]
	if strings.TrimSpace(source) == "" {
		p.problems = append(p.problems, Problem{
			Code: CodeEmptyTemplate, Path: path, Offset: start,
			Message: "expected an expression inside ${ }, got nothing", Hint: "write $${ for a literal ${",
		})
		return nil, 0
	}
	inner = &expression{source: source, scope: p.scope, at: path, offset: start + 2}
	p.expressions = append(p.expressions, inner)
	return inner, closing + 1
}

// halfOpen is the fault of the ${ at start, which has no }. cut is where the
// text or comment begins that hides what is behind it, or -1.
func halfOpen(s string, start, cut int, hint string) Problem {
	problem := Problem{Code: CodeHalfOpen, Offset: start, Message: "expected a } for this ${, got the end of the text", Hint: hint}
	switch {
	case cut < 0:
	case s[cut] == '/':
		problem.Offset, problem.Message = cut, "expected a } for the ${ before, got a comment up to the end of the text"
		problem.Hint = "put the } before the //; a // of a text stands in quotes"
	default:
		// The first fault is at the latest that text, and may be what opened it.
		if fault := findSyntaxFault(s[start+2:], nil); fault != nil {
			problem.Code, problem.Offset = CodeSyntax, start+2+fault.offset
			problem.Message, problem.Hint = noParse+fault.message, fault.hint
		}
	}
	return problem
}

// closingBrace is the index of the } that matches a ${ whose expression begins
// at i, or -1; cut is then where a text or comment begins that has no end, or
// -1. Strings and comments of CEL are skipped, braces are counted.
func closingBrace(s string, i int) (end, cut int) {
	for open := 1; i < len(s); i++ {
		switch c := s[i]; c {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i, -1
			}
		case '/':
			if strings.HasPrefix(s[i:], "//") {
				line := strings.IndexByte(s[i:], '\n')
				if line < 0 {
					return -1, i
				}
				i += line
			}
		case '"', '\'':
			text := stringEnd(s, i)
			if text < 0 {
				return -1, i
			}
			i = text - 1
		}
	}
	return -1, -1
}

// stringEnd is the index behind the string literal whose quote is at i, or -1.
func stringEnd(s string, i int) int {
	quote := s[i : i+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s[i:], triple) {
		quote = triple
	}
	raw := isRaw(s, i)
	for i += len(quote); i < len(s); i++ {
		if s[i] == '\\' && !raw {
			i++
			continue
		}
		if strings.HasPrefix(s[i:], quote) {
			return i + len(quote)
		}
		if s[i] == '\n' && len(quote) == 1 {
			return -1
		}
	}
	return -1
}

// isRaw reports whether the quote at i follows a prefix with r, as in r"\d" or
// bR'\d'; an r at the end of a longer word is none.
func isRaw(s string, i int) bool {
	prefix := i
	for prefix > 0 && isWordByte(s[prefix-1]) {
		prefix--
	}
	switch strings.ToLower(s[prefix:i]) {
	case "r", "br", "rb":
		return true
	}
	return false
}
