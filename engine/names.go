package engine

import (
	"maps"
	"slices"
	"strings"
)

// declaredNames lists what there is, for the message about what there is not.
func declaredNames[V any](m map[string]V) string {
	if len(m) == 0 {
		return "it declares none"
	}
	return "declared: " + strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
