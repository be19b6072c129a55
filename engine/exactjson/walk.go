package exactjson

import (
	"iter"
	"strings"
)

// Member is one key of an object with its value.
type Member struct {
	Key   string
	Value Value
}

// Members yields the keys (decoded) and values of an object in the order in
// which they were written; it yields nothing for every other kind.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for token, value := range v.Tokens() {
			if !yield(unquote(string(token)), value) {
				return
			}
		}
	}
}

// Tokens is Members with each key as it was written, a JSON string.
func (v Value) Tokens() iter.Seq2[Value, Value] {
	return func(yield func(key, value Value) bool) {
		if v.Kind() != KindObject {
			return
		}
		s := string(v)
		for i := 1; i < len(s) && s[i] == '"'; i++ {
			end := skipString(s, i)
			token := Value(s[i:end])
			start := min(end+1, len(s))
			i = skip(s, start)
			if !yield(token, Value(s[start:i])) {
				return
			}
		}
	}
}

// Elements yields the elements of an array; nothing for every other kind.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != KindArray || len(v) <= 2 {
			return
		}
		s := string(v)
		for i := 1; i < len(s)-1; i++ {
			end := skip(s, i)
			if !yield(Value(s[i:end])) {
				return
			}
			i = end
		}
	}
}

// Get is the member of an object named key, absent if there is none or if v is
// no object.
func (v Value) Get(key string) Value {
	for token, value := range v.Tokens() {
		if tokenIs(string(token), key) {
			return value
		}
	}
	return ""
}

// tokenIs compares a key as it was written with a decoded one.
func tokenIs(token, key string) bool {
	inner := token[1 : len(token)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner == key
	}
	return unquote(token) == key
}

// Len is the number of members of an object or of elements of an array, and 0
// for every other kind.
func (v Value) Len() int {
	n := 0
	switch v.Kind() {
	case KindObject:
		for range v.Tokens() {
			n++
		}
	case KindArray:
		for range v.Elements() {
			n++
		}
	}
	return n
}

// Array is the array of values; an absent one becomes null.
func Array(values []Value) Value {
	size := 2
	for _, value := range values {
		size += len(value) + 1
	}
	dst := append(make([]byte, 0, size), '[')
	for i, value := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, value.OrNull()...)
	}
	return Value(append(dst, ']'))
}

// Object is the object of members, in their order; one whose value is absent is
// left out. The caller sees to it that no key is there twice.
func Object(members []Member) Value {
	size := 2
	for _, m := range members {
		size += len(m.Key) + len(m.Value) + 4
	}
	dst := append(make([]byte, 0, size), '{')
	for _, m := range members {
		if m.Value == "" {
			continue
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(AppendQuoted(dst, m.Key), ':')
		dst = append(dst, m.Value...)
	}
	return Value(append(dst, '}'))
}

// skip is the index behind the value that starts at i.
func skip(s string, i int) int {
	if i >= len(s) {
		return len(s)
	}
	switch s[i] {
	case '"':
		return skipString(s, i)
	case '{', '[':
		return skipContainer(s, i)
	}
	for i < len(s) && s[i] != ',' && s[i] != '}' && s[i] != ']' {
		i++
	}
	return i
}

func skipString(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

func skipContainer(s string, i int) int {
	for open := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			i = skipString(s, i) - 1
		case '{', '[':
			open++
		case '}', ']':
			if open--; open == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// Depth is how deep the arrays and objects of v nest: 0 for a scalar, 1 for [].
func (v Value) Depth() int {
	open, deepest := 0, 0
	s := string(v)
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			i = skipString(s, i) - 1
		case '{', '[':
			open++
			deepest = max(deepest, open)
		case '}', ']':
			open--
		}
	}
	return deepest
}
