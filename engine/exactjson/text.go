package exactjson

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is the string that v is, decoded; ok is false for every other kind.
// A string without escapes is a part of v and costs nothing.
func (v Value) Text() (text string, ok bool) {
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	return unquote(string(v)), true
}

// unquote decodes a string token with its quotes.
func unquote(token string) string {
	inner := token[1 : len(token)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner
	}
	return string(appendUnescaped(make([]byte, 0, len(inner)), inner))
}

// appendUnescaped appends what the inside of a string token stands for.
func appendUnescaped(dst []byte, inner string) []byte {
	for i := 0; i < len(inner); i++ {
		c := inner[i]
		if c != '\\' || i+1 == len(inner) {
			dst = append(dst, c)
			continue
		}
		i++
		switch c := inner[i]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, size := decodeUnits(inner[i+1:])
			dst = utf8.AppendRune(dst, r)
			i += size
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// decodeUnits reads what follows \u: four digits, or both halves of a pair.
func decodeUnits(text string) (r rune, size int) {
	unit, ok := hex4(text)
	if !ok {
		return utf8.RuneError, 0
	}
	if utf16.IsSurrogate(unit) && len(text) >= 10 && text[4] == '\\' && text[5] == 'u' {
		if low, ok := hex4(text[6:]); ok {
			if pair := utf16.DecodeRune(unit, low); pair != utf8.RuneError {
				return pair, 10
			}
		}
	}
	return unit, 4 // AppendRune replaces a lone surrogate
}

// FromString is s as a JSON string. What is not UTF-8 in it becomes U+FFFD.
func FromString(s string) Value {
	return Value(AppendQuoted(make([]byte, 0, len(s)+2), s))
}

const hexDigits = "0123456789abcdef"

// AppendQuoted appends s as a JSON string with as few escapes as JSON allows,
// the form that RFC 8785 asks for. What is not UTF-8 in s becomes U+FFFD.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}
