package httpapi

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// query reads the parameters of a URL, as object reads a body: what is asked
// for is known, everything else is refused by done.
type query struct {
	values   url.Values
	asked    []string
	prefixes []string
	faults   faults
}

func (c *call) query() *query {
	q := &query{}
	values, err := url.ParseQuery(c.URL.RawQuery)
	if err != nil {
		q.faults.add("", "the query of the URL cannot be decoded: every %% is followed by two hexadecimal digits, and & separates parameters")
	}
	q.values = values
	return q
}

// done tells what was wrong.
func (q *query) done() error {
	for _, name := range q.names() {
		known := slices.Contains(q.asked, name) || slices.ContainsFunc(q.prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
		switch {
		case !known:
			q.faults.add(label(name), "unknown parameter; known here: %s", q.known())
		case len(q.values[name]) > 1:
			q.faults.add(label(name), "stands %d times in the query; give it once", len(q.values[name]))
		}
	}
	return q.faults.err("the query parameter ")
}

// names are the names in the query, in an order that is always the same.
func (q *query) names() []string { return slices.Sorted(maps.Keys(q.values)) }

func (q *query) known() string {
	list := slices.Clone(q.asked)
	for _, prefix := range q.prefixes {
		list = append(list, prefix+"NAME")
	}
	return orNone(strings.Join(list, ", "))
}

// label makes a name from the URL fit for an answer.
func label(name string) string {
	return shorten(strings.ToValidUTF8(name, "\uFFFD"))
}

func (q *query) text(name string) string {
	q.asked = append(q.asked, name)
	return q.checked(name)
}

func (q *query) checked(name string) string {
	v := q.values.Get(name)
	if len(v) > maxNameBytes || !plain(v) {
		q.faults.add(label(name), "expected at most %d bytes of UTF-8 without control characters", maxNameBytes)
		return ""
	}
	return v
}

// choice is one of the words of options, in any case.
func (q *query) choice(name string, options ...string) string {
	v := strings.ToUpper(q.text(name))
	if v != "" && !slices.Contains(options, v) {
		q.faults.add(name, "expected one of: %s", strings.Join(options, ", "))
	}
	return v
}

func (q *query) count(name string, least, most, otherwise int64) int64 {
	v := q.text(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < least || n > most {
		q.faults.add(name, "expected a whole number from %d to %d", least, most)
		return otherwise
	}
	return n
}

func (q *query) millis(name string) time.Duration {
	return time.Duration(q.count(name, 0, maxMillis, 0)) * time.Millisecond
}

// prefixed gathers the parameters prefixNAME by NAME, nil if there are none.
func (q *query) prefixed(prefix string) map[string]string {
	q.prefixes = append(q.prefixes, prefix)
	var m map[string]string
	for _, name := range q.names() {
		key, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if key == "" || !plain(key) {
			q.faults.add(label(name), "expected a name behind %s", prefix)
			continue
		}
		if m == nil {
			m = map[string]string{}
		}
		m[key] = q.checked(name)
	}
	return m
}
