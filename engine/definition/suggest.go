package definition

import (
	"fmt"
	"slices"
	"strings"

	"perigee/engine/words"
)

// didYouMean is a hint naming the candidate that is nearest to name, or listing
// the candidates where none is near and they are few; "" if there are none.
func didYouMean(name string, candidates []string) string {
	sorted := slices.Sorted(slices.Values(candidates))
	best := words.Nearest(name, sorted)
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
