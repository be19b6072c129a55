package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perigee/engine/definition"
	"perigee/engine/words"
	"perigee/store"
)

// serverWarnings tells what a definition asks for and this server does not do.
// They have no place in the document: the server is at fault, not the text.
func (e *Engine) serverWarnings(d *definition.Definition) []definition.Fault {
	steps := stepsWithHTTP(d)
	if e.limits.HTTPRequest || len(steps) == 0 {
		return nil
	}
	const few = 5
	named := strings.Join(steps[:min(few, len(steps))], ", ")
	if more := len(steps) - few; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return []definition.Fault{{
		Code: "adapter_disabled", Severity: definition.SeverityWarning,
		Message: fmt.Sprintf("this server does not run %s, which is in: %s", httpTask, named),
		Hint:    "start it with --enable-http-adapter, on AWS with EnableHttpAdapter=true; until then this fails with ADAPTER_DISABLED",
	}}
}

// stepsWithHTTP names what calls http.request.
func stepsWithHTTP(d *definition.Definition) []string {
	var names []string
	find := func(before string, steps []*definition.Step) {
		for _, s := range steps {
			if s.Call != nil && s.Call.Builtin == httpTask {
				names = append(names, before+s.ID)
			}
			if s.Compensate != nil && s.Compensate.Builtin == httpTask {
				names = append(names, before+s.ID+".compensate")
			}
		}
	}
	find("", d.Steps)
	for _, kind := range slices.Sorted(maps.Keys(d.Handlers)) {
		find("on_"+kind+".", d.Handlers[kind])
	}
	return names
}

// contractWarnings names the announced tasks that will bring no work: such a
// worker would wait, and so would the steps that it was meant for. Of a task that
// no workflow uses there is nothing to say: workers may start before the workflow
// is registered.
func (e *Engine) contractWarnings(ctx context.Context, r RegisterRequest) ([]string, error) {
	rows, err := e.store.Definitions(ctx, "")
	if err != nil {
		return nil, fromStore(err, "definitions")
	}
	u := usage{engine: e, rows: rows, runtime: r.Runtime, others: otherTasks(rows, r.Contracts), loads: maxLanguageLoads}
	warnings := []string{}
	for _, c := range r.Contracts {
		if warning := u.warning(ctx, c); warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return warnings, nil
}

// otherTasks are the tasks of workflows that are not retired, but for those that
// a worker announces.
func otherTasks(rows []store.Definition, announced []store.Contract) []string {
	names := map[string]bool{}
	for _, row := range rows {
		for name := range row.Tasks {
			names[name] = !row.Retired || names[name]
		}
	}
	for _, c := range announced {
		delete(names, c.TaskName)
	}
	maps.DeleteFunc(names, func(_ string, current bool) bool { return !current })
	return slices.Sorted(maps.Keys(names))
}

// usage is what registered workflows use, for one registration of a worker.
type usage struct {
	engine  *Engine
	rows    []store.Definition
	runtime string
	others  []string // tasks in use that the worker does not announce, sorted
	loads   int      // definitions that may still be read from the store
}

// warning is what keeps a contract from bringing work; "" where nothing is known.
func (u *usage) warning(ctx context.Context, c store.Contract) string {
	all, current := u.versions(c.TaskName)
	if _, err := definition.ParseVersion(c.ContractVersion); err != nil {
		warning := fmt.Sprintf("no definition can name task %s in this way: %v", c.TaskName, err)
		if len(current) > 0 {
			return warning + "; registered workflows use " + strings.Join(current, ", ")
		}
		return warning + u.meant(c.TaskName)
	}
	switch {
	case slices.Contains(all, c.ContractVersion):
		return u.languageWarning(ctx, c)
	case len(all) > 0:
		return fmt.Sprintf("no registered workflow uses %s@%s; they use version %s", c.TaskName, c.ContractVersion, strings.Join(current, ", "))
	}
	return u.nameWarning(c.TaskName)
}

// versions are those of a task that workflows use: all, and those that are not
// retired. Executions of a retired workflow run on, so its version is not wrong;
// it is recommended only where there is no other.
func (u *usage) versions(task string) (all, current []string) {
	for _, row := range u.rows {
		if version, here := row.Tasks[task]; here {
			all = append(all, version)
			if !row.Retired {
				current = append(current, version)
			}
		}
	}
	if len(current) == 0 {
		current = slices.Clone(all)
	}
	slices.Sort(current)
	return all, slices.Compact(current)
}

// nameWarning is for a task that no workflow uses.
func (u *usage) nameWarning(task string) string {
	meant := u.meant(task)
	switch {
	case !definition.IsTaskName(task):
		return fmt.Sprintf("no definition can name a task %q: expected %s%s", task, definition.TaskNameForm, meant)
	case meant != "":
		return fmt.Sprintf("no registered workflow uses the task %s%s", task, meant)
	}
	return ""
}

// meant asks for a task in use that a name may have been meant to be: one with a
// slip of the pen in one part. What the worker announces as well was not meant.
func (u *usage) meant(task string) string {
	for _, other := range u.others {
		if lettersOf(task) == lettersOf(other) || partsNear(task, other) {
			return "; did you mean " + other + "?"
		}
	}
	return ""
}

// lettersOf is a name without what is between its words.
func lettersOf(name string) string { return strings.ToLower(separators.Replace(name)) }

var separators = strings.NewReplacer(".", "", "-", "", "_", "", " ", "", "/", "")

// partsNear reports whether two names differ in one part, and there not by much:
// inventory.reserve and inventory.release are two tasks.
func partsNear(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	if len(as) != len(bs) {
		return false
	}
	var apart []int
	for i := range as {
		if as[i] != bs[i] {
			apart = append(apart, i)
		}
	}
	return len(apart) == 1 && words.Nearest(as[apart[0]], bs[apart[0]:apart[0]+1]) != ""
}

// maxLanguageLoads bounds the definitions that one registration reads. Those that
// this process has used before are in memory and do not count.
const maxLanguageLoads = 16

// languageWarning is for a runtime that no workflow wants for this task. One that
// does, or cannot be read, is enough to say nothing.
func (u *usage) languageWarning(ctx context.Context, c store.Contract) string {
	var wanted []string
	for _, row := range slices.Backward(u.rows) { // the newest of each first
		if row.Tasks[c.TaskName] != c.ContractVersion {
			continue
		}
		language := u.language(ctx, row.Hash, c.TaskName)
		if language == "" || language == "any" || language == u.runtime {
			return ""
		}
		wanted = append(wanted, language)
	}
	slices.Sort(wanted)
	return fmt.Sprintf("no registered workflow gives %s@%s to the runtime %s; they want %s: register with that runtime, or leave language out of the definition",
		c.TaskName, c.ContractVersion, u.runtime, strings.Join(slices.Compact(wanted), ", "))
}

// language is what a definition wants of the workers of a task, "" if that is not
// known.
func (u *usage) language(ctx context.Context, hash, task string) string {
	if _, warm := u.engine.programs.byHash(hash); !warm {
		if u.loads == 0 {
			return ""
		}
		u.loads--
	}
	program, err := u.engine.program(ctx, hash)
	if err != nil || program.Definition.Tasks[task] == nil {
		return ""
	}
	return program.Definition.Tasks[task].Language
}
