package cli_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func TestHelp_EveryCommandSaysWhatItDoes(t *testing.T) {
	for _, name := range []string{
		"cancel", "deploy", "dev", "doctor", "history", "ls", "migrate", "query", "replay", "retire", "show", "signal",
		"start", "token create", "token delete", "token ls", "validate", "workers", "workflows",
	} {
		text := help(t, append(strings.Fields(name), "--help")...)
		if !strings.Contains(text, "Usage:") || len(text) < 150 {
			t.Errorf("perigee %s --help says little:\n%s", name, text)
		}
	}
}
