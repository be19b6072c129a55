package definition

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/exactjson"
	"perigee/engine/schema"
)

// exampleFiles are the definitions that users are shown.
func exampleFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir("../../examples", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there are no examples")
	}
	return files
}

func editorSchema(t *testing.T) *schema.Schema {
	t.Helper()
	text, err := os.ReadFile("../../docs/schema/workflow.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := exactjson.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	compiled, problems := schema.Compile(doc)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return compiled
}

func TestExamples_HaveNoFaultsAndFitTheEditorsSchema(t *testing.T) {
	editor := editorSchema(t)
	files := exampleFiles(t)
	files["testdata/order.yaml"] = string(orderExample(t))
	for path, text := range files {
		d, faults := Parse([]byte(text), YAML)
		if len(faults) > 0 {
			t.Errorf("%s: %v", path, faults)
		}
		if d == nil {
			continue
		}
		if _, violations := editor.Apply(d.Canonical); len(violations) > 0 {
			t.Errorf("%s does not fit the editor's schema: %v", path, violations)
		}
	}
}

func TestEditorsSchema_RefusesWhatRegistrationRefuses(t *testing.T) {
	editor := editorSchema(t)
	for _, snippet := range []string{
		"steps: [ { id: a, sleep: 1s } ]\nquerys: {}\n",
		"steps: [ { id: a, task: do.it, retries: 3 } ]\n",
		"steps: [ { id: a, sleep: 1s, retry: none } ]\n",
		"steps: [ { id: a, sleep: 5 } ]\n",
		"steps: [ { id: a, sleep: 5x } ]\n",
		"steps: [ { sleep: 1s } ]\n",
		"steps: [ { id: a-b, sleep: 1s } ]\n",
		"steps: [ { id: compensate, sleep: 1s } ]\n",
		"steps: []\n",
		"steps: [ { id: a } ]\n",
		"steps: [ { id: a, sleep: 1s, task: do.it } ]\n",
		"steps: [ { id: a, workflow: pay } ]\n",
		"steps: [ { id: a, workflow: pay@1.0.0, queue_timeout: 1h } ]\n",
		"steps: [ { id: a, task: do.it, compensate: { with: {} } } ]\n",
		"steps: [ { id: a, task: do.it, catch: [ { codes: [CANCELLED] } ] } ]\n",
		"steps: [ { id: g, parallel: [ { id: a, sleep: 1s } ] } ]\n",
		"steps: [ { switch: [ { when: a, otherwise: true, steps: [ { id: a, sleep: 1s } ] } ] } ]\n",
		"steps: [ { id: a, fail: { code: X } } ]\n",
		"steps: [ { id: a, sleep: 1s } ]\non_failure: [ { id: b, await: go } ]\n",
		"steps: [ { id: a, sleep: 1s } ]\nlimits: { max_fan_out: 0 }\n",
	} {
		value, faults := readText(head + snippet)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if _, violations := editor.Apply(value); len(violations) == 0 {
			t.Errorf("the editor's schema takes\n%s", snippet)
		}
		if d, _ := Parse([]byte(head+snippet), YAML); d != nil {
			t.Errorf("registration takes\n%s", snippet)
		}
	}
	for _, text := range []string{
		"name: a\nversion: 1.10\nsteps: [ { id: a, sleep: 1s } ]\n",
		"name: Orders\nversion: \"1.0.0\"\nsteps: [ { id: a, sleep: 1s } ]\n",
		"name: a\nsteps: [ { id: a, sleep: 1s } ]\n",
	} {
		value, faults := readText(text)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if _, violations := editor.Apply(value); len(violations) == 0 {
			t.Errorf("the editor's schema takes\n%s", text)
		}
	}
}

func TestDocs_ListEveryFaultCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/definition.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("fault.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, match := range regexp.MustCompile(`(?m)^\tCode\w+\s*= "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, match[1])
	}
	_, section, found := strings.Cut(string(page), "## Faults")
	if !found {
		t.Fatal("docs/definition.md has no section Faults")
	}
	var got []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(section, -1) {
		got = append(got, match[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The definitions shown on the page are real ones.
func TestDocs_ExamplesHaveNoErrors(t *testing.T) {
	page, err := os.ReadFile("../../docs/definition.md")
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for _, match := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if !strings.HasPrefix(match[1], "name:") {
			continue
		}
		whole++
		if _, faults := Parse([]byte(match[1]), YAML); HasErrors(faults) {
			t.Errorf("%s\n%v", match[1], faults)
		}
	}
	if whole == 0 {
		t.Error("the page shows no whole definition")
	}
}
