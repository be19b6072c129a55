package exactjson

import (
	"math"
	"strconv"
	"strings"
)

// FromInt is n as a JSON number.
func FromInt(n int64) Value {
	return Value(strconv.FormatInt(n, 10))
}

// FromFloat is f in the form of RFC 8785 (that of ECMAScript): the shortest
// digits that give f again. ok is false for NaN and the infinities, which JSON
// cannot say.
func FromFloat(f float64) (v Value, ok bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "", false
	}
	return Value(appendFloat(nil, f)), true
}

// appendFloat writes a finite double. strconv finds the same digits as
// ECMAScript; only the choice of notation, the exponent's leading zero and the
// sign of zero are left to do.
func appendFloat(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0')
	}
	if size := math.Abs(f); size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// Int64 is the number that v is if it is whole by value (10, 10.0 and 1e1 are)
// and fits; otherwise ok is false.
func (v Value) Int64() (n int64, ok bool) {
	if v.Kind() != KindNumber {
		return 0, false
	}
	if !strings.ContainsAny(string(v), ".eE") {
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return 0, false
		}
		return n, true
	}
	var space [64]byte
	normal := string(appendNormalNumber(space[:0], string(v)))
	digits, exponent, _ := strings.Cut(normal, "e")
	zeros, err := strconv.Atoi(exponent)
	if err != nil || zeros < 0 || zeros > 19 {
		return 0, normal == "0"
	}
	if n, err = strconv.ParseInt(digits+strings.Repeat("0", zeros), 10, 64); err != nil {
		return 0, false
	}
	return n, true
}

// Whole reports whether v is a number without a fraction, by value: 1.50e1 is.
func (v Value) Whole() bool {
	if v.Kind() != KindNumber {
		return false
	}
	if !strings.ContainsAny(string(v), ".eE") {
		return true
	}
	var space [64]byte
	_, exponent, _ := strings.Cut(string(appendNormalNumber(space[:0], string(v))), "e")
	return !strings.HasPrefix(exponent, "-")
}

// Float64 is the double nearest to the number that v is, an infinity where that
// is out of range; ok is false for every other kind.
func (v Value) Float64() (f float64, ok bool) {
	if v.Kind() != KindNumber {
		return 0, false
	}
	f, _ = strconv.ParseFloat(string(v), 64) // out of range gives ±Inf, tiny gives 0
	return f, true
}

// appendNormalNumber appends a number such that equal values, and only those,
// give equal text: the digits without zeros at either end, e, and the exponent
// of the last of them; "0" for zero of either sign.
func appendNormalNumber(dst []byte, s string) []byte {
	start := len(dst)
	if s[0] == '-' {
		dst = append(dst, '-')
		s = s[1:]
	}
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		exponent = parseExponent(s[i+1:])
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent -= len(fraction)
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		fraction = strings.TrimLeft(fraction, "0")
	}
	first := len(dst)
	dst = append(append(dst, whole...), fraction...)
	for len(dst) > first && dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
		exponent++
	}
	if len(dst) == first {
		return append(dst[:start], '0')
	}
	return strconv.AppendInt(append(dst, 'e'), int64(exponent), 10)
}

func parseExponent(s string) int {
	switch {
	case s != "" && s[0] == '-':
		return -atoi(s[1:])
	case s != "" && s[0] == '+':
		return atoi(s[1:])
	}
	return atoi(s)
}
