package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"perigee/engine/exactjson"
	"perigee/engine/expr"
	"perigee/engine/schema"
)

// Parse compiles a document. All faults come at once, ordered by line and
// column; the definition is nil if one of them is an error. What is given back
// is what Load makes of its Canonical.
func Parse(text []byte, format Format) (*Definition, []Fault) {
	src, clean, fault := newSource(text, format)
	if fault != nil {
		return nil, []Fault{*fault}
	}
	var root *node
	var faults []Fault
	if format == JSON {
		if root, fault = readJSON(clean); fault != nil {
			faults = []Fault{*fault}
		}
	} else {
		root, faults = readYAML(src, clean)
	}
	if root == nil {
		return nil, sortFaults(faults)
	}
	root.setPaths("")
	c := newCompiler(src, true)
	c.document(root)
	c.checkUses()
	c.warnUnbounded(root)
	faults = sortFaults(c.faults)
	if HasErrors(faults) {
		return nil, faults
	}
	d, err := Load(exactjson.Canonical(root.value()))
	if err != nil {
		return nil, append(faults, *refuse(CodeSyntax, place{1, 1}, err.Error(), ""))
	}
	if c.differs(d); HasErrors(c.faults) {
		return nil, sortFaults(c.faults)
	}
	return d, faults
}

// differs reports steps whose predecessors a stored definition would have
// otherwise: Load reads them off the text (see stepRefs), and must never read
// something else than the parser.
func (c *compiler) differs(d *Definition) {
	compare := func(list *stepList, steps []*Step) {
		for i, s := range list.steps {
			if !slices.Equal(s.Predecessors, steps[i].Predecessors) {
				c.fault(s.node, CodeUnclear, fmt.Sprintf("step %s names another step in a form that is not taken", s.ID), "write steps.<id>")
			}
		}
	}
	compare(c.main, d.Steps)
	for kind, list := range c.handlers {
		compare(list, d.Handlers[kind])
	}
}

// Load makes a definition of its stored canonical form. The form is trusted:
// expressions and schemas are not checked, and compiled when they are used.
// The error says that the form is damaged.
func Load(canonical exactjson.Value) (*Definition, error) {
	if canonical.Kind() != exactjson.KindObject {
		return nil, fmt.Errorf("load definition: expected an object, got %s", canonical.Kind())
	}
	c := newCompiler(source{}, false)
	c.document(storedNode(canonical))
	if HasErrors(c.faults) {
		f := sortFaults(c.faults)[0]
		return nil, fmt.Errorf("load definition %s@%s: %s", c.def.Name, c.def.Version, f.Error())
	}
	sum := sha256.Sum256([]byte(canonical))
	c.def.Canonical = canonical
	c.def.Hash = "sha256:" + hex.EncodeToString(sum[:])
	return c.def, nil
}

// compiler walks a document and makes a Definition of it. With check set it
// looks for every fault; without, the document is a stored one.
type compiler struct {
	source
	check    bool
	faults   []Fault
	def      *Definition
	policies map[string]Retry
	defaults callDefaults
	main     *stepList
	handlers map[string]*stepList
	uses     []*use
	used     map[string]bool // tasks and policies, by pointer of their declaration
	waits    []*node         // task steps that may wait for a worker without bound
}

// callDefaults is what `defaults` says for task steps and task compensations.
type callDefaults struct {
	retry                 *Retry
	timeout, queueTimeout *expr.Program
}

func newCompiler(src source, check bool) *compiler {
	return &compiler{
		source: src, check: check,
		def:      &Definition{Tasks: map[string]*Contract{}},
		policies: map[string]Retry{},
		main:     &stepList{byID: map[string]*stepInfo{}},
		handlers: map[string]*stepList{},
		used:     map[string]bool{},
	}
}

func (c *compiler) add(severity, code string, at place, path, message, hint string) {
	if !c.check && severity == SeverityWarning {
		return
	}
	c.faults = append(c.faults, Fault{
		Code: code, Severity: severity, Line: at.line, Column: at.column, Path: path, Message: message, Hint: hint,
	})
}

// fault reports an error at the start of n.
func (c *compiler) fault(n *node, code, message, hint string) {
	c.add(SeverityError, code, n.at, n.path, message, hint)
}

func (c *compiler) warn(n *node, code, message, hint string) {
	c.add(SeverityWarning, code, n.at, n.path, message, hint)
}

// faultAtKey reports an error at the key of a member of n.
func (c *compiler) faultAtKey(n *node, key, code, message, hint string) {
	c.add(SeverityError, code, n.keyPlace(key), exactjson.JoinPointer(n.path, key), message, hint)
}

// faultAtMember is faultAtKey for a member at hand.
func (c *compiler) faultAtMember(m member, code, message, hint string) {
	c.add(SeverityError, code, m.at, m.node.path, message, hint)
}

// many reports that no further fault will be shown: what only serves to
// describe one is then left out, so that a document of faults costs no more
// than one without.
func (c *compiler) many() bool { return len(c.faults) > maxFaults }

// inside is the place of a byte of the text at a JSON pointer below n.
func (c *compiler) inside(n *node, pointer string, offset int) (*node, place) {
	if c.many() {
		return n, n.at
	}
	n = n.find(n.path + pointer)
	return n, c.locate(n, offset)
}

// near is a hint with the name that is nearest among the keys of maps.
func near[V any](c *compiler, name string, maps ...map[string]V) string {
	const most = 2000
	var names []string
	for _, m := range maps {
		if c.many() || len(names)+len(m) > most {
			return ""
		}
		names = append(names, sortedKeys(m)...)
	}
	return didYouMean(name, names)
}

var topKeys = []string{
	"name", "version", "description", "timeout", "input", "output", "signals", "queries", "tasks",
	"retry_policies", "defaults", "limits", "steps", "on_failure", "on_cancel", "on_timeout",
}

// reservedKeys are kept for later releases.
var reservedKeys = []string{"hook", "repeat", "continue_as_new"}

// handlerKeys are the handler lists, in the order in which they are compiled,
// with the kind that history names them by.
var handlerKeys = []struct{ key, kind string }{
	{"on_failure", "failure"}, {"on_cancel", "cancel"}, {"on_timeout", "timeout"},
}

// document compiles the whole of it. Declarations come before the steps that
// name them; expressions are checked at the end, when every step is known.
func (c *compiler) document(root *node) {
	if !c.isObject(root, "a definition") {
		return
	}
	c.knownKeys(root, "a definition", topKeys)
	for _, key := range []string{"name", "version", "steps"} {
		if root.get(key) == nil {
			c.fault(root, CodeMissingKey, "a definition must have "+key, "")
		}
	}
	d := c.def
	if n := root.get("name"); n != nil {
		d.Name = c.name(n, "the workflow's name", workflowName)
	}
	if n := root.get("version"); n != nil {
		d.Version = c.version(n, "the version")
	}
	if n := root.get("description"); n != nil {
		d.Description = c.description(n)
	}
	if n := root.get("timeout"); n != nil {
		d.TimeoutMS = c.duration(n, "the timeout of an execution", aboveZero)
	}
	if n := root.get("input"); n != nil {
		d.Input = c.schema(n, "input")
	}
	c.signals(root.get("signals"))
	c.tasks(root.get("tasks"))
	c.retryPolicies(root.get("retry_policies"))
	c.readDefaults(root.get("defaults"))
	c.limits(root.get("limits"))
	c.steps(root)
	c.queries(root.get("queries"))
	if n := root.get("output"); n != nil {
		d.Output = c.template(n, use{what: "output"})
	}
}

// steps compiles the main list and the handlers and puts them in order.
func (c *compiler) steps(root *node) {
	if n := root.get("steps"); n != nil {
		c.stepList(c.main, n)
	}
	for _, h := range handlerKeys {
		n := root.get(h.key)
		if n == nil {
			continue
		}
		list := &stepList{handler: h.kind, byID: map[string]*stepInfo{}}
		c.handlers[h.kind] = list
		c.stepList(list, n)
		if c.def.Handlers == nil {
			c.def.Handlers = map[string][]*Step{}
		}
		c.def.Handlers[h.kind] = list.compiled()
	}
	c.def.Steps = c.main.compiled()
	c.def.byID = make(map[string]*Step, len(c.def.Steps))
	for _, s := range c.def.Steps {
		c.def.byID[s.ID] = s
	}
}

// description is text for people, and the one literal that holds a # now and then.
func (c *compiler) description(n *node) string {
	c.warnComment(n)
	text, _ := c.literal(n, "a description")
	return text
}

// signals fills Definition.Signals.
func (c *compiler) signals(n *node) {
	if n == nil || !c.isObject(n, "signals") {
		return
	}
	c.def.Signals = map[string]*schema.Schema{}
	for _, m := range n.object() {
		c.nameText(m.node, m.at, m.key, "a signal", stepID)
		c.def.Signals[m.key] = c.schema(m.node, "the payload of signal "+m.key)
	}
}

// queries fills Definition.Queries.
func (c *compiler) queries(n *node) {
	if n == nil || !c.isObject(n, "queries") {
		return
	}
	c.def.Queries = map[string]*expr.Program{}
	for _, m := range n.object() {
		c.nameText(m.node, m.at, m.key, "a query", stepID)
		c.def.Queries[m.key] = c.expression(m.node, use{what: "query " + m.key, early: true})
	}
}

var contractKeys = []string{"version", "language", "input", "output"}

// tasks fills Definition.Tasks.
func (c *compiler) tasks(n *node) {
	if n == nil || !c.isObject(n, "tasks") {
		return
	}
	for _, m := range n.object() {
		contract := &Contract{Name: m.key, Language: "any"}
		c.def.Tasks[m.key] = contract
		c.nameText(m.node, m.at, m.key, "a task", taskName)
		if ReservedTask(m.key) {
			c.faultAtMember(m, CodeReservedTask, fmt.Sprintf("the task name %s is kept for the engine", m.key),
				"http.request and its like are used without a declaration; other names must not start with orbit. or perigee.")
		}
		if !c.isObject(m.node, "the contract of a task") {
			continue
		}
		c.knownKeys(m.node, "the contract of a task", contractKeys)
		if v := m.node.get("version"); v != nil {
			contract.Version = c.version(v, "the version of task "+m.key)
		} else {
			c.faultAtMember(m, CodeMissingKey, fmt.Sprintf("task %s has no version", m.key), `write { version: "1.0.0" }`)
		}
		if v := m.node.get("language"); v != nil {
			contract.Language = strings.ToLower(c.name(v, "a language", languageName))
		}
		if v := m.node.get("input"); v != nil {
			contract.Input = c.schema(v, "the input of task "+m.key)
		}
		if v := m.node.get("output"); v != nil {
			contract.Output = c.schema(v, "the output of task "+m.key)
		}
	}
}

// builtinTask is run by the server itself.
const builtinTask = "http.request"

// ReservedTask reports whether a task's name is the server's own: no definition
// declares it and no worker offers it.
func ReservedTask(name string) bool {
	return name == builtinTask || strings.HasPrefix(name, "orbit.") || strings.HasPrefix(name, "perigee.") || strings.HasPrefix(name, "workflow:")
}

// limits fills Definition.Limits.
func (c *compiler) limits(n *node) {
	if n == nil || !c.isObject(n, "limits") {
		return
	}
	c.knownKeys(n, "limits", []string{"max_fan_out", "max_history_events", "max_payload_bytes"})
	const most = 1 << 31
	if v := n.get("max_fan_out"); v != nil {
		c.def.Limits.MaxFanOut = int(c.integer(v, "max_fan_out", 1, most))
	}
	if v := n.get("max_history_events"); v != nil {
		c.def.Limits.MaxHistoryEvents = uint64(c.integer(v, "max_history_events", 1, most))
	}
	if v := n.get("max_payload_bytes"); v != nil {
		c.def.Limits.MaxPayloadBytes = int(c.integer(v, "max_payload_bytes", 1, most))
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
