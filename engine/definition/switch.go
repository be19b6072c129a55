package definition

import (
	"fmt"
	"slices"
	"strings"

	"perigee/engine/exactjson"
	"perigee/engine/expr"
)

// branches rewrites a switch: the steps of each branch get a condition made of
// its own and the negation of all before it.
func (c *compiler) branches(list *stepList, n *node, around []condition) [][]entry {
	if !c.nonEmptyList(n, "switch") {
		return nil
	}
	var group [][]entry
	var before []string
	items := n.array()
	for i, branch := range items {
		if !c.isObject(branch, "a branch of a switch") {
			continue
		}
		when := c.branchWhen(list, branch, i == len(items)-1, around)
		text := strings.Join(before, " && ")
		if when != nil {
			own := conditionText(when)
			text = strings.Join(append(before[:len(before):len(before)], grouped(own)), " && ")
			before = append(before, "!"+grouped(own))
		}
		inside := around
		if text != "" {
			inside = append(around[:len(around):len(around)], c.rewritten(list, text))
		}
		steps := branch.get("steps")
		switch {
		case steps == nil:
			c.fault(branch, CodeMissingKey, "a branch of a switch must have steps", "")
		case c.nonEmptyList(steps, "steps"):
			group = append(group, c.entries(list, steps.array(), inside))
		}
	}
	if len(before) == 0 && c.check {
		c.fault(n, CodeMissingKey, "a switch must have a branch with when", "")
	}
	return group
}

// branchWhen checks the keys of a branch and gives its condition, nil for
// otherwise.
func (c *compiler) branchWhen(list *stepList, branch *node, last bool, around []condition) *node {
	if c.check {
		for _, m := range branch.object() {
			if !slices.Contains([]string{"when", "otherwise", "steps"}, m.key) {
				code, hint := CodeUnknownKey, didYouMean(m.key, []string{"when", "otherwise", "steps"})
				if slices.Contains(allStepKeys, m.key) {
					code, hint = CodeNotAllowed, "put it on the steps of the branch"
				}
				c.faultAtMember(m, code, fmt.Sprintf("a branch of a switch has no key %s", shown(m.key)), hint)
			}
		}
	}
	when, otherwise := branch.get("when"), branch.get("otherwise")
	switch {
	case when != nil && otherwise != nil:
		c.faultAtKey(branch, "otherwise", CodeTwoActions, "a branch has either when or otherwise", "")
	case when == nil && otherwise == nil:
		c.fault(branch, CodeMissingKey, "a branch of a switch must have when, or otherwise: true", "")
	case otherwise != nil && otherwise.text != "true":
		c.wrongType(otherwise, "otherwise", "true", "")
	case otherwise != nil && !last:
		c.faultAtKey(branch, "otherwise", CodeUnreachable, "the branches behind otherwise are never reached", "put it last")
	}
	if when != nil {
		c.condition(list, when, around)
	}
	return when
}

// conditionText is the expression of a `when`, without ${ } around it.
func conditionText(n *node) string {
	text := strings.TrimSpace(n.text)
	if inner, ok := strings.CutPrefix(text, "${"); ok && strings.HasSuffix(inner, "}") {
		return strings.TrimSpace(inner[:len(inner)-1])
	}
	return text
}

// grouped is an expression in parentheses; a comment at its end must not take
// the closing one.
func grouped(text string) string {
	if strings.Contains(text, "//") {
		return "(" + text + "\n)"
	}
	return "(" + text + ")"
}

// rewritten compiles a condition that was checked in its parts before.
func (c *compiler) rewritten(list *stepList, text string) condition {
	program := expr.LoadExpression(text, list.scope())
	return condition{text: text, program: program, refs: c.stepRefs(program, &node{kind: exactjson.KindString, text: text}, true)}
}
