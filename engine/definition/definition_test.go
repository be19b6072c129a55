package definition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// head is what the snippets of the tests stand in. Lines of a snippet count
// from the first line behind it.
const head = `name: demo
version: "1.0.0"
timeout: 1h
input: { type: object, properties: { n: { type: integer }, list: { type: array, items: { type: object, properties: { sku: {} } } } }, required: [n, list] }
defaults: { queue_timeout: 1h }
signals: { go: { type: object, properties: { yes: {} }, required: [yes] } }
tasks: { do.it: { version: "1.0.0" }, do.typed: { version: "1.0.0", output: { type: object, properties: { id: {}, note: {} }, required: [id] } } }
retry_policies: { patient: { max_attempts: 20 } }
`

// found is one fault in a short form: CODE LINE:COLUMN, lines from the snippet.
func found(faults []Fault, severity string) []string {
	list := []string{}
	for _, f := range faults {
		if f.Severity == severity {
			list = append(list, fmt.Sprintf("%s %d:%d", f.Code, f.Line-strings.Count(head, "\n"), f.Column))
		}
	}
	return list
}

// snippetTest is a snippet with the faults that it must give, in their order.
type snippetTest struct {
	name string
	text string
	want []string
}

func runSnippets(t *testing.T, severity string, tests []snippetTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, faults := Parse([]byte(head+test.text), YAML)
			want := test.want
			if want == nil {
				want = []string{}
			}
			got := found(faults, severity)
			if severity == SeverityWarning {
				got = withoutUnused(got)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n%v", diff, faults)
			}
			if HasErrors(faults) != (d == nil) {
				t.Errorf("definition is %v with faults %v", d, faults)
			}
		})
	}
}

// withoutUnused drops what head gives by itself.
func withoutUnused(list []string) []string {
	kept := []string{}
	for _, f := range list {
		if !strings.HasPrefix(f, CodeUnused+" ") {
			kept = append(kept, f)
		}
	}
	return kept
}

// mustParse is the definition of head and a snippet.
func mustParse(t testing.TB, snippet string) *Definition {
	t.Helper()
	d, faults := Parse([]byte(head+snippet), YAML)
	if d == nil {
		t.Fatalf("the definition has faults: %v", faults)
	}
	return d
}
