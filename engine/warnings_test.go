package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/store"
)

// workflow is a definition that declares tasks and uses none.
func workflow(name, version string, tasks ...string) string {
	return fmt.Sprintf("name: %s\nversion: %q\ntasks:\n  %s\nsteps: [ { id: a, compute: 1 } ]\n", name, version, strings.Join(tasks, "\n  "))
}

// announce registers a worker and gives the warnings.
func (b *bench) announce(runtime string, contracts ...string) []string {
	b.t.Helper()
	r := engine.RegisterRequest{WorkerID: "w", Runtime: runtime}
	for _, contract := range contracts {
		name, version, _ := strings.Cut(contract, "@")
		r.Contracts = append(r.Contracts, store.Contract{TaskName: name, ContractVersion: version})
	}
	reg, err := b.RegisterWorker(b.t.Context(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	return reg.Warnings
}

func TestRegisterWorker_WarnsOfWhatBringsNoWork(t *testing.T) {
	b := newBench(t, engine.Options{})
	b.deploy(workflow("old", "1.0.0", `billing.refund: { version: "0.9.0" }`, `gone.task: { version: "1.0.0" }`))
	if err := b.Retire(t.Context(), "old", "1.0.0"); err != nil {
		t.Fatal(err)
	}
	b.deploy(workflow("bills", "1.0.0", `billing.charge: { version: "1.0.0", language: python }`, `billing.refund: { version: "1.0.0" }`, `inventory.release: { version: "1.0.0" }`))
	b.deploy(workflow("bills", "2.0.0", `billing.charge: { version: "2.0.0", language: Python }`, `mail.send: { version: "1.0.0", language: go }`))
	b.deploy(workflow("mails", "1.0.0", `mail.send: { version: "1.0.0", language: python }`))
	for _, test := range []struct {
		name, runtime string
		contracts     []string
		want          []string
	}{
		{"all is well", "Python", []string{"billing.charge@1.0.0", "billing.charge@2.0.0", "billing.refund@1.0.0"}, nil},
		{"one of two languages", "go", []string{"mail.send@1.0.0"}, nil},
		{"another runtime", "ruby", []string{"billing.charge@1.0.0", "billing.refund@1.0.0", "mail.send@1.0.0"}, []string{
			"no registered workflow gives billing.charge@1.0.0 to the runtime ruby; they want python: register with that runtime, or leave language out of the definition",
			"no registered workflow gives mail.send@1.0.0 to the runtime ruby; they want go, python: register with that runtime, or leave language out of the definition",
		}},
		{"another version", "python", []string{"billing.charge@3.0.0"}, []string{"no registered workflow uses billing.charge@3.0.0; they use version 1.0.0, 2.0.0"}},
		{"the version of a retired workflow, whose executions run on", "go", []string{"billing.refund@0.9.0", "gone.task@1.0.0"}, nil},
		{"no SemVer", "python", []string{"billing.charge@1.0", "new.task@v1.0.0", "billing.refun@1"}, []string{
			`no definition can name task billing.charge in this way: version "1.0" is not three numbers; expected a version of SemVer 2.0 such as 1.2.0 or 2.0.0-rc.1; registered workflows use 1.0.0, 2.0.0`,
			`no definition can name task new.task in this way: version "v1.0.0" is not three numbers; expected a version of SemVer 2.0 such as 1.2.0 or 2.0.0-rc.1`,
			`no definition can name task billing.refun in this way: version "1" is not three numbers; expected a version of SemVer 2.0 such as 1.2.0 or 2.0.0-rc.1; did you mean billing.refund?`,
		}},
		{"a slip of the pen", "python", []string{"billing.charg@1.0.0", "biling.refund@1.0.0", "mail-send@1.0.0"}, []string{
			"no registered workflow uses the task billing.charg; did you mean billing.charge?",
			"no registered workflow uses the task biling.refund; did you mean billing.refund?",
			"no registered workflow uses the task mail-send; did you mean mail.send?",
		}},
		{"no name of a task", "python", []string{"billingCharge@1.0.0", "a b@1.0.0"}, []string{
			`no definition can name a task "billingCharge": expected ` + definition.TaskNameForm + "; did you mean billing.charge?",
			`no definition can name a task "a b": expected ` + definition.TaskNameForm,
		}},
		{"a task of a workflow to come", "python", []string{"inventory.reserve@1.0.0", "billing.audit@1.0.0", "other@1.0.0"}, nil},
		{"what is announced as well was not meant", "python", []string{"billing.charge@1.0.0", "billing.charges@1.0.0"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := append([]string{}, test.want...)
			if diff := cmp.Diff(want, b.announce(test.runtime, test.contracts...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A registration must not read a whole database to give a warning.
func TestRegisterWorker_ReadsFewDefinitionsForItsWarnings(t *testing.T) {
	b := newBench(t, engine.Options{})
	for i := range 40 {
		b.deploy(workflow("w", fmt.Sprintf("1.0.%d", i), `a.task: { version: "1.0.0", language: python }`))
	}
	if got := b.announce("ruby", "a.task@1.0.0"); len(got) != 0 {
		t.Errorf("got %q, after 16 of 40 definitions", got)
	}
	b.announce("ruby", "a.task@1.0.0")
	if got := b.announce("ruby", "a.task@1.0.0"); len(got) != 1 {
		t.Errorf("got %q, with all of them in memory", got)
	}
}

const callsOut = `name: calls
version: "1.0.0"
timeout: 1h
steps:
  - id: get
    task: http.request
    with: { url: "https://example.com" }
    compensate: { task: http.request, with: { url: "https://example.com/undo" } }
on_failure:
  - { id: tell, task: http.request, with: { url: "https://example.com/tell" } }
`

func TestDefinition_WarnsWhereTheServerDoesNotRunHTTPRequest(t *testing.T) {
	want := []definition.Fault{{
		Code: "adapter_disabled", Severity: definition.SeverityWarning,
		Message: "this server does not run http.request, which is in: get, get.compensate, on_failure.tell",
		Hint:    "start it with --enable-http-adapter, on AWS with EnableHttpAdapter=true; until then this fails with ADAPTER_DISABLED",
	}}
	off := newBench(t, engine.Options{})
	on := newBench(t, engine.Options{HTTPRequest: func(context.Context, exactjson.Value) (exactjson.Value, *engine.Failure) {
		return "{}", nil
	}})
	for _, again := range []bool{false, true} {
		registered, err := off.RegisterDefinition(t.Context(), []byte(callsOut), definition.YAML)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, registered.Warnings); diff != "" || registered.Created == again {
			t.Errorf("again %t: created %t\n%s", again, registered.Created, diff)
		}
	}
	found, err := off.ValidateDefinition(t.Context(), []byte(callsOut), definition.YAML)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	registered, err := on.RegisterDefinition(t.Context(), []byte(callsOut), definition.YAML)
	if err != nil || len(registered.Warnings) > 0 {
		t.Errorf("with the adapter: %+v, %v", registered.Warnings, err)
	}
	if registered, err = off.RegisterDefinition(t.Context(), []byte(chain(1)), definition.YAML); err != nil {
		t.Fatal(err)
	}
	for _, w := range registered.Warnings {
		if w.Code == "adapter_disabled" {
			t.Errorf("without http.request: %v", w)
		}
	}
}
