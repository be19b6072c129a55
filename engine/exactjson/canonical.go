package exactjson

import (
	"strconv"
	"unicode/utf8"
)

// Canonical is v in the form of RFC 8785: keys sorted by UTF-16 code units, as
// few escapes as possible, numbers in the form of ECMAScript. Where that form
// would have another value than the number in v (it has at most 17 digits that
// mean something), the number keeps its text: two different values never have
// the same canonical form.
func Canonical(v Value) Value {
	return Value(canonical.append(make([]byte, 0, len(v)), v))
}

var canonical = form{number: appendCanonicalNumber, less: lessUTF16}

func appendCanonicalNumber(dst []byte, token string) []byte {
	f, err := strconv.ParseFloat(token, 64)
	if err != nil {
		return append(dst, token...) // beyond the largest double
	}
	var space [32]byte
	short := appendFloat(space[:0], f)
	if !Equal(Value(short), Value(token)) {
		return append(dst, token...)
	}
	return append(dst, short...)
}

// lessUTF16 orders as UTF-16 code units do: like bytes of UTF-8, except that
// what is above U+FFFF (surrogates, from 0xD800) comes before U+E000…U+FFFF.
func lessUTF16(a, b string) bool {
	for i := 0; i < len(a) && i < len(b); {
		left, size := utf8.DecodeRuneInString(a[i:])
		right, _ := utf8.DecodeRuneInString(b[i:])
		if left == right {
			i += size
			continue
		}
		if left > 0xFFFF != (right > 0xFFFF) {
			return unit(left) < unit(right)
		}
		return left < right
	}
	return len(a) < len(b)
}

// unit is the first UTF-16 code unit of r, near enough to be compared with that
// of a rune on the other side of U+FFFF.
func unit(r rune) rune {
	if r > 0xFFFF {
		return 0xD800
	}
	return r
}
