package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"perigee/engine/exactjson"
)

// payload reads a JSON argument: the text itself, @FILE, or - for standard
// input. nil: there is no such argument.
func (a *app) payload(args []string, place int, what string) (json.RawMessage, error) {
	if len(args) <= place {
		return nil, nil
	}
	text, from, err := a.read(args[place])
	if err != nil {
		return nil, usage("%s: %w", what, err)
	}
	value, err := exactjson.Parse(text)
	if err != nil {
		return nil, usage("%s: %s is no JSON%s", what, from, whereNot(err))
	}
	return json.RawMessage(value), nil
}

// whereNot says where a text stops being JSON, and why.
func whereNot(err error) string {
	var syntax *exactjson.SyntaxError
	if !errors.As(err, &syntax) {
		return ": " + err.Error()
	}
	at := ""
	if syntax.Path != "" {
		at = syntax.Path + ", "
	}
	return fmt.Sprintf(" at %sbyte %d: %s", at, syntax.Offset, syntax.Message)
}

// read gives the text of an argument and says where it stood.
func (a *app) read(arg string) (text []byte, from string, err error) {
	if arg == "-" {
		text, err = io.ReadAll(a.In)
		return text, "standard input", err
	}
	if path, ok := strings.CutPrefix(arg, "@"); ok {
		text, err = os.ReadFile(path)
		return text, path, err
	}
	return []byte(arg), "the argument", nil
}

// pairs reads name=value arguments.
func pairs(flag string, list []string) (map[string]string, error) {
	var m map[string]string
	for _, item := range list {
		name, value, ok := strings.Cut(item, "=")
		if !ok || name == "" {
			return nil, usage("%s %q: expected name=value", flag, item)
		}
		if m == nil {
			m = map[string]string{}
		}
		if _, twice := m[name]; twice {
			return nil, usage("%s: %s is given twice", flag, name)
		}
		m[name] = value
	}
	return m, nil
}

// nameVersion splits name@version; version is "" where there is none.
func nameVersion(arg string) (name, version string) {
	name, version, _ = strings.Cut(arg, "@")
	return name, version
}

// plural is "1 fault" or "3 faults".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
