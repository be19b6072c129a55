package definition

import (
	"fmt"
	"regexp"

	"perigee/engine/exactjson"
	"perigee/engine/expr"
)

// use is one expression or template in its context.
type use struct {
	what  string // the key it stands under, for messages
	scope expr.Scope
	list  *stepList // whose ids are seen first; nil: the main list
	owner *stepInfo // the step that it belongs to; nil: none
	// edge: a step that is named here is waited for.
	edge bool
	// early: steps that are named here may not have run.
	early bool
	// holds are the conditions that are true wherever this is evaluated.
	holds []string

	program    *expr.Program
	node       *node
	expression bool // of a node that is text
	faulty     bool // has an expression of which a fault was reported
}

// expression compiles a value that is an expression if it is text, and a
// literal or template otherwise.
func (c *compiler) expression(n *node, u use) *expr.Program {
	if !n.isString() {
		return c.template(n, u)
	}
	u.expression = true
	if !c.check {
		return c.record(n, u, expr.LoadExpression(n.text, u.scope))
	}
	c.warnComment(n)
	program, problems := expr.Expression(n.text, u.scope)
	u.faulty = c.problems(n, u, problems)
	return c.record(n, u, program)
}

// template compiles a value in which ${ } stands for what is evaluated.
func (c *compiler) template(n *node, u use) *expr.Program {
	if !c.check {
		return c.record(n, u, expr.LoadTemplate(n.value(), u.scope))
	}
	c.warnText(n)
	program, problems := expr.Template(n.value(), u.scope)
	u.faulty = c.problems(n, u, problems)
	return c.record(n, u, program)
}

// problems reports what the expression's compiler found, if anything.
func (c *compiler) problems(n *node, u use, problems []expr.Problem) bool {
	for _, p := range problems {
		text, at := c.inside(n, p.Path, p.Offset)
		c.add(SeverityError, p.Code, at, text.path, u.what+": "+p.Message, p.Hint)
	}
	return len(problems) > 0
}

// record keeps the use for the checks at the end and gives its owner the steps
// to wait for.
func (c *compiler) record(n *node, u use, program *expr.Program) *expr.Program {
	u.program, u.node = program, n
	if u.owner != nil {
		u.list = u.owner.list
	}
	if u.edge && u.owner != nil {
		u.owner.refs = append(u.owner.refs, c.stepRefs(program, n, u.expression)...)
	}
	if c.check {
		c.uses = append(c.uses, &u)
	}
	return program
}

func (c *compiler) warnComment(n *node) {
	if n.comment.line > 0 {
		c.add(SeverityWarning, CodeCommentCuts, n.comment, n.path, "from this # on the text is a comment and no part of the value",
			"quote the value if the # belongs to it; else put two spaces before the #")
	}
}

var bareSelection = regexp.MustCompile(`^(input|steps)\.[A-Za-z_]\S*$`)

// warnText finds text in a template that its author may have meant otherwise.
func (c *compiler) warnText(n *node) {
	for _, item := range n.array() {
		c.warnText(item)
	}
	for _, m := range n.object() {
		c.warnText(m.node)
	}
	if n.kind != exactjson.KindString {
		return
	}
	c.warnComment(n)
	switch {
	case isBooleanWord(n.plain):
		c.warn(n, CodeBooleanWord, fmt.Sprintf("%s is text in YAML 1.2, not a boolean", n.plain), "quote it if text is meant; else write true or false")
	case bareSelection.MatchString(n.text):
		c.warn(n, CodeLooksLikeText, fmt.Sprintf("%s is taken as text", shown(n.text)), "put it into ${ } to have it evaluated")
	}
}
