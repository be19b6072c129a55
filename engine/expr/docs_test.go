package expr

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/exactjson"
)

const page = "../../docs/expressions.md"

// row is a row of a table of the page that shows an expression or a template.
type row struct {
	heading, kind, source, want string
}

// TestDocs_EveryRowOfThePageIsTrue runs the tables of docs/expressions.md.
func TestDocs_EveryRowOfThePageIsTrue(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	vars := pageVars(t, string(text))
	rows := pageRows(string(text))
	if len(rows) < 80 {
		t.Fatalf("the page shows %d rows; is it still read?", len(rows))
	}
	for _, r := range rows {
		t.Run(r.heading+"/"+r.source, func(t *testing.T) {
			got := evaluate(r, vars)
			if want, failed := strings.CutPrefix(r.want, "error: "); failed {
				if !strings.HasPrefix(got, "error: ") || !strings.Contains(got, strings.Trim(want, "`")) {
					t.Errorf("got %s, want an error with %s", got, want)
				}
				return
			}
			if diff := cmp.Diff(strings.Trim(r.want, "`"), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDocs_ThePageNamesEveryFunction(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	env, err := environment(everything)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range functionNames(env) {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/expressions.md does not name %s", name)
		}
	}
	for extension := range strings.FieldsSeq(Extensions()) {
		name, version, _ := strings.Cut(extension, "@")
		if !strings.Contains(string(text), name+" "+version) && !strings.Contains(string(text), name+" types "+version) {
			t.Errorf("docs/expressions.md does not name %s", extension)
		}
	}
}

// evaluate is the JSON that a row gives, or its error.
func evaluate(r row, vars *Vars) string {
	var p *Program
	var problems []Problem
	if r.kind == "template" {
		v, err := exactjson.Parse([]byte(r.source))
		if err != nil {
			return err.Error()
		}
		p, problems = Template(v, everything)
	} else {
		p, problems = Expression(r.source, everything)
	}
	if len(problems) > 0 {
		return "refused: " + problems[0].Message
	}
	v, err := p.Eval(vars, Bounds{})
	if err != nil {
		return "error: " + err.Error()
	}
	return string(v)
}

func pageVars(t *testing.T, text string) *Vars {
	t.Helper()
	_, block, _ := strings.Cut(text, "```json input\n")
	block, _, _ = strings.Cut(block, "```")
	input, err := exactjson.Parse([]byte(block))
	if err != nil {
		t.Fatal(err)
	}
	const started = 1772323200000 // 2026-03-01T00:00:00Z
	vars := sample()
	vars.Input, vars.Execution.StartedAtMS, vars.NowMS = input, started, started+250
	return vars
}

// pageRows are the rows of the tables headed expression or template.
func pageRows(text string) []row {
	var rows []row
	heading, kind := "", ""
	for line := range strings.SplitSeq(text, "\n") {
		if after, ok := strings.CutPrefix(line, "## "); ok {
			heading = after
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			kind = ""
		case strings.HasPrefix(line, "| expression |"), strings.HasPrefix(line, "| template |"):
			kind = strings.TrimSpace(cells[0])
		case kind != "" && len(cells) == 2:
			rows = append(rows, row{heading, kind, strings.Trim(strings.TrimSpace(cells[0]), "`"), strings.TrimSpace(cells[1])})
		}
	}
	return rows
}
