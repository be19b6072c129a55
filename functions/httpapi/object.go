package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"perigee/engine"
	"perigee/engine/exactjson"
)

// fault is one thing that is wrong with a request.
type fault struct{ path, message string }

// faults gathers all that is wrong, so that a caller learns it in one go.
type faults []fault

// maxFaults is where listing more would help nobody.
const maxFaults = 20

func (f *faults) add(path, format string, args ...any) {
	*f = append(*f, fault{path, fmt.Sprintf(format, args...)})
}

// err is nil without faults. where names what the paths point into.
func (f faults) err(where string) error {
	if len(f) == 0 {
		return nil
	}
	message := f[0].message
	if f[0].path != "" {
		message = where + f[0].path + ": " + message
	}
	if len(f) > 1 {
		message += fmt.Sprintf(" (and %d more, see details)", len(f)-1)
	}
	return &engine.Error{Code: engine.InvalidRequest, Message: message, Details: f.details()}
}

func (f faults) details() any {
	type item struct {
		Path    string `json:"path"`
		Message string `json:"message"`
	}
	list := make([]item, 0, min(len(f), maxFaults))
	for _, one := range f[:min(len(f), maxFaults)] {
		list = append(list, item{one.path, one.message})
	}
	return map[string]any{"faults": list}
}

// object reads the members of a JSON object. Every member that is asked for
// counts as known; done tells what was wrong and, on the API, what is unknown.
// A member that is null counts as absent, except for value.
type object struct {
	path    string // JSON pointer of the object in the body
	strict  bool
	members []exactjson.Member
	asked   []string
	faults  *faults
	inner   []*object
}

func newObject(v exactjson.Value, strict bool) *object {
	return &object{strict: strict, faults: new(faults), members: membersOf(v)}
}

func membersOf(v exactjson.Value) []exactjson.Member {
	var list []exactjson.Member
	for key, value := range v.Members() {
		list = append(list, exactjson.Member{Key: key, Value: value})
	}
	return list
}

// done ends the reading of a body's outermost object.
func (o *object) done() error {
	o.checkUnknown()
	return o.faults.err("the body at ")
}

func (o *object) checkUnknown() {
	for _, inner := range o.inner {
		inner.checkUnknown()
	}
	if !o.strict {
		return
	}
	for _, m := range o.members {
		if !slices.Contains(o.asked, m.Key) {
			o.fault(shorten(m.Key), "unknown field; known here: %s", orNone(strings.Join(o.asked, ", ")))
		}
	}
}

func orNone(list string) string {
	if list == "" {
		return "none"
	}
	return list
}

// shorten keeps a name that a caller made up from filling the answer.
func shorten(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + "…"
}

func (o *object) fault(name, format string, args ...any) {
	o.faults.add(exactjson.JoinPointer(o.path, name), format, args...)
}

func (o *object) wrong(name, expected string, got exactjson.Value) {
	o.fault(name, "expected %s, got %s", expected, aKind(got))
}

// value is a member as it was sent: any JSON, "" where absent.
func (o *object) value(name string) exactjson.Value {
	o.asked = append(o.asked, name)
	for _, m := range o.members {
		if m.Key == name {
			return m.Value
		}
	}
	return ""
}

func (o *object) get(name string) exactjson.Value {
	if v := o.value(name); v != exactjson.Null {
		return v
	}
	return ""
}

// maxNameBytes bounds names, ids and tokens; the engine has tighter rules for
// most. What passes can be stored as text by every database.
const maxNameBytes = 4096

// text is an optional name, id or token.
func (o *object) text(name string) string {
	v := o.get(name)
	if v.Absent() {
		return ""
	}
	return o.asText(name, v)
}

// needText is text of a member that has to be there.
func (o *object) needText(name string) string {
	v := o.get(name)
	text := o.asText(name, v)
	if v == `""` {
		o.fault(name, "expected text of at least one character, got none")
	}
	return text
}

func (o *object) asText(name string, v exactjson.Value) string {
	text, ok := v.Text()
	switch {
	case !ok:
		o.wrong(name, "a string", v)
	case len(text) > maxNameBytes:
		o.fault(name, "expected at most %d bytes, got %d", maxNameBytes, len(text))
	case !plain(text):
		o.fault(name, "expected text without control characters")
	default:
		return text
	}
	return ""
}

// plain reports whether text is UTF-8 without control characters.
func plain(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}

// prose is an optional text for people, with any characters.
func (o *object) prose(name string) string {
	v := o.get(name)
	if v.Absent() {
		return ""
	}
	text, ok := v.Text()
	if !ok {
		o.wrong(name, "a string", v)
	}
	return text
}

// count is an optional whole number from least to most.
func (o *object) count(name string, least, most, otherwise int64) int64 {
	v := o.get(name)
	if v.Absent() {
		return otherwise
	}
	n, ok := v.Int64()
	switch {
	case v.Kind() != exactjson.KindNumber:
		o.wrong(name, "a number", v)
	case !ok || n < least || n > most:
		o.fault(name, "expected a whole number from %d to %d", least, most)
	default:
		return n
	}
	return otherwise
}

// maxMillis is a hundred years, the longest time that Perigee knows.
const maxMillis = 100 * 366 * 24 * 3600 * 1000

// millis is an optional duration.
func (o *object) millis(name string, otherwise time.Duration) time.Duration {
	return time.Duration(o.count(name, 0, maxMillis, otherwise.Milliseconds())) * time.Millisecond
}

func (o *object) flag(name string, otherwise bool) bool {
	v := o.get(name)
	if v.Absent() {
		return otherwise
	}
	b, ok := v.Bool()
	if !ok {
		o.wrong(name, "a boolean", v)
	}
	return b
}

// texts is an optional list of names or tokens; nil only where it is absent.
func (o *object) texts(name string) []string {
	v := o.get(name)
	if v.Absent() {
		return nil
	}
	if v.Kind() != exactjson.KindArray {
		o.wrong(name, "an array of strings", v)
		return nil
	}
	list := []string{}
	at := object{path: exactjson.JoinPointer(o.path, name), faults: o.faults}
	for element := range v.Elements() {
		list = append(list, at.asText(fmt.Sprint(len(list)), element))
	}
	return list
}

// textMap is an optional object of strings.
func (o *object) textMap(name string) map[string]string {
	v := o.get(name)
	if v.Absent() {
		return nil
	}
	if v.Kind() != exactjson.KindObject {
		o.wrong(name, "an object of strings", v)
		return nil
	}
	m := map[string]string{}
	at := object{path: exactjson.JoinPointer(o.path, name), faults: o.faults}
	for key, value := range v.Members() {
		if key == "" || len(key) > maxNameBytes || !plain(key) {
			at.fault(shorten(key), "expected a name of 1 to %d bytes without control characters", maxNameBytes)
			continue
		}
		m[key] = at.asText(shorten(key), value)
	}
	return m
}

// objectAt is an optional object, nil where it is absent or something else.
func (o *object) objectAt(name string) *object {
	v := o.get(name)
	if v.Absent() {
		return nil
	}
	if v.Kind() != exactjson.KindObject {
		o.wrong(name, "an object", v)
		return nil
	}
	return o.nest(exactjson.JoinPointer(o.path, name), v)
}

func (o *object) nest(path string, v exactjson.Value) *object {
	inner := &object{path: path, strict: o.strict, faults: o.faults, members: membersOf(v)}
	o.inner = append(o.inner, inner)
	return inner
}

// objectsAt is a list of at most most objects that has to be there.
func (o *object) objectsAt(name string, most int) []*object {
	v := o.get(name)
	if v.Kind() != exactjson.KindArray {
		o.wrong(name, "an array of objects", v)
		return nil
	}
	if n := v.Len(); n > most {
		o.fault(name, "expected at most %d elements, got %d", most, n)
		return nil
	}
	var list []*object
	path := exactjson.JoinPointer(o.path, name)
	for element := range v.Elements() {
		at := exactjson.JoinPointer(path, fmt.Sprint(len(list)))
		if element.Kind() != exactjson.KindObject {
			o.faults.add(at, "expected an object, got %s", aKind(element))
		}
		list = append(list, o.nest(at, element))
	}
	return list
}

// aKind names what came, for a sentence.
func aKind(v exactjson.Value) string {
	switch kind := v.Kind(); kind {
	case exactjson.KindAbsent, exactjson.KindNull:
		return kind.String()
	case exactjson.KindArray, exactjson.KindObject:
		return "an " + kind.String()
	default:
		return "a " + kind.String()
	}
}
