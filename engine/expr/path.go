package expr

import (
	"regexp"
	"strings"

	"cel.dev/cel-go/common/types/ref"
)

// Most expressions of a workflow only say where a value is: input, or
// steps.reserve.output.id. They are followed without CEL, which would have to
// compile each of them first: a hundred microseconds, against one. What cannot be
// followed to its end is left to CEL, which says why; so are computations.

// plainPath is a name in scope and the members that are selected from it.
var plainPath = regexp.MustCompile(`^\s*[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\["[\w-]+"\]|\['[\w-]+'\])*\s*$`)

// pathCost is more than following a path costs in CEL's units; with a lower
// limit CEL decides.
const pathCost = 1000

// pathOf takes a plain path apart; nil for any other expression. The source is
// known to compile.
func pathOf(source string) []string {
	if len(source) > pathCost || !plainPath.MatchString(source) {
		return nil
	}
	return strings.FieldsFunc(source, func(r rune) bool { return strings.ContainsRune(".[]\"' \t\r\n", r) })
}

// follow is the value at the end of e's path, false where e has none or the
// values end before it does.
func (e *expression) follow(act *activation, limit uint64) (ref.Val, bool) {
	e.parted.Do(func() { e.path = pathOf(e.source) })
	if e.path == nil || limit < pathCost {
		return nil, false
	}
	var value any
	value, found := act.ResolveName(e.path[0])
	for _, name := range e.path[1:] {
		if !found {
			return nil, false
		}
		parent, ok := value.(interface{ FindStringKey(string) (any, bool) })
		if !ok {
			return nil, false
		}
		value, found = parent.FindStringKey(name)
	}
	v, ok := value.(ref.Val)
	return v, ok && found
}
