package template_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"perigee/infra/config"
	"perigee/infra/metrics"
	"perigee/infra/template"
)

const root = "../../"

func readFile(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func surroundings(t *testing.T) template.Surroundings {
	settings := config.Markdown()
	return template.Surroundings{
		Runbook:   readFile(t, "docs/runbook.md"),
		Variables: func(name string) bool { return strings.Contains(settings, "`"+name+"`") },
		Metrics:   metrics.Names(),
		Source: func(folder string) bool {
			info, err := os.Stat(filepath.Join(root, folder, "main.go"))
			return err == nil && !info.IsDir()
		},
	}
}

func TestTemplate_KeepsTheRules(t *testing.T) {
	faults, err := template.Check([]byte(readFile(t, "template.yaml")), surroundings(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}

// refusal is a deployment of refused.yaml.
type refusal struct {
	Name       string            `yaml:"name"`
	Parameters map[string]string `yaml:"parameters"`
	Says       string            `yaml:"says"`
}

// CloudFormation looks at these before it makes anything.
func TestRules_RefuseWhatCannotWork(t *testing.T) {
	parsed, err := template.Read([]byte(readFile(t, "template.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	var refused []refusal
	if err := yaml.UnmarshalWithOptions([]byte(readFile(t, "infra/template/refused.yaml")), &refused, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for _, r := range refused {
		says, err := parsed.Refusals(r.Parameters)
		if err != nil || len(says) != 1 || !strings.Contains(says[0], r.Says) {
			t.Errorf("%s: got %q, %v; want one refusal with %q", r.Name, says, err, r.Says)
		}
	}
	var deployments map[string]map[string]string
	if err := yaml.UnmarshalWithOptions([]byte(readFile(t, "infra/template/deployments.yaml")), &deployments, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for name, parameters := range deployments {
		if says, err := parsed.Refusals(parameters); err != nil || len(says) > 0 {
			t.Errorf("deployment %s is refused: %q, %v", name, says, err)
		}
	}
}

// Every assertion is shown to refuse something.
func TestRules_AreAllShown(t *testing.T) {
	refused := readFile(t, "infra/template/refused.yaml")
	for line := range strings.Lines(readFile(t, "template.yaml")) {
		_, description, found := strings.Cut(line, "AssertDescription: ")
		if found && !strings.Contains(refused, "says: "+strings.TrimSpace(description)) {
			t.Errorf("refused.yaml has nothing for which the template says %q", strings.TrimSpace(description))
		}
	}
}

// mutation is a mistake in mutations.yaml.
type mutation struct {
	Name     string `yaml:"name"`
	Replace  string `yaml:"replace"`
	With     string `yaml:"with"`
	CaughtBy string `yaml:"caught_by"`
	Says     string `yaml:"says"`
}

func mutations(t *testing.T) (list []mutation) {
	t.Helper()
	if err := yaml.UnmarshalWithOptions([]byte(readFile(t, "infra/template/mutations.yaml")), &list, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestMutations_AreCaughtByTheRules(t *testing.T) {
	source, s := readFile(t, "template.yaml"), surroundings(t)
	for _, m := range mutations(t) {
		if m.CaughtBy != "rules" {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			faults, err := template.Check([]byte(strings.ReplaceAll(source, m.Replace, m.With)), s)
			if err != nil {
				faults = []string{err.Error()}
			}
			if all := strings.Join(faults, "\n"); !strings.Contains(all, m.Says) {
				t.Errorf("want a fault with %q, got:\n%s", m.Says, all)
			}
		})
	}
}

// The mistakes for the other tools are made by check.py; here only that each is
// still a mistake that can be made, and that it names who finds it.
func TestMutations_ChangeTheTemplate(t *testing.T) {
	source := readFile(t, "template.yaml")
	for _, m := range mutations(t) {
		if !strings.Contains(source, m.Replace) {
			t.Errorf("%s: template.yaml has no %q", m.Name, m.Replace)
		}
		switch m.CaughtBy {
		case "sam", "cfn-lint", "checkov", "rules":
		default:
			t.Errorf("%s: caught_by is %q; want sam, cfn-lint, checkov or rules", m.Name, m.CaughtBy)
		}
		if m.Says == "" {
			t.Errorf("%s: says nothing of what is said", m.Name)
		}
	}
}
