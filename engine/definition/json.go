package definition

import (
	"errors"
	"strings"
	"unicode/utf8"

	"perigee/engine/exactjson"
)

// readJSON makes the tree of a JSON document.
func readJSON(text string) (*node, *Fault) {
	// The parser has found every fault before the tree is made.
	if _, err := exactjson.ParseDepth([]byte(text), maxDepth); err != nil {
		return nil, jsonFault(text, err)
	}
	r := jsonReader{text: text, at: place{1, 1}}
	return r.value(), nil
}

func jsonFault(text string, err error) *Fault {
	var syntax *exactjson.SyntaxError
	if !errors.As(err, &syntax) {
		return refuse(CodeSyntax, place{1, 1}, err.Error(), "")
	}
	r := jsonReader{text: text, at: place{1, 1}}
	fault := refuse(CodeSyntax, r.placeOf(min(syntax.Offset, len(text))), syntax.Message, "")
	fault.Path = syntax.Path
	if strings.Contains(syntax.Message, "stands twice") {
		fault.Code = CodeDuplicateKey
	}
	return fault
}

// jsonReader walks a text that is known to be JSON. at is the place of pos; it
// only moves forward, so that a long line costs no more than many short ones.
type jsonReader struct {
	text string
	pos  int
	at   place
}

// placeOf moves to offset.
func (r *jsonReader) placeOf(offset int) place {
	for r.pos < offset {
		if c := r.text[r.pos]; c == '\n' {
			r.at = place{r.at.line + 1, 1}
		} else if utf8.RuneStart(c) {
			r.at.column++
		}
		r.pos++
	}
	return r.at
}

func (r *jsonReader) skipSpace() {
	end := r.pos
	for end < len(r.text) && strings.IndexByte(" \t\r\n", r.text[end]) >= 0 {
		end++
	}
	r.placeOf(end)
}

func (r *jsonReader) peek() byte {
	r.skipSpace()
	if r.pos == len(r.text) {
		return 0
	}
	return r.text[r.pos]
}

func (r *jsonReader) value() *node {
	c := r.peek()
	n := &node{at: r.at, style: styleDouble, kind: exactjson.Value(r.text[r.pos:]).Kind()}
	switch c {
	case '{':
		r.placeOf(r.pos + 1)
		for r.peek() == '"' {
			at := r.at
			key := r.str()
			r.peek()
			r.placeOf(r.pos + 1) // the colon
			n.members = append(n.members, member{key: key, at: at, node: r.value()})
			if r.peek() == ',' {
				r.placeOf(r.pos + 1)
			}
		}
		r.placeOf(r.pos + 1)
	case '[':
		r.placeOf(r.pos + 1)
		for r.peek() != ']' {
			n.items = append(n.items, r.value())
			if r.peek() == ',' {
				r.placeOf(r.pos + 1)
			}
		}
		r.placeOf(r.pos + 1)
	case '"':
		n.text = r.str()
	default:
		start := r.pos
		end := start
		for end < len(r.text) && strings.IndexByte(" \t\r\n,]}", r.text[end]) < 0 {
			end++
		}
		r.placeOf(end)
		n.text = r.text[start:end]
		n.plain = n.text
	}
	return n
}

// str takes the string at pos and decodes it.
func (r *jsonReader) str() string {
	end := r.pos + 1
	for r.text[end] != '"' {
		if r.text[end] == '\\' {
			end++
		}
		end++
	}
	token := exactjson.Value(r.text[r.pos : end+1])
	r.placeOf(end + 1)
	text, _ := token.Text()
	return text
}
