package definition

import (
	"cmp"
	"fmt"
	"slices"
)

// Codes of a Fault. docs/definition.md lists each with an example; a test
// compares the two. Faults of expressions and schemas carry the codes of
// engine/expr and engine/schema.
const (
	// The text itself.
	CodeTooLarge     = "too_large"     // beyond the bounds on size, commas or depth
	CodeEncoding     = "encoding"      // not UTF-8, or a control character
	CodeSyntax       = "syntax"        // YAML or JSON that does not parse
	CodeYAML         = "yaml"          // a part of YAML that is not taken: tags, merge keys, …
	CodeNumber       = "number"        // a number that JSON cannot say, or too long
	CodeDuplicateKey = "duplicate_key" // the same key twice in one object

	// Keys and values.
	CodeUnknownKey   = "unknown_key"    // a key that has no meaning here
	CodeMissingKey   = "missing_key"    // a key that must be there
	CodeNotInRelease = "not_in_release" // reserved for a later release
	CodeWrongType    = "wrong_type"     // text where a list is expected, …
	CodeBadName      = "bad_name"       // an id, name or code of the wrong form
	CodeBadVersion   = "bad_version"    // not SemVer, or with a build part
	CodeBadDuration  = "bad_duration"   // not exact, not a duration, or not above 0
	CodeBadMoment    = "bad_moment"     // not RFC 3339
	CodeOutOfRange   = "out_of_range"   // a number beyond its bounds
	CodeBadSchema    = "bad_schema"     // not JSON Schema 2020-12
	CodeLiteralOnly  = "literal_only"   // ${ where only literal text is taken

	// What the parts say together.
	CodeNoAction     = "no_action"     // an entry of steps without an action
	CodeTwoActions   = "two_actions"   // … or with more than one
	CodeNotAllowed   = "not_allowed"   // a key that does not go with this action or place
	CodeDuplicateID  = "duplicate_id"  // two steps of one id
	CodeUnknownStep  = "unknown_step"  // a step that does not exist
	CodeUnknownTask  = "unknown_task"  // a task that is not declared under tasks
	CodeUnknownName  = "unknown_name"  // a signal or a retry policy that is not declared
	CodeUnknownField = "unknown_field" // a field that the referenced value cannot have
	CodeCycle        = "cycle"         // steps that wait for each other
	CodeUnreachable  = "unreachable"   // a clause or branch that nothing can reach
	CodeUncatchable  = "uncatchable"   // a code that no catch may take
	CodeUnclear      = "unclear"       // a reference to a step in a form that is not taken
	CodeReservedTask = "reserved_task" // a task name that is kept for the engine

	// Warnings.
	CodeCommentCuts   = "comment_cuts"    // a comment right behind an expression
	CodeBooleanWord   = "boolean_word"    // yes, no, on, off: text, not a boolean
	CodeLooksLikeText = "looks_like_text" // an expression without ${ } in a template
	CodeMayBeSkipped  = "may_be_skipped"  // a field of a step that may not have run
	CodeMayBeAbsent   = "may_be_absent"   // an optional field, selected plainly
	CodeContract      = "contract"        // `with` does not fit the task's input
	CodeNoTimeout     = "no_timeout"      // nothing bounds a wait
	CodeUnused        = "unused"          // declared and never used
	CodeTooManyFaults = "too_many_faults" // the rest is left out
)

const (
	maxFaults = 500 // that one Parse reports
	maxShown  = 60  // characters of the author's text that a message repeats
)

// Error renders the fault as LINE:COLUMN: message (hint). Callers with a file
// put its name and a colon before it.
func (f Fault) Error() string {
	text := f.Message
	if f.Hint != "" {
		text += " (" + f.Hint + ")"
	}
	if f.Severity == SeverityWarning {
		text = "warning: " + text
	}
	if f.Line == 0 {
		return text
	}
	return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, text)
}

// HasErrors reports whether one of faults is an error.
func HasErrors(faults []Fault) bool {
	return slices.ContainsFunc(faults, func(f Fault) bool { return f.Severity == SeverityError })
}

// sortFaults orders by place and drops what is said twice (a value that is
// used through an alias, a condition that holds for several steps).
func sortFaults(faults []Fault) []Fault {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message),
		)
	})
	faults = slices.Compact(faults)
	if len(faults) <= maxFaults {
		return faults
	}
	rest := faults[maxFaults:]
	last := Fault{
		Code: CodeTooManyFaults, Severity: SeverityWarning,
		Line: rest[0].Line, Column: rest[0].Column,
		Message: fmt.Sprintf("%d more faults from here on are left out", len(rest)),
	}
	if HasErrors(rest) {
		last.Severity = SeverityError
	}
	return append(faults[:maxFaults:maxFaults], last)
}

// shown is text quoted for a message, cut where it is long.
func shown(text string) string {
	runes := []rune(text)
	if len(runes) > maxShown {
		text = string(runes[:maxShown]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
