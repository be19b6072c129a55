package definition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"perigee/engine/expr"
	"perigee/engine/schema"
)

// The paths of expressions are looked up in schemas, so both need one name for an
// element. Where they differ this has the key false twice and does not compile.
var _ = map[bool]struct{}{false: {}, expr.Each == schema.Each: {}}

// errorFields is what `error` has in a catch; the fields of execution, failure
// and of a step are checked by the expression's compiler.
var errorFields = closedShape{keys: []string{"code", "message", "retryable"}, optional: []string{"details"}}

// checkUses checks what every expression names, now that all steps are known.
func (c *compiler) checkUses() {
	for _, u := range c.uses {
		for _, ref := range u.program.Refs() {
			r := reference{compiler: c, use: u, Ref: ref}
			r.check()
		}
	}
}

// reference is one selection in a use.
type reference struct {
	*compiler
	*use
	expr.Ref
}

func (r *reference) report(severity, code, message, hint string) {
	n, at := r.inside(r.node, r.At, r.Offset)
	r.add(severity, code, at, n.path, message, hint)
}

func (r *reference) check() {
	if r.Root == "steps" {
		r.checkStep()
		return
	}
	known, prefix := r.known()
	r.checkFields(known, prefix, r.Path, r.Root)
}

// known is what is known of the value that the root stands for, with the path
// that leads to it.
func (r *reference) known() (shape, []string) {
	switch r.Root {
	case "input":
		return schemaShape{r.def.Input}, nil
	case "error":
		if r.scope.Error {
			return errorFields, nil
		}
	case "item":
		if r.owner != nil && r.scope.Item {
			return r.items()
		}
	case "output":
		if r.owner != nil && r.scope.Output {
			return r.ownOutput(), nil
		}
	}
	return openShape{}, nil
}

// ownOutput is the output that a compensation undoes; that of an uncertain
// attempt is null.
func (r *reference) ownOutput() shape {
	if r.owner.WhenUncertain {
		return openShape{}
	}
	return outputOf(r.owner.Call)
}

var plainSelection = regexp.MustCompile(`^(input|steps\.[A-Za-z_][A-Za-z0-9_]*\.output)((\.[A-Za-z_][A-Za-z0-9_]*)*)$`)

// items is what is known of an element, where `for` is a plain selection.
func (r *reference) items() (shape, []string) {
	n := r.owner.node.get("for")
	if !n.isString() {
		return openShape{}, nil
	}
	match := plainSelection.FindStringSubmatch(conditionText(n))
	if match == nil {
		return openShape{}, nil
	}
	var known shape = schemaShape{r.def.Input}
	if match[1] != "input" {
		target := r.target(strings.Split(match[1], ".")[1])
		if target == nil || target.For != nil {
			return openShape{}, nil
		}
		known = target.output
	}
	var path []string
	if match[2] != "" {
		path = strings.Split(match[2][1:], ".")
	}
	return known, append(path, schema.Each)
}

// target is the step that an id names here.
func (r *reference) target(id string) *stepInfo {
	if r.list != nil {
		if s := r.list.byID[id]; s != nil {
			return s
		}
	}
	return r.main.byID[id]
}

func (r *reference) checkStep() {
	if len(r.Path) == 0 {
		return // the expression's compiler says so
	}
	id := r.Path[0].Name
	if r.faulty && id == expr.Each {
		return // here as well
	}
	target := r.target(id)
	if target == nil {
		seen := []map[string]*stepInfo{r.main.byID}
		if r.list != nil && r.list != r.main {
			seen = append(seen, r.list.byID)
		}
		r.report(SeverityError, CodeUnknownStep, fmt.Sprintf("%s: there is no step %s", r.what, shown(id)), near(r.compiler, id, seen...))
		return
	}
	if len(r.Path) > 2 && r.Path[1].Name == "output" {
		r.checkOutput(target)
	}
}

// checkOutput checks a selection from the output of target.
func (r *reference) checkOutput(target *stepInfo) {
	if target.For != nil && r.Path[2].Name != schema.Each {
		r.report(SeverityError, CodeUnknownField, fmt.Sprintf("%s: steps.%s.output is a list, one output for each element; it has no field %s", r.what, target.ID, shown(r.Path[2].Name)),
			fmt.Sprintf("write steps.%s.output[0].%s, or walk it with map or filter", target.ID, r.Path[2].Name))
		return
	}
	guarded := r.Path[1].Optional || r.Path[2].Optional
	if why := r.mayBeNull(target); why != "" && !guarded {
		r.report(SeverityWarning, CodeMayBeSkipped, fmt.Sprintf("%s: step %s %s, and then its output is null", r.what, target.ID, why),
			fmt.Sprintf("write %s, with .orValue(…) for what to take then", optionalForm("steps."+target.ID+".output", r.Path[2].Name)))
	}
	path, from := r.Path[2:], "steps."+target.ID+".output"
	if guarded {
		path = optional(path)
	}
	if target.For != nil {
		path, from = path[1:], from+"[]"
	}
	r.checkFields(target.output, nil, path, from)
}

// optional is path with its first step marked: what is behind it is as well.
func optional(path []expr.Segment) []expr.Segment {
	path = slices.Clone(path)
	path[0].Optional = true
	return path
}

// mayBeNull says why the output of target may be null here; "" if it cannot.
func (r *reference) mayBeNull(target *stepInfo) string {
	for _, condition := range target.conditions {
		if !slices.Contains(r.holds, condition.text) {
			return "may be skipped"
		}
	}
	if r.early && target.list == r.main && !r.runsBefore(target) {
		return "may not have run"
	}
	for _, clause := range target.Catch {
		if clause.Output == nil {
			return "may end in a caught failure"
		}
	}
	return ""
}

// runsBefore reports whether the step that the expression belongs to starts
// after target is resolved. It only serves a warning, and gives up (with true)
// where the way is long.
func (r *reference) runsBefore(target *stepInfo) bool {
	if r.owner == nil || r.owner.list != target.list {
		return false
	}
	steps := r.owner.list.steps
	seen := make([]bool, len(steps))
	open := []int{r.owner.Index}
	const most = 10_000
	for visited := 0; len(open) > 0; {
		last := open[len(open)-1]
		open = open[:len(open)-1]
		for _, p := range steps[last].Predecessors {
			if visited++; p == target.Index || visited > most {
				return true
			}
			if !seen[p] {
				seen[p] = true
				open = append(open, p)
			}
		}
	}
	return false
}

// checkFields follows path through known, below prefix.
func (r *reference) checkFields(known shape, prefix []string, path []expr.Segment, from string) {
	names := slices.Clone(prefix)
	optional := false
	for i, segment := range path {
		names = append(names, segment.Name)
		optional = optional || segment.Optional
		switch known.lookup(names) {
		case schema.Unlisted:
			hint := ""
			if i == 0 && len(prefix) == 0 {
				hint = didYouMean(segment.Name, known.fields())
			}
			r.report(SeverityError, CodeUnknownField, fmt.Sprintf("%s: %s has no field %s", r.what, selection(from, path[:i]), shown(segment.Name)), hint)
			return
		case schema.Optional:
			if !optional {
				r.report(SeverityWarning, CodeMayBeAbsent, fmt.Sprintf("%s: %s may be absent", r.what, selection(from, path[:i+1])),
					fmt.Sprintf("write %s, with .orValue(…) for what to take then", optionalForm(selection(from, path[:i]), segment.Name)))
			}
		}
	}
}

// selection is how an author writes path behind from.
func selection(from string, path []expr.Segment) string {
	for _, segment := range path {
		switch {
		case segment.Name == schema.Each:
			from += "[…]"
		case stepID.pattern.MatchString(segment.Name):
			from += "." + segment.Name
		default:
			from += fmt.Sprintf("[%q]", segment.Name)
		}
	}
	return from
}

func optionalForm(from, name string) string {
	switch {
	case name == schema.Each:
		return from + "[?…]"
	case stepID.pattern.MatchString(name):
		return from + ".?" + name
	}
	return fmt.Sprintf("%s[?%q]", from, name)
}

// warnUnbounded warns of waits that nothing ends, and of what is never used.
func (c *compiler) warnUnbounded(root *node) {
	if root.kind != kindObject {
		return
	}
	if root.get("timeout") == nil {
		c.warn(root, CodeNoTimeout, "an execution may run without end", "give the definition a timeout, such as timeout: 24h")
	}
	if len(c.waits) > 0 {
		first := c.waits[0]
		c.warn(first, CodeNoTimeout, fmt.Sprintf("%d task(s), from here on, wait for a worker without end if none offers them", len(c.waits)),
			"give them a queue_timeout, or all at once: defaults: { queue_timeout: 1h }")
	}
	for _, section := range []string{"tasks", "retry_policies"} {
		for _, m := range root.get(section).object() {
			if !c.used[section+"/"+m.key] {
				c.add(SeverityWarning, CodeUnused, m.at, m.node.path, fmt.Sprintf("%s is declared and never used", shown(m.key)), "")
			}
		}
	}
}
