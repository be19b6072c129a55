package history

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	compensationPrefix = "compensate:"
	handlerPrefix      = "on_"
	// maxIDLength is the length in bytes that an execution's id may have.
	maxIDLength = 200
)

// ElementKey is the unit key of element i, counted from 0, of a `for` step.
func ElementKey(step string, i int) string {
	return step + "[" + strconv.Itoa(i) + "]"
}

// CompensationKey is the unit key of what undoes a unit.
func CompensationKey(unit string) string { return compensationPrefix + unit }

// HandlerKey is the unit key of a step of a handler; kind is one of the
// Handler… constants.
func HandlerKey(kind, step string) string { return handlerPrefix + kind + ":" + step }

// Key is a unit key taken apart.
type Key struct {
	Compensation bool   // "compensate:…"
	Handler      string // the kind of "on_<kind>:…", else ""
	Step         string // the step's id, without prefix and index
	Index        int    // of an element, else -1
	Unit         string // the key without "compensate:": the unit undone
}

// ParseKey takes a unit key apart. Every text is some key: what has none of the
// known shapes is the id of a step.
func ParseKey(key string) Key {
	k := Key{Unit: key, Index: -1}
	k.Unit, k.Compensation = strings.CutPrefix(key, compensationPrefix)
	k.Step = k.Unit
	if kind, step, ok := handlerStep(k.Unit); ok {
		k.Handler, k.Step = kind, step
	}
	if step, i, ok := element(k.Step); ok {
		k.Step, k.Index = step, i
	}
	return k
}

// IsCleanup reports whether a unit belongs to the winding down of an execution:
// a compensation or a step of a handler.
func IsCleanup(key string) bool {
	if strings.HasPrefix(key, compensationPrefix) {
		return true
	}
	_, _, ok := handlerStep(key)
	return ok
}

func handlerStep(key string) (kind, step string, ok bool) {
	rest, ok := strings.CutPrefix(key, handlerPrefix)
	if !ok {
		return "", "", false
	}
	kind, step, ok = strings.Cut(rest, ":")
	switch kind {
	case HandlerFailure, HandlerCancel, HandlerTimeout:
		return kind, step, ok
	}
	return "", "", false
}

// element takes `step[i]` apart, where i is written as ElementKey writes it.
func element(key string) (step string, index int, ok bool) {
	inner, ok := strings.CutSuffix(key, "]")
	if !ok {
		return "", 0, false
	}
	step, digits, ok := strings.Cut(inner, "[")
	if !ok {
		return "", 0, false
	}
	index, err := strconv.Atoi(digits)
	if err != nil || index < 0 || strconv.Itoa(index) != digits {
		return "", 0, false
	}
	return step, index, true
}

// childUnit writes a unit key with what an execution's id may hold.
var childUnit = strings.NewReplacer(compensationPrefix, "compensate.", "[", ".", "]", "")

// ChildID is the id of the execution that a unit of parent starts. It depends
// on nothing else, so that starting the child twice is a no-op. An id that
// would be too long keeps its beginning and ends with a digest of the whole.
func ChildID(parent, unitKey string) string {
	id := parent + "." + childUnit.Replace(unitKey)
	if len(id) <= maxIDLength {
		return id
	}
	digest := sha256.Sum256([]byte(id))
	suffix := "." + hex.EncodeToString(digest[:16])
	return id[:maxIDLength-len(suffix)] + suffix
}
