package cli_test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/local/cli"
)

// help is what a command line prints.
func help(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Main(args, cli.Process{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) (string, bool) { return "", false }}); code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, errs.String())
	}
	return out.String()
}

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDocs_NameEveryCommand(t *testing.T) {
	text := page(t)
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) {2,}\S`).FindAllStringSubmatch(help(t, "--help"), -1) {
		if name := m[1]; name != "help" && !regexp.MustCompile("`(perigee )?"+name+`\b`).MatchString(text) {
			t.Errorf("docs/cli.md does not name `perigee %s`", name)
		}
	}
}

func TestDocs_ExitCodesAreThoseOfTheHelp(t *testing.T) {
	find := func(pattern, text string) []string {
		var list []string
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			list = append(list, m[1]+" "+m[2])
		}
		return list
	}
	want := find(`(?m)^  (\d+) +(\S.*)$`, help(t, "--help"))
	got := find(`(?m)^\| (\d+) \| (.*) \|$`, strings.ReplaceAll(page(t), "`--wait`", "--wait"))
	if len(want) == 0 {
		t.Fatal("the help lists no exit codes")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/cli.md (-help +page):\n%s", diff)
	}
}

// A word in backticks would stand in the place of the type.
func TestHelp_FlagsHaveTypes(t *testing.T) {
	flags := regexp.MustCompile(`(?m)^      --([a-z-]+)( \S+)?   `)
	seen := map[string]string{}
	for _, name := range append(slices.Clone(commands), "lambda") {
		for _, m := range flags.FindAllStringSubmatch(help(t, append(strings.Fields(name), "--help")...), -1) {
			kind := strings.TrimSpace(m[2])
			if seen[m[1]] = kind; !slices.Contains([]string{"", "string", "stringArray", "int", "uint", "float"}, kind) {
				t.Errorf("perigee %s: --%s has the type %q", name, m[1], kind)
			}
		}
	}
	for flag, want := range map[string]string{"max-fan-out": "string", "all": "", "enable-http-adapter": "", "limit": "int"} {
		if got, ok := seen[flag]; !ok || got != want {
			t.Errorf("--%s has the type %q, want %q", flag, got, want)
		}
	}
}

// What a newcomer copies has to work: the example's schema takes the inputs.
func TestHelp_ExamplesFitTheExample(t *testing.T) {
	text, err := os.ReadFile("../../examples/order/order.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, faults := definition.Parse(text, definition.YAML)
	if d == nil {
		t.Fatal(faults)
	}
	input := regexp.MustCompile(`(?s)start order-fulfilment [^'\n]*'(\{.*?\})'`)
	for _, args := range [][]string{{"--help"}, {"start", "--help"}} {
		found := input.FindStringSubmatch(help(t, args...))
		if found == nil {
			t.Fatalf("perigee %s starts no example", strings.Join(args, " "))
		}
		value, err := exactjson.Parse([]byte(found[1]))
		if err != nil {
			t.Fatalf("%s: %v", found[1], err)
		}
		if _, violations := d.Input.Apply(value); len(violations) > 0 {
			t.Errorf("perigee %s: %s breaks the schema: %v", strings.Join(args, " "), value, violations)
		}
	}
}

// commands are those with a help of their own making.
var commands = []string{
	"cancel", "deploy", "dev", "doctor", "history", "ls", "migrate", "query", "replay", "retire", "show", "signal",
	"start", "token create", "token delete", "token ls", "validate", "workers", "workflows",
}

func TestHelp_EveryCommandSaysWhatItDoes(t *testing.T) {
	for _, name := range commands {
		text := help(t, append(strings.Fields(name), "--help")...)
		if !strings.Contains(text, "Usage:") || len(text) < 150 {
			t.Errorf("perigee %s --help says little:\n%s", name, text)
		}
	}
}
