package exactjson

import (
	"crypto/sha256"
	"encoding/hex"
	"sort"
)

// Equal reports whether a and b are the same JSON: the order of keys does not
// matter, numbers are compared by value and exactly (10, 10.0 and 1e1 are the
// same, 0 and -0 too), strings by content. Absent equals only absent.
func Equal(a, b Value) bool {
	if a == b {
		return true
	}
	kind := a.Kind()
	if kind != b.Kind() {
		return false
	}
	switch kind {
	case KindNumber:
		var left, right [64]byte
		return string(appendNormalNumber(left[:0], string(a))) == string(appendNormalNumber(right[:0], string(b)))
	case KindString:
		return unquote(string(a)) == unquote(string(b))
	case KindArray:
		return equalArrays(a, b)
	case KindObject:
		return equalObjects(a, b)
	}
	return false
}

func equalArrays(a, b Value) bool {
	var others []Value
	for other := range b.Elements() {
		others = append(others, other)
	}
	i := 0
	for element := range a.Elements() {
		if i == len(others) || !Equal(element, others[i]) {
			return false
		}
		i++
	}
	return i == len(others)
}

func equalObjects(a, b Value) bool {
	others := map[string]Value{}
	for key, other := range b.Members() {
		others[key] = other
	}
	n := 0
	for key, value := range a.Members() {
		other, ok := others[key]
		if !ok || !Equal(value, other) {
			return false
		}
		n++
	}
	return n == len(others)
}

// Hash is a digest of what v says: Hash(a) == Hash(b) exactly if Equal(a, b).
// It is the SHA-256 of a normal form, in hexadecimal.
func Hash(v Value) string {
	digest := sha256.Sum256(normal.append(make([]byte, 0, len(v)), v))
	return hex.EncodeToString(digest[:])
}

// form is a way to write values so that equal ones give equal text.
type form struct {
	number func(dst []byte, token string) []byte
	less   func(a, b string) bool
}

// normal is the form behind Hash. It is never shown: the form of its numbers
// is chosen for being exact.
var normal = form{number: appendNormalNumber, less: func(a, b string) bool { return a < b }}

func (f form) append(dst []byte, v Value) []byte {
	switch v.Kind() {
	case KindNumber:
		return f.number(dst, string(v))
	case KindString:
		return AppendQuoted(dst, unquote(string(v)))
	case KindArray:
		dst = append(dst, '[')
		first := true
		for element := range v.Elements() {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = f.append(dst, element)
		}
		return append(dst, ']')
	case KindObject:
		return f.appendObject(dst, v)
	}
	return append(dst, v...)
}

func (f form) appendObject(dst []byte, v Value) []byte {
	var members []Member
	for key, value := range v.Members() {
		members = append(members, Member{Key: key, Value: value})
	}
	sort.Slice(members, func(i, j int) bool { return f.less(members[i].Key, members[j].Key) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendQuoted(dst, m.Key), ':')
		dst = f.append(dst, m.Value)
	}
	return append(dst, '}')
}
