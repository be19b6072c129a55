package expr

import (
	"unicode/utf8"

	"perigee/engine/exactjson"
)

// shorten cuts s to so many bytes.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// brief is a name or a number as a message shows it.
func brief(s string) string {
	s = shorten(s, 60)
	for i := 0; i < len(s); i++ {
		if !isWordByte(s[i]) && s[i] != '.' && s[i] != '-' && s[i] < utf8.RuneSelf {
			return string(exactjson.FromString(s))
		}
	}
	return s
}

// didYouMean is a hint with the candidate that is nearest to name, or "".
func didYouMean(name string, candidates []string) string {
	if len(name) < 3 {
		return ""
	}
	best, distance := "", max(1, len(name)/3)
	for _, candidate := range candidates {
		if d := editDistance(name, candidate, distance); d <= distance && (best == "" || d < distance) {
			best, distance = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// editDistance counts insertions, deletions, changes and swaps of neighbours;
// what is more than limit is limit+1.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
