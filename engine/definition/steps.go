package definition

import (
	"fmt"
	"slices"
	"strings"

	"perigee/engine/expr"
)

// stepList is a list of steps in the making: the main one, or a handler's.
type stepList struct {
	handler string // "" for the main list
	steps   []*stepInfo
	byID    map[string]*stepInfo
}

func (l *stepList) compiled() []*Step {
	steps := make([]*Step, len(l.steps))
	for i, s := range l.steps {
		steps[i] = s.Step
	}
	return steps
}

// scope is what the expressions of every step of the list see.
func (l *stepList) scope() expr.Scope { return expr.Scope{Failure: l.handler != ""} }

// stepInfo is a Step with what only the compiler needs.
type stepInfo struct {
	*Step
	node       *node
	list       *stepList
	action     string
	conditions []condition // own and of the groups around, outermost first
	refs       []string    // ids that rule (b) of the order waits for
	after      []string
	hasAfter   bool
	output     shape // what is known of the step's output
}

// condition is one `when`. A branch of a switch has one made of its own
// condition and those of the branches before it.
type condition struct {
	text    string
	program *expr.Program
	refs    []string
}

// entry is one item of a list: a step, or a group of lists that start together.
type entry struct {
	step  *stepInfo
	group [][]entry
}

var (
	groupActions = []string{"parallel", "steps", "switch"}
	stepActions  = []string{"task", "workflow", "sleep", "until", "await", "compute", "fail"}

	// actionKeys are the keys that go with an action, beside the common ones.
	actionKeys = map[string][]string{
		"task":     {"with", "timeout", "queue_timeout", "retry", "catch", "at_most_once", "max_redeliveries", "compensate", "for", "max_parallel"},
		"workflow": {"with", "timeout", "catch", "on_parent_close", "compensate", "for", "max_parallel"},
		"await":    {"timeout", "catch"},
		"compute":  {"catch", "for", "max_parallel"},
	}
	commonKeys     = []string{"id", "description", "when", "after"}
	groupKeys      = []string{"description", "when"}
	handlerActions = []string{"task", "workflow", "sleep", "until", "compute"}
	notInHandlers  = []string{"after", "catch", "compensate", "for", "max_parallel"}
	allStepKeys    = slices.Concat(commonKeys, stepActions, groupActions, actionKeys["task"], []string{"on_parent_close"})
)

// stepList compiles one list with the order of its steps.
func (c *compiler) stepList(list *stepList, n *node) {
	if !c.nonEmptyList(n, "steps") {
		return
	}
	c.order(list, c.entries(list, n.array(), nil))
}

func (c *compiler) nonEmptyList(n *node, what string) bool {
	if !c.isList(n, what) {
		return false
	}
	if len(n.array()) == 0 {
		c.fault(n, CodeOutOfRange, what+": the list is empty", "it must have at least one entry, or be left out")
		return false
	}
	return true
}

func (c *compiler) entries(list *stepList, nodes []*node, around []condition) []entry {
	entries := make([]entry, 0, len(nodes))
	for _, n := range nodes {
		if !c.isObject(n, "an entry of steps") {
			continue
		}
		if group := present(n, groupActions); len(group) > 0 {
			entries = append(entries, c.group(list, n, group, around))
		} else if s := c.step(list, n, around); s != nil {
			entries = append(entries, entry{step: s})
		}
	}
	return entries
}

// present is those of keys that n has, in the order of the document.
func present(n *node, keys []string) []string {
	var found []string
	for _, m := range n.object() {
		if slices.Contains(keys, m.key) {
			found = append(found, m.key)
		}
	}
	return found
}

func (c *compiler) group(list *stepList, n *node, kinds []string, around []condition) entry {
	kind := kinds[0]
	if list.handler != "" {
		c.faultAtKey(n, kind, CodeNotAllowed, "groups do not go into handlers", "write the steps one below the other")
	}
	c.groupKeys(n, kind)
	around = c.when(list, n, around)
	body := n.get(kind)
	switch kind {
	case "switch":
		return entry{group: c.branches(list, body, around)}
	case "steps":
		if !c.nonEmptyList(body, kind) {
			return entry{}
		}
		return entry{group: [][]entry{c.entries(list, body.array(), around)}}
	}
	if !c.nonEmptyList(body, kind) {
		return entry{}
	}
	var group [][]entry
	for _, item := range body.array() {
		group = append(group, c.entries(list, []*node{item}, around))
	}
	return entry{group: group}
}

// groupKeys reports what does not go with a group.
func (c *compiler) groupKeys(n *node, kind string) {
	if !c.check {
		return
	}
	for _, m := range n.object() {
		switch {
		case m.key == kind || slices.Contains(groupKeys, m.key):
		case m.key == "for" || m.key == "max_parallel":
			c.faultAtMember(m, CodeNotInRelease, m.key+" over a group of steps is not in this release", "put `for` on a task, workflow or compute; a child workflow holds several steps")
		case m.key == "catch":
			c.faultAtMember(m, CodeNotInRelease, "catch on a group is not in this release", "put `catch` on the steps in it")
		case slices.Contains(reservedKeys, m.key):
			c.faultAtMember(m, CodeNotInRelease, m.key+" is not in this release", "")
		case slices.Contains(groupActions, m.key) || slices.Contains(stepActions, m.key):
			c.faultAtMember(m, CodeTwoActions, fmt.Sprintf("this entry has both %s and %s", kind, m.key), "make two entries of it")
		case slices.Contains(allStepKeys, m.key):
			c.faultAtMember(m, CodeNotAllowed, fmt.Sprintf("%s does not go with %s: a group takes only when and description", m.key, kind), "put it on the steps in the group")
		default:
			c.faultAtMember(m, CodeUnknownKey, fmt.Sprintf("a group of steps has no key %s", shown(m.key)), didYouMean(m.key, append([]string{kind}, groupKeys...)))
		}
	}
}

// when appends the condition of n, if it has one, to those around it.
func (c *compiler) when(list *stepList, n *node, around []condition) []condition {
	w := n.get("when")
	if w == nil {
		return around
	}
	c.condition(list, w, around)
	return append(around[:len(around):len(around)], c.rewritten(list, conditionText(w)))
}

// condition checks a `when` as it was written.
func (c *compiler) condition(list *stepList, w *node, around []condition) {
	if !c.check {
		return
	}
	program := c.expression(w, use{what: "when", list: list, scope: list.scope(), early: list.handler != "", holds: texts(around)})
	if constant, ok := program.Constant(); ok && constant != "true" && constant != "false" {
		c.wrongType(w, "when", "true or false, or an expression that gives one", "")
	}
}

func texts(conditions []condition) []string {
	var list []string
	for _, c := range conditions {
		list = append(list, c.text)
	}
	return list
}

// step compiles one step; nil where it has no action.
func (c *compiler) step(list *stepList, n *node, around []condition) *stepInfo {
	actions := present(n, stepActions)
	if len(actions) == 0 {
		c.noAction(n)
		return nil
	}
	s := &stepInfo{Step: &Step{Index: len(list.steps)}, node: n, list: list, action: actions[0], output: openShape{}}
	for _, second := range actions[1:] {
		c.faultAtKey(n, second, CodeTwoActions, fmt.Sprintf("this step has both %s and %s", s.action, second), "make two steps of it")
	}
	c.stepKeys(s)
	c.identify(s)
	list.steps = append(list.steps, s)
	if d := n.get("description"); d != nil {
		c.description(d)
	}
	s.conditions = c.when(list, n, around)
	for _, condition := range s.conditions {
		s.When = append(s.When, condition.program)
		s.refs = append(s.refs, condition.refs...)
	}
	if a := n.get("after"); a != nil && list.handler == "" {
		s.hasAfter = true
		s.after = c.afterIDs(a)
	}
	c.fanOut(s)
	c.action(s)
	c.catches(s)
	return s
}

func (c *compiler) noAction(n *node) {
	reserved := present(n, reservedKeys)
	for _, key := range reserved {
		c.faultAtKey(n, key, CodeNotInRelease, key+" is not in this release", "")
	}
	if len(reserved) > 0 {
		return
	}
	hint := "a step has one of task, workflow, sleep, until, await, compute, fail; a group one of parallel, steps, switch"
	all := append(slices.Clone(stepActions), groupActions...)
	for _, m := range n.object() {
		if guess := didYouMean(m.key, all); !slices.Contains(allStepKeys, m.key) && len(guess) < 30 {
			hint = fmt.Sprintf("%s: %s", m.key, guess)
		}
	}
	c.fault(n, CodeNoAction, "this entry says nothing to do", hint)
}

// stepKeys reports the keys that do not go with the step's action or list.
func (c *compiler) stepKeys(s *stepInfo) {
	if !c.check {
		return
	}
	handler := s.list.handler != ""
	if handler && !slices.Contains(handlerActions, s.action) {
		c.faultAtKey(s.node, s.action, CodeNotAllowed, s.action+" does not go into a handler", "a handler step is a task, workflow, sleep, until or compute")
	}
	allowed := slices.Concat(commonKeys, actionKeys[s.action], []string{s.action})
	for _, m := range s.node.object() {
		key := m.key
		switch {
		case handler && slices.Contains(notInHandlers, key):
			c.faultAtMember(m, CodeNotAllowed, key+" does not go with a step of a handler", "")
		case slices.Contains(allowed, key) || slices.Contains(stepActions, key):
		case slices.Contains(reservedKeys, key):
			c.faultAtMember(m, CodeNotInRelease, key+" is not in this release", "")
		case slices.Contains(allStepKeys, key):
			c.faultAtMember(m, CodeNotAllowed, fmt.Sprintf("%s does not go with %s", key, s.action), keysHint(s.action))
		default:
			c.faultAtMember(m, CodeUnknownKey, fmt.Sprintf("a step has no key %s", shown(key)), didYouMean(key, allowed))
		}
	}
	if s.node.get("max_parallel") != nil && s.node.get("for") == nil {
		c.faultAtKey(s.node, "max_parallel", CodeNotAllowed, "max_parallel goes with for only", "")
	}
}

func keysHint(action string) string {
	if len(actionKeys[action]) == 0 {
		return action + " takes no further keys"
	}
	return fmt.Sprintf("%s takes %s", action, strings.Join(actionKeys[action], ", "))
}

// identify reads the id and sees to it that it is the only one in its list.
func (c *compiler) identify(s *stepInfo) {
	n := s.node.get("id")
	if n == nil {
		c.fault(s.node, CodeMissingKey, "a step must have an id", "it names the step's result: steps.<id>.output")
		return
	}
	s.ID = c.name(n, "the id of a step", stepID)
	if other := s.list.byID[s.ID]; other != nil {
		c.fault(n, CodeDuplicateID, fmt.Sprintf("the id %s is that of the step in line %d already", shown(s.ID), other.node.at.line), "ids are unique over all steps, those in groups included")
		return
	}
	s.list.byID[s.ID] = s
}

func (c *compiler) afterIDs(n *node) []string {
	if n.isString() {
		c.wrongType(n, "after", "a list of ids", "write ["+cut(n.text)+"]")
		return nil
	}
	if !c.isList(n, "after") {
		return nil
	}
	var ids []string
	for _, item := range n.array() {
		if id, ok := c.literal(item, "after"); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// fanOut compiles for and max_parallel. Both are evaluated once, before there
// is an item.
func (c *compiler) fanOut(s *stepInfo) {
	if n := s.node.get("for"); n != nil {
		s.For = c.expression(n, s.use("for"))
		if c.check && s.For != nil {
			if constant, ok := s.For.Constant(); ok && constant.Kind() != kindArray {
				c.wrongType(n, "for", "a list, or an expression that gives one", "")
			}
		}
	}
	if n := s.node.get("max_parallel"); n != nil {
		if n.isString() {
			s.MaxParallel = c.template(n, s.use("max_parallel"))
			if c.check && !expr.HasTemplate(n.text) {
				c.wrongType(n, "max_parallel", "a whole number or ${ … }", "write the number without quotes")
			}
			return
		}
		c.integer(n, "max_parallel", 1, 1<<31)
		s.MaxParallel = c.template(n, s.use("max_parallel"))
	}
}

// use is the context of the step's own expressions; each is one of those that
// the step waits for by naming another.
func (s *stepInfo) use(key string) use {
	return use{what: key, owner: s, scope: s.list.scope(), edge: true, early: s.list.handler != "", holds: texts(s.conditions)}
}

// inner is the context of what is evaluated for each element under for.
func (s *stepInfo) inner(key string) use {
	u := s.use(key)
	u.scope.Item = s.node.get("for") != nil
	return u
}
