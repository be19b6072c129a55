package definition

import (
	"fmt"
	"strings"

	"perigee/engine/exactjson"
	"perigee/engine/expr"
	"perigee/engine/schema"
)

const (
	kindArray  = exactjson.KindArray
	kindObject = exactjson.KindObject
)

// action compiles what the step does.
func (c *compiler) action(s *stepInfo) {
	n := s.node.get(s.action)
	switch s.action {
	case "task", "workflow":
		s.Kind = KindTask
		if s.action == "workflow" {
			s.Kind = KindWorkflow
		}
		s.Call = c.call(s.node, s.action, s.inner(s.action))
		s.output = outputOf(s.Call)
		c.compensation(s)
	case "sleep":
		s.Kind = KindSleep
		s.output = closedShape{}
		s.Sleep = c.durationTemplate(n, s.inner("sleep"), zeroOrMore)
	case "until":
		s.Kind = KindSleep
		s.output = closedShape{}
		s.Until = c.momentTemplate(n, s.inner("until"))
	case "await":
		s.Kind = KindAwait
		c.await(s, n)
	case "compute":
		s.Kind = KindCompute
		s.Value = c.expression(n, s.inner("compute"))
		if n.kind == kindObject {
			s.output = closedShape{keys: keysOf(n)}
		}
	case "fail":
		s.Kind = KindFail
		s.output = closedShape{}
		c.fail(s, n)
	}
}

func keysOf(n *node) []string {
	var keys []string
	for _, m := range n.object() {
		keys = append(keys, m.key)
	}
	return keys
}

func (c *compiler) await(s *stepInfo, n *node) {
	if n.isString() && c.isLiteral(n, "await") {
		s.Signal = n.text
		payload, declared := c.def.Signals[n.text]
		if !declared {
			c.fault(n, CodeUnknownName, fmt.Sprintf("no signal %s is declared", shown(n.text)), orDeclare(near(c, n.text, c.def.Signals), "signals"))
		}
		s.output = schemaShape{payload}
	} else if !n.isString() {
		c.wrongType(n, "await", "the name of a signal", "")
	}
	if t := s.node.get("timeout"); t != nil {
		s.Timeout = c.durationTemplate(t, s.inner("timeout"), aboveZero)
	} else {
		c.warn(n, CodeNoTimeout, fmt.Sprintf("step %s waits for its signal without end", s.ID), "give it a timeout")
	}
}

func orDeclare(hint, section string) string {
	if hint == "" {
		return "declare it under " + section
	}
	return hint
}

func (c *compiler) fail(s *stepInfo, n *node) {
	s.Fail = &Fail{}
	if !c.isObject(n, "fail") {
		return
	}
	c.knownKeys(n, "fail", []string{"code", "message"})
	if v := n.get("code"); v != nil {
		s.Fail.Code = c.name(v, "the code of a failure", errorCode)
	} else {
		c.fault(n, CodeMissingKey, "fail must have a code", "")
	}
	v := n.get("message")
	switch {
	case v == nil:
		c.fault(n, CodeMissingKey, "fail must have a message", "")
	case !v.isString():
		c.wrongType(v, "the message of a failure", "text", "quote it")
	default:
		s.Fail.Message = c.template(v, s.inner("fail"))
	}
}

var catchKeys = []string{"codes", "output"}

// catches compiles the clauses and finds those that cannot be reached.
func (c *compiler) catches(s *stepInfo) {
	n := s.node.get("catch")
	if n == nil || !c.nonEmptyList(n, "catch") {
		return
	}
	taken := map[string]bool{}
	any := false
	for _, item := range n.array() {
		if !c.isObject(item, "a clause of catch") {
			continue
		}
		c.knownKeys(item, "a clause of catch", catchKeys)
		if any {
			c.fault(item, CodeUnreachable, "this clause is never reached: the one before it takes every code", "put the clause without codes last")
		}
		var clause Catch
		if codes := item.get("codes"); codes != nil {
			clause.Codes = c.caughtCodes(codes, taken)
		} else {
			any = true
		}
		if out := item.get("output"); out != nil {
			u := s.inner("catch")
			u.edge, u.early, u.scope.Error = false, true, true
			clause.Output = c.template(out, u)
		}
		s.Catch = append(s.Catch, clause)
	}
	s.output = openShape{}
}

func (c *compiler) caughtCodes(n *node, taken map[string]bool) []string {
	codes := c.codes(n, "codes")
	if !c.check {
		return codes
	}
	if n.kind == kindArray && len(codes) == 0 {
		c.fault(n, CodeUnreachable, "this clause takes no code at all", "leave codes out to take any")
	}
	for i, code := range codes {
		item := n.array()[i]
		switch {
		case code == "LIMIT_EXCEEDED" || code == "CANCELLED":
			c.fault(item, CodeUncatchable, code+" cannot be caught", "it ends the execution; on_failure and on_cancel run then")
		case taken[code]:
			c.fault(item, CodeUnreachable, fmt.Sprintf("the code %s is taken by a clause before", code), "")
		}
		taken[code] = true
	}
	return codes
}

// durationTemplate compiles text of a duration; what is known is checked.
func (c *compiler) durationTemplate(n *node, u use, above bool) *expr.Program {
	if n.kind == exactjson.KindNumber {
		c.fault(n, CodeBadDuration, fmt.Sprintf("%s: the number %s has no unit", u.what, n.text), durationForms)
		return nil
	}
	if !n.isString() {
		c.wrongType(n, u.what, "text of a duration", durationForms)
		return nil
	}
	if c.check && !strings.Contains(n.text, "${") {
		c.durationText(n, n.text, u.what, above)
		n.comment = place{} // nothing is cut off a whole duration
	}
	return c.template(n, u)
}

func (c *compiler) momentTemplate(n *node, u use) *expr.Program {
	if !n.isString() {
		c.wrongType(n, u.what, "text of a moment", "write it like \"2027-03-01T08:00:00Z\"")
		return nil
	}
	if c.check && !strings.Contains(n.text, "${") {
		if _, err := ParseMoment(n.text); err != nil {
			c.fault(n, CodeBadMoment, "until: "+err.Error(), "")
		}
		n.comment = place{} // nothing is cut off a whole moment
	}
	return c.template(n, u)
}

// shape is what is known of a value that expressions select from.
type shape interface {
	lookup(path []string) schema.Listing
	fields() []string // for hints
}

// openShape: nothing is known.
type openShape struct{}

func (openShape) lookup([]string) schema.Listing { return schema.Open }
func (openShape) fields() []string               { return nil }

// closedShape: an object with these keys and no others.
type closedShape struct{ keys, optional []string }

func (s closedShape) lookup(path []string) schema.Listing {
	if len(path) == 0 {
		return schema.Required
	}
	answer := schema.Unlisted
	for _, key := range s.keys {
		if key == path[0] {
			answer = schema.Required
		}
	}
	for _, key := range s.optional {
		if key == path[0] {
			answer = schema.Optional
		}
	}
	if len(path) > 1 && answer != schema.Unlisted {
		return schema.Open
	}
	return answer
}

func (s closedShape) fields() []string {
	return append(s.keys[:len(s.keys):len(s.keys)], s.optional...)
}

// schemaShape: what a schema tells.
type schemaShape struct{ *schema.Schema }

func (s schemaShape) lookup(path []string) schema.Listing { return s.Lookup(path) }

func (s schemaShape) fields() []string {
	var names []string
	for name := range s.Doc().Get("properties").Members() {
		names = append(names, name)
	}
	return names
}

// outputOf is what is known of the output of a task or child.
func outputOf(call *Call) shape {
	switch {
	case call == nil:
	case call.Task != nil:
		return schemaShape{call.Task.Output}
	case call.Builtin == builtinTask:
		return closedShape{keys: []string{"status", "headers", "body"}}
	}
	return openShape{}
}
