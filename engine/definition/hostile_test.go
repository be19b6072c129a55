package definition

import (
	"fmt"
	"strings"
	"testing"
)

// hostile is a large JSON definition with n entries of steps, made by part.
func hostile(n int, part func(i int) string) []byte {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = part(i)
	}
	return []byte(`{"name":"a","version":"1.0.0","steps":[` + strings.Join(parts, ",") + `]}`)
}

// Documents of faults, and those that make much of little, cost about what
// their size says; before the bounds each of these took minutes.
func TestParse_HostileDefinitionsEndSoon(t *testing.T) {
	plain := func(format string) func(int) string {
		return func(i int) string { return strings.ReplaceAll(format, "#", fmt.Sprint(i)) }
	}
	var keys strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&keys, `,"k%d":%d`, i, i)
	}
	for name, text := range map[string][]byte{
		"unknown keys":        hostile(1, plain(`{"id":"a","sleep":"1s"`+keys.String()+`}`)),
		"unknown steps":       hostile(10_000, plain(`{"id":"s#","sleep":"1s","after":["t#"]}`)),
		"unknown tasks":       hostile(20_000, plain(`{"id":"s#","task":"t#"}`)),
		"steps without order": hostile(25_000, plain(`{"id":"s#","sleep":"1s","after":[]}`)),
		"waiting for the first": hostile(20_000, func(i int) string {
			return fmt.Sprintf(`{"id":"s%d","sleep":"1s","after":["s%d"]}`, i, max(0, min(i-1, 1)))
		}),
		"a ring":         hostile(20_000, func(i int) string { return fmt.Sprintf(`{"id":"s%d","sleep":"1s","after":["s%d"]}`, i, (i+1)%20_000) }),
		"many templates": hostile(1, plain(`{"id":"s","compute":["`+strings.Repeat("${x}", 4_000)+`"]}`)),
		"many elements":  hostile(1, plain(`{"id":"s","compute":[`+strings.Repeat(`"${x}",`, 4_000)+`1]}`)),
	} {
		d, faults := Parse(text, JSON)
		if d == nil && (len(faults) == 0 || len(faults) > maxFaults+1) {
			t.Errorf("%s: %d faults", name, len(faults))
		}
	}
}
