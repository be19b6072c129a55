package definition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"perigee/engine/exactjson"
	"perigee/engine/schema"
)

// nameForm is the form of one kind of name.
type nameForm struct {
	pattern *regexp.Regexp
	longest int
	says    string
	refused []string
}

var (
	stepID = nameForm{
		pattern: regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`), longest: 64,
		says:    "a letter or _, then letters, digits or _, at most 64",
		refused: []string{"true", "false", "null", "in", "compensate"},
	}
	policyName = nameForm{pattern: stepID.pattern, longest: 64, says: stepID.says, refused: append([]string{"none"}, stepID.refused...)}

	workflowName = nameForm{
		pattern: regexp.MustCompile(`^[a-z][a-z0-9-]*$`), longest: 64,
		says: "a lower-case letter, then lower-case letters, digits or -, at most 64",
	}
	taskName = nameForm{
		pattern: regexp.MustCompile(`^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$`), longest: 128,
		says: TaskNameForm,
	}
	languageName = nameForm{
		pattern: regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+#._-]*$`), longest: 64,
		says: "such as python, go or any",
	}
	errorCode = nameForm{
		pattern: regexp.MustCompile(`^[^\s\p{C}]+$`), longest: 128,
		says: "text without white space, such as CARD_DECLINED, at most 128 bytes",
	}
	secretName = nameForm{
		pattern: regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`), longest: 64,
		says: "a letter or _, then letters, digits or _, at most 64",
	}
)

func (f nameForm) fits(text string) bool {
	return len(text) <= f.longest && f.pattern.MatchString(text) && !slices.Contains(f.refused, text)
}

// TaskNameForm is how the name of a task is written, for messages.
const TaskNameForm = "parts of lower-case letters, digits, _ or -, each starting with a letter, joined by dots, at most 128"

// IsTaskName reports whether a text has the form of a task's name.
func IsTaskName(text string) bool { return taskName.fits(text) }

// wrongType reports that n is not what was expected.
func (c *compiler) wrongType(n *node, what, expected, hint string) {
	got := n.kind.String()
	if n.kind == exactjson.KindNull {
		got = "nothing"
	}
	c.fault(n, CodeWrongType, fmt.Sprintf("%s: expected %s, got %s", what, expected, got), hint)
}

func (c *compiler) isObject(n *node, what string) bool {
	if n.kind == exactjson.KindObject {
		return true
	}
	c.wrongType(n, what, "keys with values", "")
	return false
}

func (c *compiler) isList(n *node, what string) bool {
	if n.kind == exactjson.KindArray {
		return true
	}
	c.wrongType(n, what, "a list", "write [ … ], or a line with - for each")
	return false
}

// knownKeys reports the keys of n that are none of known.
func (c *compiler) knownKeys(n *node, what string, known []string) {
	if !c.check {
		return
	}
	for _, m := range n.object() {
		switch {
		case slices.Contains(known, m.key):
		case slices.Contains(reservedKeys, m.key):
			c.faultAtMember(m, CodeNotInRelease, m.key+" is not in this release", "")
		default:
			c.faultAtMember(m, CodeUnknownKey, fmt.Sprintf("%s has no key %s", what, shown(m.key)), didYouMean(m.key, known))
		}
	}
}

// literal is the text of n, in which no ${ may stand.
func (c *compiler) literal(n *node, what string) (string, bool) {
	if !n.isString() {
		hint := ""
		if n.kind == exactjson.KindNumber || n.kind == exactjson.KindBool {
			hint = "quote it"
		}
		c.wrongType(n, what, "text", hint)
		return "", false
	}
	return n.text, c.isLiteral(n, what)
}

func (c *compiler) isLiteral(n *node, what string) bool {
	if !c.check {
		return true
	}
	i := strings.Index(n.text, "${")
	if i < 0 {
		return true
	}
	at := c.locate(n, i)
	c.add(SeverityError, CodeLiteralOnly, at, n.path, what+" is taken as it stands: no ${ is evaluated here", "write the value out, or move it to a place that takes templates")
	return false
}

// name is the text of n, checked for its form.
func (c *compiler) name(n *node, what string, form nameForm) string {
	text, ok := c.literal(n, what)
	if ok {
		c.nameText(n, n.at, text, what, form)
	}
	return text
}

func (c *compiler) nameText(n *node, at place, text, what string, form nameForm) {
	if !c.check || form.fits(text) {
		return
	}
	why := form.says
	if slices.Contains(form.refused, text) {
		why = "another word: this one has a meaning of its own"
	}
	c.add(SeverityError, CodeBadName, at, n.path, fmt.Sprintf("%s: %s is no such name; expected %s", what, shown(text), why), "")
}

func (c *compiler) version(n *node, what string) string {
	if n.kind == exactjson.KindNumber {
		c.wrongType(n, what, "text", "quote it: an unquoted 1.10 is the number 1.1")
		return ""
	}
	text, ok := c.literal(n, what)
	if ok && c.check {
		if _, err := ParseVersion(text); err != nil {
			c.fault(n, CodeBadVersion, what+": "+err.Error(), "")
		}
	}
	return text
}

// Whether a duration may be 0.
const (
	aboveZero  = true
	zeroOrMore = false
)

// duration is a literal duration in milliseconds.
func (c *compiler) duration(n *node, what string, above bool) int64 {
	if n.kind == exactjson.KindNumber {
		c.fault(n, CodeBadDuration, fmt.Sprintf("%s: the number %s has no unit", what, n.text), durationForms)
		return 0
	}
	text, ok := c.literal(n, what)
	if !ok {
		return 0
	}
	return c.durationText(n, text, what, above)
}

func (c *compiler) durationText(n *node, text, what string, above bool) int64 {
	ms, err := ParseDuration(text)
	switch {
	case err != nil:
		c.fault(n, CodeBadDuration, what+": "+err.Error(), "")
	case ms == 0 && above:
		c.fault(n, CodeBadDuration, what+" must be above 0", "")
	}
	return ms
}

func (c *compiler) integer(n *node, what string, least, most int64) int64 {
	if n.kind != exactjson.KindNumber {
		hint := ""
		if n.isString() {
			hint = "write the number without quotes"
		}
		c.wrongType(n, what, "a whole number", hint)
		return 0
	}
	value, ok := exactjson.Value(n.text).Int64()
	if !ok || value < least || value > most {
		c.fault(n, CodeOutOfRange, fmt.Sprintf("%s: expected a whole number from %d to %d, got %s", what, least, most, cut(n.text)), "")
	}
	return value
}

func (c *compiler) number(n *node, what string, least, most float64) float64 {
	if n.kind != exactjson.KindNumber {
		c.wrongType(n, what, "a number", "")
		return least
	}
	value, _ := exactjson.Value(n.text).Float64()
	if value < least || value > most {
		c.fault(n, CodeOutOfRange, fmt.Sprintf("%s: expected a number from %g to %g, got %s", what, least, most, cut(n.text)), "")
	}
	return value
}

func cut(text string) string {
	if len(text) > maxShown {
		return text[:maxShown] + "…"
	}
	return text
}

func (c *compiler) boolean(n *node, what string) bool {
	if n.kind != exactjson.KindBool {
		hint := "write true or false"
		if isBooleanWord(n.plain) {
			hint = "write true or false: " + n.plain + " is text in YAML 1.2"
		}
		c.wrongType(n, what, "true or false", hint)
	}
	return n.text == "true"
}

// isBooleanWord reports the words that are booleans in YAML 1.1 and text in 1.2.
func isBooleanWord(plain string) bool {
	switch strings.ToLower(plain) {
	case "yes", "no", "on", "off":
		return true
	}
	return false
}

// codes is a list of error codes.
func (c *compiler) codes(n *node, what string) []string {
	if !c.isList(n, what) {
		return nil
	}
	codes := make([]string, 0, len(n.array()))
	for _, item := range n.array() {
		codes = append(codes, c.name(item, what, errorCode))
	}
	return codes
}

// schema compiles a JSON Schema.
func (c *compiler) schema(n *node, what string) *schema.Schema {
	if !c.check {
		return schema.Load(n.value())
	}
	if n.kind == exactjson.KindNull {
		c.wrongType(n, what, "a JSON Schema", "write {} for any value")
		return nil
	}
	c.literalSchema(n, what)
	compiled, problems := schema.Compile(n.value())
	for _, p := range problems {
		part, _ := c.inside(n, p.Path, 0)
		c.add(SeverityError, CodeBadSchema, part.at, part.path, what+": "+p.Message, p.Hint)
	}
	return compiled
}

// literalSchema refuses ${ in a schema, where nothing evaluates it; a regular
// expression may hold it.
func (c *compiler) literalSchema(n *node, what string) {
	if n.isString() {
		c.isLiteral(n, what)
	}
	for _, item := range n.array() {
		c.literalSchema(item, what)
	}
	for _, m := range n.object() {
		if m.key != "pattern" {
			c.literalSchema(m.node, what)
		}
	}
}
