package words

import (
	"strings"
	"unicode/utf8"
)

// Shorten cuts s to so many bytes, at the beginning of a character, and says so
// by an ellipsis.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// longest is the length in bytes beyond which names are not compared: the time
// that takes grows with its square.
const longest = 64

// Nearest is the candidate that name may have been meant to be, the first of
// several as near; "" where none is near. A third of its letters may differ, case
// does not count.
func Nearest(name string, candidates []string) string {
	if len(name) > longest {
		return ""
	}
	name = strings.ToLower(name)
	best, least := "", max(1, len(name)/3)+1
	for _, candidate := range candidates {
		if len(candidate) > longest {
			continue
		}
		if d := distance(name, strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance is how many bytes have to be inserted, removed, replaced or swapped
// with their neighbour to turn a into b (optimal string alignment, the restricted
// Damerau-Levenshtein distance).
func distance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := above[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(above[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
