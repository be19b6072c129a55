package expr

import (
	"fmt"
	"slices"
	"strings"

	"perigee/engine/words"
)

// syntaxFault is what is wrong with an expression that does not parse, and where,
// in bytes.
type syntaxFault struct {
	offset        int
	message, hint string
}

// maxExplained is the length in bytes beyond which nobody looks for the fault.
const maxExplained = 64 << 10

// findSyntaxFault looks for the first fault of an expression that the parser has
// refused. The parser's own messages speak of its grammar; this tells an author
// what was expected, and what the mistake is called for that is behind it. It
// knows less than the parser: nil where it finds nothing. functions are the names
// of those that there are.
func findSyntaxFault(source string, functions []string) *syntaxFault {
	if len(source) > maxExplained {
		return nil
	}
	s := syntaxReader{lexemes: lexemesOf(source), functions: functions}
	for value := true; ; s.i++ {
		t := s.lexemes[s.i]
		var fault *syntaxFault
		switch {
		case t.kind == lexemeStray:
			return s.stray(t, value)
		case t.kind == lexemeText && wrongEscape(t.text) >= 0:
			return s.escape(t)
		case value:
			value, fault = s.value(t)
		default:
			value, fault = s.behindValue(t)
		}
		if fault != nil || t.kind == lexemeEnd {
			return fault
		}
	}
}

// syntaxReader walks the lexemes of an expression, values and operators in turn.
type syntaxReader struct {
	lexemes   []lexeme
	i         int
	open      []opened
	halves    []lexeme // each ? that waits for its :, outside of brackets
	functions []string
}

// opened is a bracket that is not closed yet.
type opened struct {
	lexeme
	behind bool     // a value: a call, or an index
	colon  bool     // of { }: this entry has one
	halves []lexeme // each ? that waits for its :
}

func (s *syntaxReader) previous() lexeme {
	if s.i == 0 {
		return lexeme{}
	}
	return s.lexemes[s.i-1]
}

func (s *syntaxReader) next() lexeme { return s.lexemes[min(s.i+1, len(s.lexemes)-1)] }

// around is the innermost open bracket, nil outside of all.
func (s *syntaxReader) around() *opened {
	if len(s.open) == 0 {
		return nil
	}
	return &s.open[len(s.open)-1]
}

// in reports whether the innermost open bracket is this one.
func (s *syntaxReader) in(bracket string) bool {
	around := s.around()
	return around != nil && around.text == bracket
}

// waiting are the ? of the innermost bracket that wait for their :.
func (s *syntaxReader) waiting() *[]lexeme {
	if around := s.around(); around != nil {
		return &around.halves
	}
	return &s.halves
}

func (s *syntaxReader) enter(t lexeme, behind bool) {
	s.open = append(s.open, opened{lexeme: t, behind: behind})
}

// value takes a lexeme where a value is expected. more says that it still is.
func (s *syntaxReader) value(t lexeme) (more bool, fault *syntaxFault) {
	switch {
	case t.kind == lexemeWord && t.text != "in", t.kind == lexemeNumber, t.kind == lexemeText:
		return false, nil
	case t.is("(", "[", "{"):
		s.enter(t, false)
		return true, nil
	case t.is("-", "!"):
		return true, nil
	case t.is("."):
		return false, s.name()
	case t.is("?") && s.mayLeaveOut():
		return true, nil
	case t.is(",") && s.previous().is("[", "{") && s.mayBeEmpty() && s.next().is("]", "}"):
		return true, nil
	case t.is(")", "]", "}") && s.mayBeEmpty():
		return false, s.leave(t)
	case t.kind == lexemeEnd && s.around() != nil && (s.previous().is(",") || s.previous() == s.around().lexeme):
		return false, s.unclosed()
	}
	behind := ""
	if s.i > 0 {
		behind = " behind " + shortened(s.previous())
	}
	return false, expected("a value"+behind, t, "")
}

// mayLeaveOut reports whether a ? can stand here: before an entry of a list or
// map, or before an index.
func (s *syntaxReader) mayLeaveOut() bool {
	return s.previous().is("[", "{", ",") && (s.in("[") || s.in("{"))
}

// mayBeEmpty reports whether the innermost bracket can end here, where a value
// is expected: it has none, or is a list or map with a comma at its end.
func (s *syntaxReader) mayBeEmpty() bool {
	around := s.around()
	switch {
	case around == nil:
		return false
	case around.text == "(":
		return around.behind && s.previous() == around.lexeme
	}
	return (around.text == "{" || !around.behind) && (s.previous() == around.lexeme || s.previous().is(","))
}

// name takes what stands behind a dot.
func (s *syntaxReader) name() *syntaxFault {
	if s.i++; s.lexemes[s.i].is("?") {
		s.i++
	}
	t := s.lexemes[s.i]
	switch {
	case t.kind == lexemeStray && strings.HasPrefix(t.text, "`"):
		return nil
	case t.kind == lexemeWord && slices.Contains([]string{"in", "true", "false", "null"}, t.text):
		return expected("a name behind .", t, fmt.Sprintf("%s is a word of the language; write [%q]", t.text, t.text))
	case t.kind == lexemeWord:
		return nil
	}
	return expected("a name behind .", t, "")
}

// behindValue takes a lexeme where an operator or the end of a part is expected.
// more says that a value is expected next.
func (s *syntaxReader) behindValue(t lexeme) (more bool, fault *syntaxFault) {
	switch {
	case t.is("+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||"), t.kind == lexemeWord && t.text == "in":
		return true, nil
	case t.is("."):
		return false, s.name()
	case t.is("[") || t.is("(", "{") && s.previous().kind == lexemeWord:
		s.enter(t, true)
		return true, nil
	case t.is("?"):
		return true, s.question(t)
	case t.is(":"):
		return true, s.colon(t)
	case t.is(","):
		return true, s.comma(t)
	case t.is(")", "]", "}"):
		return false, s.leave(t)
	case t.kind == lexemeEnd:
		return false, s.atEnd(t)
	}
	return false, s.twoValues(t)
}

func (s *syntaxReader) question(t lexeme) *syntaxFault {
	waiting := s.waiting()
	if len(*waiting) > 0 {
		return expected("the : of the ? before", t, "put an inner ? : in brackets")
	}
	*waiting = append(*waiting, t)
	return nil
}

func (s *syntaxReader) colon(t lexeme) *syntaxFault {
	if waiting := s.waiting(); len(*waiting) > 0 {
		*waiting = (*waiting)[:len(*waiting)-1]
		return nil
	}
	if s.awaitsColon() {
		s.around().colon = true
		return nil
	}
	return expected("an operator", t, "a : goes with a ? before it, and behind the key of a map")
}

func (s *syntaxReader) comma(t lexeme) *syntaxFault {
	around := s.around()
	switch {
	case around == nil:
		return expected("an operator or the end", t, "an expression gives one value; a list is written [a, b]")
	case around.text == "(" && !around.behind:
		return expected("a )", t, "a list is written [a, b]")
	case around.text == "[" && around.behind:
		return expected("a ]", t, "an index is one value")
	}
	if fault := s.entryEnds(t); fault != nil {
		return fault
	}
	around.colon = false
	return nil
}

// awaitsColon reports whether the value before is the key of a map.
func (s *syntaxReader) awaitsColon() bool {
	return s.in("{") && !s.around().colon && len(*s.waiting()) == 0
}

// entryEnds checks what is complete where an entry of the innermost bracket ends.
func (s *syntaxReader) entryEnds(t lexeme) *syntaxFault {
	if waiting := *s.waiting(); len(waiting) > 0 {
		fault := expected("a : and another value for this ?", t, ternaryHint)
		fault.offset = waiting[len(waiting)-1].start
		return fault
	}
	if s.awaitsColon() {
		return expected("a : and a value behind this key", t, "")
	}
	return nil
}

// leave closes the innermost bracket.
func (s *syntaxReader) leave(t lexeme) *syntaxFault {
	around := s.around()
	if around == nil {
		return expected("an operator or the end", t, "no bracket is open here")
	}
	if closes := closing[around.text]; closes != t.text {
		return expected(fmt.Sprintf("a %s for the %s before", closes, around.text), t, "")
	}
	empty := s.previous() == around.lexeme || s.previous().is(",")
	if fault := s.entryEnds(t); fault != nil && !empty {
		return fault
	}
	s.open = s.open[:len(s.open)-1]
	return nil
}

var closing = map[string]string{"(": ")", "[": "]", "{": "}"}

func (s *syntaxReader) atEnd(t lexeme) *syntaxFault {
	if waiting := *s.waiting(); len(waiting) > 0 {
		return s.entryEnds(t)
	}
	if s.around() != nil {
		return s.unclosed()
	}
	return nil
}

func (s *syntaxReader) unclosed() *syntaxFault {
	around := s.around()
	fault := expected(fmt.Sprintf("a %s for this %s", closing[around.text], around.text), lexeme{kind: lexemeEnd}, "")
	fault.offset = around.start
	return fault
}

// twoValues is the fault of a value, or an open bracket, right behind another.
func (s *syntaxReader) twoValues(t lexeme) *syntaxFault {
	before := s.previous()
	if hint := wordOperator(t, s.next()); hint != "" {
		return expected("an operator", t, hint)
	}
	if hint := wordOperator(before, t); hint != "" {
		return expected("a value", before, hint)
	}
	hint := ""
	switch {
	case t.kind == lexemeWord && slices.Contains(s.functions, t.text):
		hint = fmt.Sprintf("write .%s(…)", t.text)
	case before.kind == lexemeWord && slices.Contains(s.functions, before.text):
		hint = fmt.Sprintf("write %s(…)", before.text)
	case before.kind == lexemeText && t.kind == lexemeText:
		hint = "join texts with +"
	case before.kind == lexemeText && t.start == before.end():
		quote := before.text[len(before.text)-1:]
		hint = fmt.Sprintf(`the text ends at the %s before; inside of it write \%s`, quote, quote)
	case before.kind == lexemeNumber && t.start == before.end():
		hint = "a number ends with its digits; a text stands in quotes"
	}
	what := "an operator"
	if s.awaitsColon() {
		what = "a : behind this key"
	}
	return expected(what, t, hint)
}

// expected is a fault at t.
func expected(what string, t lexeme, hint string) *syntaxFault {
	return &syntaxFault{t.start, "expected " + what + ", got " + shortened(t), hint}
}

// shortened is a lexeme as messages show it.
func shortened(t lexeme) string {
	if t.kind == lexemeEnd {
		return "the end"
	}
	return words.Shorten(t.text, 40)
}
