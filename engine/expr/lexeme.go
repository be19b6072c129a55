package expr

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// lexemeKind says what a piece of an expression is.
type lexemeKind uint8

const (
	lexemeWord lexemeKind = iota + 1
	lexemeNumber
	lexemeText   // in quotes
	lexemeSymbol // an operator, a bracket, a comma …
	lexemeStray  // what no expression holds: = or @, or a text without its end
	lexemeEnd
)

// lexeme is a piece of an expression and where it begins, in bytes.
type lexeme struct {
	kind  lexemeKind
	start int
	text  string
}

func (t lexeme) end() int { return t.start + len(t.text) }

// unclosed reports whether t is a text without its end.
func (t lexeme) unclosed() bool {
	return t.kind == lexemeStray && (strings.HasSuffix(t.text, `"`) || strings.HasSuffix(t.text, "'"))
}

// is reports whether t is one of these symbols.
func (t lexeme) is(symbols ...string) bool {
	return t.kind == lexemeSymbol && slices.Contains(symbols, t.text)
}

// Symbols of the language, and others that authors know from elsewhere. Of those
// none can stand in an expression; the long ones are looked for first.
var (
	strangeLong  = []string{"===", "!=="}
	symbols      = []string{"&&", "||", "==", "!=", "<=", ">="}
	strangeShort = []string{"<>", "=<", "=>", "->", "**", "++", "??", "?:", ":=", "${"}
)

// lexemesOf takes an expression to pieces as the parser does, white space and
// comments left out. The last one is the end.
func lexemesOf(source string) []lexeme {
	var lexemes []lexeme
	for i := 0; i < len(source); {
		if blank := blankAt(source, i); blank > 0 {
			i += blank
			continue
		}
		t := lexemeAt(source, i)
		lexemes = append(lexemes, t)
		if t.kind == lexemeStray && t.text[0] != '`' {
			break // nobody looks further
		}
		i = t.end()
	}
	return append(lexemes, lexeme{kind: lexemeEnd, start: len(source)})
}

// lexemeFrom is the lexeme at an index or the first behind it.
func lexemeFrom(source string, i int) lexeme {
	lexemes := lexemesOf(source)
	for _, t := range lexemes {
		if t.start >= i {
			return t
		}
	}
	return lexemes[len(lexemes)-1]
}

// blankAt is the length of the white space or comment at i.
func blankAt(source string, i int) int {
	if strings.HasPrefix(source[i:], "//") {
		line, _, _ := strings.Cut(source[i:], "\n")
		return len(line)
	}
	return len(source[i:]) - len(strings.TrimLeft(source[i:], " \t\r\n\f"))
}

func lexemeAt(source string, i int) lexeme {
	rest := source[i:]
	word := wordLength(rest)
	switch c := rest[0]; {
	case c == '"' || c == '\'':
		return textAt(source, i, i)
	case c >= '0' && c <= '9', c == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		return lexeme{lexemeNumber, i, rest[:numberLength(rest)]}
	case word > 0 && len(rest) > word && (rest[word] == '"' || rest[word] == '\'') && isTextPrefix(rest[:word]):
		return textAt(source, i, i+word)
	case word > 0:
		return lexeme{lexemeWord, i, rest[:word]}
	}
	for _, list := range []struct {
		of   []string
		kind lexemeKind
	}{{strangeLong, lexemeStray}, {symbols, lexemeSymbol}, {strangeShort, lexemeStray}} {
		for _, symbol := range list.of {
			if strings.HasPrefix(rest, symbol) {
				return lexeme{list.kind, i, symbol}
			}
		}
	}
	if strings.IndexByte("[]{}().,-!?:+*/%<>", rest[0]) >= 0 {
		return lexeme{lexemeSymbol, i, rest[:1]}
	}
	if rest[0] == '`' {
		name, _, _ := strings.Cut(rest[1:], "`")
		return lexeme{lexemeStray, i, rest[:min(len(rest), len(name)+2)]}
	}
	_, size := utf8.DecodeRuneInString(rest)
	return lexeme{lexemeStray, i, rest[:size]}
}

// textAt is the text that begins at start and whose quote is at quote.
func textAt(source string, start, quote int) lexeme {
	end := stringEnd(source, quote)
	if end < 0 {
		return lexeme{lexemeStray, start, source[start : quote+1]}
	}
	return lexeme{lexemeText, start, source[start:end]}
}

func isTextPrefix(word string) bool {
	switch strings.ToLower(word) {
	case "r", "b", "rb", "br":
		return true
	}
	return false
}

func wordLength(s string) int {
	n := 0
	for n < len(s) && isWordByte(s[n]) && (n > 0 || s[n] < '0' || s[n] > '9') {
		n++
	}
	return n
}

// numberLength is the length of the number at the start of s.
func numberLength(s string) int {
	end := digitsEnd(s, 0, decimal)
	if hex := digitsEnd(s, 2, decimal+"abcdefABCDEF"); strings.HasPrefix(s, "0x") && hex > 2 {
		return hex + countAny(s[hex:], "uU")
	}
	whole := true
	if fraction := digitsEnd(s, end+1, decimal); end < len(s) && s[end] == '.' && fraction > end+1 {
		end, whole = fraction, false
	}
	exponent := end + countAny(s[end:], "eE")
	if exponent > end {
		sign := exponent + countAny(s[exponent:], "+-")
		if after := digitsEnd(s, sign, decimal); after > sign {
			return after
		}
	}
	if whole {
		end += countAny(s[end:], "uU")
	}
	return end
}

const decimal = "0123456789"

// digitsEnd is the index behind the digits that s has from an index on.
func digitsEnd(s string, from int, digits string) int {
	for from < len(s) && strings.IndexByte(digits, s[from]) >= 0 {
		from++
	}
	return from
}

// countAny is 1 if s begins with one of set, else 0.
func countAny(s, set string) int {
	if s != "" && strings.IndexByte(set, s[0]) >= 0 {
		return 1
	}
	return 0
}

// wrongEscape is where in a text in quotes a \ stands with what it does not go
// with; -1 where there is none.
func wrongEscape(text string) int {
	quote := strings.IndexAny(text, `"'`)
	if quote < 0 || strings.ContainsAny(text[:quote], "rR") {
		return -1
	}
	for i := quote; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if digits, known := escapes[text[i+1]]; !known || !areHex(text, i+2, digits) {
			return i
		}
		i++
	}
	return -1
}

// escapes are the characters that go behind a \, by the number of hexadecimal
// digits that follow. (Of an octal escape all digits are taken for hexadecimal.)
var escapes = map[byte]int{
	'a': 0, 'b': 0, 'f': 0, 'n': 0, 'r': 0, 't': 0, 'v': 0, '"': 0, '\'': 0, '`': 0, '?': 0, '\\': 0,
	'x': 2, 'X': 2, 'u': 4, 'U': 8, '0': 2, '1': 2, '2': 2, '3': 2,
}

func areHex(s string, from, n int) bool {
	return len(s) >= from+n && strings.Trim(s[from:from+n], "0123456789abcdefABCDEF") == ""
}
