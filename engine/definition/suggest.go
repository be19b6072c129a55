package definition

import (
	"fmt"
	"slices"
	"strings"
)

// longestName is the length in bytes from which on a name gets no suggestion.
const longestName = 64

// didYouMean is a hint naming the candidate that is nearest to name, or listing
// the candidates where none is near and they are few; "" if there are none.
func didYouMean(name string, candidates []string) string {
	sorted := slices.Sorted(slices.Values(candidates))
	best, bestDistance := "", max(1, len(name)/3)+1
	for _, candidate := range sorted {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	const few = 12
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %s?", best)
	case len(sorted) == 0:
		return ""
	case len(sorted) > few:
		return "known are: " + strings.Join(sorted[:few], ", ") + ", …"
	}
	return "known are: " + strings.Join(sorted, ", ")
}

// distance is the number of letters to insert, remove, replace or swap with
// their neighbour to turn a into b; a large number where either is long.
func distance(a, b string) int {
	if len(a) > longestName || len(b) > longestName {
		return longestName
	}
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
