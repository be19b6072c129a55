package httpapi

import (
	"strings"

	"perigee/engine"
	"perigee/engine/exactjson"
)

// A result whose payload cannot be taken must still end its attempt: a worker
// would send it for ever, or give up, and the task would hang until its
// deadline. So where a body as a whole is refused, its outermost members are
// told apart without looking into them, which needs no more than balanced
// brackets and closed strings; then each is parsed by itself.

// envelope is a report with its payload taken or named as broken.
type envelope struct {
	*object
	// broken says, by member, why its value cannot be taken.
	broken map[string]string
}

// parseEnvelope reads one report: token, output or error, and so on.
func parseEnvelope(text []byte, path string) (envelope, error) {
	v, err := exactjson.ParseDepth(text, exactjson.MaxDepth+1)
	if err == nil && v.Kind() == exactjson.KindObject {
		o := newObject(v, false)
		o.path = path
		return envelope{object: o}, nil
	}
	if err == nil {
		return envelope{}, errorf(engine.InvalidRequest, "the body%s: expected a JSON object, got %s", atPath(path), aKind(v))
	}
	members, complete := scanMembers(string(text))
	if !complete {
		return envelope{}, syntaxError(err, path)
	}
	e := envelope{object: &object{path: path, faults: new(faults)}, broken: map[string]string{}}
	for _, m := range members {
		depth := exactjson.MaxDepth
		if m.key == "error" {
			depth++ // the details are one level down
		}
		value, err := exactjson.ParseDepth([]byte(m.text), depth)
		switch {
		case err == nil:
			e.members = append(e.members, exactjson.Member{Key: m.key, Value: value})
		case m.key == "output" || m.key == "error":
			e.broken[m.key] = err.Error()
			e.members = append(e.members, exactjson.Member{Key: m.key, Value: exactjson.Null})
		default:
			return envelope{}, syntaxError(err, exactjson.JoinPointer(path, shorten(m.key)))
		}
	}
	return e, nil
}

// tokenIn finds the token in the beginning of a report that is too long to be
// read whole; "" if it does not stand there.
func tokenIn(text []byte) string {
	members, _ := scanMembers(string(text))
	for _, m := range members {
		if m.key != "token" {
			continue
		}
		if v, err := exactjson.Parse([]byte(m.text)); err == nil {
			token, _ := v.Text()
			return token
		}
	}
	return ""
}

// rawMember is a member whose value has not been looked into.
type rawMember struct{ key, text string }

// scanMembers tells the members of the object that s is apart. complete is
// false where s is no such object to its end, or has a key twice; the members
// before that place are given still.
func scanMembers(s string) (members []rawMember, complete bool) {
	seen := map[string]bool{}
	i := space(s, 0)
	if !at(s, i, '{') {
		return nil, false
	}
	if i = space(s, i+1); at(s, i, '}') {
		return nil, space(s, i+1) == len(s)
	}
	for {
		end, ok := skipRaw(s, i)
		if !ok || s[i] != '"' {
			return members, false
		}
		key, err := exactjson.Parse([]byte(s[i:end]))
		name, _ := key.Text()
		if i = space(s, end); err != nil || seen[name] || !at(s, i, ':') {
			return members, false
		}
		seen[name] = true
		start := space(s, i+1)
		if end, ok = skipRaw(s, start); !ok {
			return members, false
		}
		members = append(members, rawMember{name, s[start:end]})
		switch i = space(s, end); {
		case at(s, i, '}'):
			return members, space(s, i+1) == len(s)
		case !at(s, i, ','):
			return members, false
		}
		i = space(s, i+1)
	}
}

// scanElements does the same for the elements of an array.
func scanElements(s string) (elements []string, complete bool) {
	i := space(s, 0)
	if !at(s, i, '[') {
		return nil, false
	}
	if i = space(s, i+1); at(s, i, ']') {
		return nil, space(s, i+1) == len(s)
	}
	for {
		end, ok := skipRaw(s, i)
		if !ok {
			return elements, false
		}
		elements = append(elements, s[i:end])
		switch i = space(s, end); {
		case at(s, i, ']'):
			return elements, space(s, i+1) == len(s)
		case !at(s, i, ','):
			return elements, false
		}
		i = space(s, i+1)
	}
}

func at(s string, i int, c byte) bool { return i < len(s) && s[i] == c }

func space(s string, i int) int {
	for i < len(s) && strings.IndexByte(" \t\r\n", s[i]) >= 0 {
		i++
	}
	return i
}

// skipRaw is the index behind the value at i; ok is false where it does not end
// within s.
func skipRaw(s string, i int) (end int, ok bool) {
	depth := 0
	for start := i; i < len(s); i++ {
		switch s[i] {
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
			if i >= len(s) {
				return i, false
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i, i > start // the bracket around a number or word
			}
			depth--
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i, i > start
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1, true
		}
	}
	return i, false
}
