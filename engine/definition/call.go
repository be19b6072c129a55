package definition

import (
	"fmt"
	"slices"
	"strings"

	"perigee/engine/exactjson"
	"perigee/engine/schema"
)

// call compiles a task or child workflow with what says how it is run. n is
// the step or the compensation; u the context of its expressions.
func (c *compiler) call(n *node, action string, u use) *Call {
	call := &Call{Retry: defaultRetry()}
	target := n.get(action)
	if action == "task" {
		c.taskOf(call, target)
	} else {
		c.childOf(call, target)
	}
	if v := n.get("with"); v != nil {
		u.what = "with"
		call.With = c.template(v, u)
		if call.Builtin != "" {
			c.httpInput(v)
			call.Secrets = secretsOf(v)
		}
	} else if call.Builtin != "" {
		c.fault(target, CodeMissingKey, "http.request needs a url", "write with: { url: … }")
	}
	if c.check && call.Task != nil {
		c.warnInput(call.Task, target, n.get("with"))
	}
	if v := n.get("timeout"); v != nil {
		u.what = "timeout"
		call.Timeout = c.durationTemplate(v, u, aboveZero)
	}
	if action == "task" {
		c.taskPolicy(call, n, u)
	}
	if v := n.get("on_parent_close"); v != nil {
		text, ok := c.literal(v, "on_parent_close")
		if ok && text != "cancel" && text != "abandon" {
			c.fault(v, CodeOutOfRange, fmt.Sprintf("on_parent_close: expected cancel or abandon, got %s", shown(text)), didYouMean(text, []string{"cancel", "abandon"}))
		}
		call.AbandonChild = text == "abandon"
	}
	return call
}

// warnInput compares the keys of `with` with the input that the task expects. A
// value is checked when the step starts; what is sure to fail then is a warning
// now.
func (c *compiler) warnInput(task *Contract, target, with *node) {
	if with != nil && with.kind != kindObject {
		return
	}
	doc := task.Input.Doc()
	expected := schemaShape{task.Input}
	for _, m := range with.object() {
		if expected.lookup([]string{m.key}) == schema.Unlisted {
			c.add(SeverityWarning, CodeContract, m.at, m.node.path, fmt.Sprintf("the input of task %s lists no %s", task.Name, shown(m.key)), didYouMean(m.key, expected.fields()))
		}
	}
	at := with
	if at == nil {
		at = target
	}
	for required := range doc.Get("required").Elements() {
		name, _ := required.Text()
		property := doc.Get("properties").Get(name)
		if with.get(name) == nil && property.Get("default").Absent() && property.Get("$ref").Absent() && doc.Get("allOf").Absent() {
			c.warn(at, CodeContract, fmt.Sprintf("task %s requires %s in its input, and with does not give it", task.Name, shown(name)), "")
		}
	}
}

// taskPolicy compiles what goes with tasks only: the step's own, else that of
// `defaults`, else what is built in.
func (c *compiler) taskPolicy(call *Call, n *node, u use) {
	if call.Timeout == nil {
		call.Timeout = c.defaults.timeout
	}
	if v := n.get("queue_timeout"); v != nil {
		u.what = "queue_timeout"
		call.QueueTimeout = c.durationTemplate(v, u, aboveZero)
	} else if call.QueueTimeout = c.defaults.queueTimeout; call.QueueTimeout == nil && call.Task != nil {
		c.waits = append(c.waits, n)
	}
	if v := n.get("retry"); v != nil {
		call.Retry = c.retry(v)
	} else if c.defaults.retry != nil {
		call.Retry = *c.defaults.retry
	}
	if v := n.get("at_most_once"); v != nil {
		call.AtMostOnce = c.boolean(v, "at_most_once")
	}
	if v := n.get("max_redeliveries"); v != nil {
		most := int(c.integer(v, "max_redeliveries", 0, 1<<31))
		call.MaxRedeliveries = &most
	}
}

func (c *compiler) taskOf(call *Call, n *node) {
	text, ok := c.literal(n, "task")
	switch {
	case !ok:
	case text == builtinTask:
		call.Builtin = text
	case c.def.Tasks[text] == nil:
		hint := near(c, text, c.def.Tasks, map[string]*Contract{builtinTask: nil})
		if !strings.HasPrefix(hint, "did you mean") {
			hint = "declare it under tasks"
		}
		c.fault(n, CodeUnknownTask, fmt.Sprintf("no task %s is declared", shown(text)), hint)
	default:
		call.Task = c.def.Tasks[text]
		c.used["tasks/"+text] = true
	}
}

func (c *compiler) childOf(call *Call, n *node) {
	text, ok := c.literal(n, "workflow")
	if !ok {
		return
	}
	call.Workflow = text
	if !slices.Contains(c.def.Children, text) {
		c.def.Children = append(c.def.Children, text)
	}
	if !c.check {
		return
	}
	name, version, versioned := strings.Cut(text, "@")
	if !workflowName.fits(name) {
		c.fault(n, CodeBadName, fmt.Sprintf("workflow: %s is no name of a workflow; expected %s", shown(name), workflowName.says), "")
	}
	if !versioned {
		c.fault(n, CodeBadVersion, "a child workflow is named with its full version", "write "+cut(name)+"@1.0.0")
	} else if _, err := ParseVersion(version); err != nil {
		c.fault(n, CodeBadVersion, "workflow: "+err.Error(), "")
	}
}

var compensateKeys = []string{"task", "workflow", "with", "timeout", "queue_timeout", "retry", "when_uncertain"}

// compensation compiles what undoes the step.
func (c *compiler) compensation(s *stepInfo) {
	n := s.node.get("compensate")
	if n == nil || !c.isObject(n, "compensate") {
		return
	}
	c.knownKeys(n, "compensate", compensateKeys)
	actions := present(n, []string{"task", "workflow"})
	if len(actions) != 1 {
		c.fault(n, CodeNoAction, "compensate must have either task or workflow", "")
	}
	if len(actions) == 0 {
		return
	}
	if actions[0] == "workflow" {
		for _, key := range present(n, []string{"retry", "queue_timeout"}) {
			c.faultAtKey(n, key, CodeNotAllowed, key+" does not go with workflow: a child has one attempt", "")
		}
	}
	u := s.inner("compensate")
	u.edge, u.early = false, true
	u.scope.Output, u.scope.Failure, u.scope.IdempotencyKey = true, true, true
	s.Compensate = c.call(n, actions[0], u)
	if v := n.get("when_uncertain"); v != nil {
		s.WhenUncertain = c.boolean(v, "when_uncertain")
	}
}

var httpKeys = []string{"method", "url", "headers", "body", "timeout", "retry_statuses"}

// httpInput checks what can be told of the input of http.request: its keys, and
// the references to secrets in its headers, which are literal.
func (c *compiler) httpInput(n *node) {
	if !c.check || n.isString() && strings.Contains(n.text, "${") {
		return
	}
	if !c.isObject(n, "the input of http.request") {
		return
	}
	c.knownKeys(n, "the input of http.request", httpKeys)
	if n.get("url") == nil {
		c.fault(n, CodeMissingKey, "http.request needs a url", "")
	}
	headers := n.get("headers")
	if headers == nil || headers.isString() {
		return
	}
	if !c.isObject(headers, "headers") {
		return
	}
	for _, m := range headers.object() {
		switch m.kind {
		case exactjson.KindObject:
			c.secret(m.node)
		case exactjson.KindString, exactjson.KindNumber:
		default:
			c.wrongType(m.node, "header "+cut(m.key), "text, or { secret: NAME }", "")
		}
	}
}

// secretsOf are the secrets that literal headers name.
func secretsOf(with *node) []string {
	var names []string
	if headers := with.get("headers"); headers != nil {
		for _, m := range headers.object() {
			if name := m.get("secret"); name != nil && name.isString() {
				names = append(names, name.text)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// secret checks { secret: NAME, prefix? }.
func (c *compiler) secret(n *node) {
	c.knownKeys(n, "a secret header", []string{"secret", "prefix"})
	if v := n.get("secret"); v != nil {
		c.name(v, "the name of a secret", secretName)
	} else {
		c.fault(n, CodeMissingKey, "a header is text, or has the key secret", "write { secret: NAME }")
	}
	if v := n.get("prefix"); v != nil {
		c.literal(v, "the prefix of a secret")
	}
}
