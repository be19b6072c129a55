package exactjson

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of what Parse takes.
const (
	// MaxDepth is how deep arrays and objects may nest in data.
	MaxDepth = 256
	// MaxDigits is the number of digits that a number may have.
	MaxDigits = 1000
	// MaxExponent is the largest exponent of a number, and -MaxExponent the
	// smallest.
	MaxExponent = 400
)

// SyntaxError says why a text is not taken, and where. Path is the JSON pointer
// of the innermost value that could be located ("" is the whole document) and
// Offset counts bytes from the start of the text. Neither holds more of the
// text than the (shortened) keys of the path.
type SyntaxError struct {
	Path    string
	Offset  int
	Message string
}

// Error names the place and what is wrong there.
func (e *SyntaxError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("JSON, byte %d: %s", e.Offset, e.Message)
	}
	return fmt.Sprintf("JSON at %s, byte %d: %s", e.Path, e.Offset, e.Message)
}

// Parse takes exactly one JSON value and removes its insignificant white space;
// every token stays as it was written. It is stricter than RFC 8259 where a text
// could mean two things: duplicate keys, invalid UTF-8 and escapes of lone
// surrogates are refused. The error is a *SyntaxError.
func Parse(text []byte) (Value, error) {
	return ParseDepth(text, MaxDepth)
}

// ParseDepth is Parse with another bound on how deep arrays and objects nest.
func ParseDepth(text []byte, maxDepth int) (Value, error) {
	p := parser{text: text, maxDepth: maxDepth}
	p.skipSpace()
	err := p.value(0)
	if err == nil {
		p.skipSpace()
		if p.pos < len(text) {
			err = p.fault(p.pos, "expected the end after one JSON value, got "+p.got())
		}
	}
	if err != nil {
		return "", err
	}
	return Value(p.compact()), nil
}

// parser makes one pass over text. White space is cut out by copying the runs
// between it; a text without any is never copied piecewise.
type parser struct {
	text     []byte
	pos      int
	maxDepth int
	run      int // start of what is not in out yet
	out      strings.Builder
	keys     [][]byte // decoded keys of the objects that are open, outermost first
}

func (p *parser) compact() string {
	if p.out.Cap() == 0 {
		return string(p.text)
	}
	p.out.Write(p.text[p.run:p.pos])
	return p.out.String()
}

func (p *parser) skipSpace() {
	start := p.pos
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
			continue
		}
		break
	}
	if p.pos == start {
		return
	}
	if p.out.Cap() == 0 {
		p.out.Grow(len(p.text))
	}
	p.out.Write(p.text[p.run:start])
	p.run = p.pos
}

func (p *parser) fault(offset int, message string) *SyntaxError {
	return &SyntaxError{Offset: offset, Message: message}
}

// got describes what stands at pos, in a few characters.
func (p *parser) got() string {
	if p.pos >= len(p.text) {
		return "the end of the text"
	}
	r, size := utf8.DecodeRune(p.text[p.pos:])
	if r == utf8.RuneError && size == 1 {
		return fmt.Sprintf("the byte 0x%02x, which is not UTF-8", p.text[p.pos])
	}
	return fmt.Sprintf("%q", r)
}

// value takes the value at pos; open is the number of containers around it.
func (p *parser) value(open int) *SyntaxError {
	if p.pos >= len(p.text) {
		return p.fault(p.pos, "expected a JSON value, got the end of the text")
	}
	switch c := p.text[p.pos]; {
	case c == '"':
		_, err := p.str()
		return err
	case c == '{':
		return p.object(open)
	case c == '[':
		return p.array(open)
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case c == 't':
		return p.literal("true")
	case c == 'f':
		return p.literal("false")
	case c == 'n':
		return p.literal("null")
	}
	return p.fault(p.pos, "expected a JSON value, got "+p.got())
}

func (p *parser) literal(word string) *SyntaxError {
	if !bytes.HasPrefix(p.text[p.pos:], []byte(word)) {
		return p.fault(p.pos, "expected the word "+word)
	}
	p.pos += len(word)
	return nil
}

func (p *parser) enter(open int) *SyntaxError {
	if open >= p.maxDepth {
		return p.fault(p.pos, fmt.Sprintf("arrays and objects may nest %d deep, here starts one more", p.maxDepth))
	}
	p.pos++
	p.skipSpace()
	return nil
}

func (p *parser) array(open int) *SyntaxError {
	if err := p.enter(open); err != nil {
		return err
	}
	if p.next(']') {
		return nil
	}
	for index := 0; ; index++ {
		if err := p.value(open + 1); err != nil {
			err.Path = fmt.Sprintf("/%d%s", index, err.Path)
			return err
		}
		p.skipSpace()
		if p.next(']') {
			return nil
		}
		if !p.next(',') {
			return p.fault(p.pos, "expected a comma or ] in an array, got "+p.got())
		}
		p.skipSpace()
	}
}

func (p *parser) object(open int) *SyntaxError {
	if err := p.enter(open); err != nil {
		return err
	}
	if p.next('}') {
		return nil
	}
	seen := keySet{parser: p, base: len(p.keys)}
	for {
		if p.pos >= len(p.text) || p.text[p.pos] != '"' {
			return p.fault(p.pos, "expected a key in double quotes, got "+p.got())
		}
		if err := p.member(open, &seen); err != nil {
			return err
		}
		p.skipSpace()
		if p.next('}') {
			p.keys = p.keys[:seen.base]
			return nil
		}
		if !p.next(',') {
			return p.fault(p.pos, "expected a comma or } in an object, got "+p.got())
		}
		p.skipSpace()
	}
}

// member takes a key, its colon and its value.
func (p *parser) member(open int, seen *keySet) *SyntaxError {
	start := p.pos
	escaped, err := p.str()
	if err != nil {
		return err
	}
	key := p.text[start+1 : p.pos-1]
	if escaped {
		key = appendUnescaped(nil, string(key))
	}
	if !seen.add(key) {
		err := p.fault(start, "this key stands twice in one object; keep one of the two")
		err.Path = "/" + pathToken(key)
		return err
	}
	p.skipSpace()
	if !p.next(':') {
		err = p.fault(p.pos, "expected a colon after the key, got "+p.got())
	} else {
		p.skipSpace()
		err = p.value(open + 1)
	}
	if err != nil {
		err.Path = "/" + pathToken(key) + err.Path
	}
	return err
}

func (p *parser) next(c byte) bool {
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// keySet finds duplicate keys of one object: by comparing while there are few,
// by a map from then on.
type keySet struct {
	parser *parser
	base   int
	large  map[string]struct{}
}

const fewKeys = 16

func (s *keySet) add(key []byte) bool {
	if s.large != nil {
		if _, twice := s.large[string(key)]; twice {
			return false
		}
		s.large[string(key)] = struct{}{}
		return true
	}
	keys := s.parser.keys[s.base:]
	for _, other := range keys {
		if bytes.Equal(other, key) {
			return false
		}
	}
	s.parser.keys = append(s.parser.keys, key)
	if len(keys)+1 >= fewKeys {
		s.large = make(map[string]struct{}, 2*fewKeys)
		for _, other := range s.parser.keys[s.base:] {
			s.large[string(other)] = struct{}{}
		}
	}
	return true
}

// str takes the string at pos and reports whether it holds escapes.
func (p *parser) str() (escaped bool, fault *SyntaxError) {
	text := p.text
	i := p.pos + 1
	for i < len(text) {
		c := text[i]
		switch {
		case c == '"':
			p.pos = i + 1
			return escaped, nil
		case c == '\\':
			escaped = true
			size, message := escapeSize(text[i:])
			if message != "" {
				return true, p.fault(i, message)
			}
			i += size
		case c < ' ':
			return escaped, p.fault(i, fmt.Sprintf("a control character (0x%02x) stands in a string; write it as \\u%04x", c, c))
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && size == 1 {
				return escaped, p.fault(i, fmt.Sprintf("a string holds the byte 0x%02x, which is not UTF-8", c))
			}
			i += size
		}
	}
	return escaped, p.fault(p.pos, "this string has no closing quote")
}

// escapeSize is the length of the escape at the start of text (that of both
// halves for a surrogate pair), or a message if it is none that can be kept.
func escapeSize(text []byte) (size int, message string) {
	if len(text) < 2 {
		return 0, "an escape is cut off"
	}
	if text[1] != 'u' {
		if strings.IndexByte(`"\/bfnrt`, text[1]) < 0 {
			return 0, `expected one of \" \\ \/ \b \f \n \r \t \uXXXX`
		}
		return 2, ""
	}
	unit, ok := hex4(text[2:])
	switch {
	case !ok:
		return 0, `expected four hexadecimal digits after \u`
	case unit < 0xD800 || unit > 0xDFFF:
		return 6, ""
	case unit < 0xDC00 && len(text) >= 12 && text[6] == '\\' && text[7] == 'u':
		if low, ok := hex4(text[8:]); ok && low >= 0xDC00 && low <= 0xDFFF {
			return 12, ""
		}
	}
	return 0, fmt.Sprintf(`\u%04x is half of a surrogate pair, which is no character; send both halves or leave it out`, unit)
}

func hex4[T []byte | string](text T) (unit rune, ok bool) {
	if len(text) < 4 {
		return 0, false
	}
	for i := range 4 {
		c := text[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	return unit, true
}

// number takes the number at pos.
func (p *parser) number() *SyntaxError {
	start := p.pos
	p.next('-')
	whole := p.digits()
	switch {
	case whole == 0:
		return p.fault(p.pos, "expected a digit, got "+p.got())
	case whole > 1 && p.text[p.pos-whole] == '0':
		return p.fault(start, "a number may not start with 0; write it without, or as a string")
	}
	digits := whole
	if p.next('.') {
		fraction := p.digits()
		if fraction == 0 {
			return p.fault(p.pos, "expected a digit after the decimal point, got "+p.got())
		}
		digits += fraction
	}
	if p.next('e') || p.next('E') {
		if !p.next('+') {
			p.next('-')
		}
		size := p.digits()
		if size == 0 {
			return p.fault(p.pos, "expected a digit in the exponent, got "+p.got())
		}
		digits += size
		if exponent := bytes.TrimLeft(p.text[p.pos-size:p.pos], "0"); len(exponent) > 3 || atoi(exponent) > MaxExponent {
			return p.fault(start, fmt.Sprintf("the exponent of a number may be -%d to %d; send this one as a string", MaxExponent, MaxExponent))
		}
	}
	if digits > MaxDigits {
		return p.fault(start, fmt.Sprintf("a number may have %d digits, this one has %d; send it as a string", MaxDigits, digits))
	}
	return nil
}

func (p *parser) digits() int {
	start := p.pos
	for p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9' {
		p.pos++
	}
	return p.pos - start
}

// atoi reads a few digits that are known to be digits.
func atoi[T []byte | string](digits T) int {
	n := 0
	for i := range len(digits) {
		n = n*10 + int(digits[i]-'0')
	}
	return n
}
