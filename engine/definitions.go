package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/expr"
	"perigee/store"
)

// RegisterDefinition compiles a definition and stores it for good. The same
// content again is a no-op. Errors: InvalidDefinition with the faults in its
// details, ChildNotRegistered, DefinitionConflict.
func (e *Engine) RegisterDefinition(ctx context.Context, source []byte, format definition.Format) (Registered, error) {
	d, faults := definition.Parse(source, format)
	if d == nil {
		return Registered{}, &Error{Code: InvalidDefinition, Message: faultsMessage(faults), Details: map[string]any{"faults": faults}}
	}
	children, err := e.pinChildren(ctx, d)
	if err != nil {
		return Registered{}, err
	}
	stored, created, err := e.store.PutDefinition(ctx, store.Definition{
		Name:        d.Name,
		Version:     d.Version,
		Hash:        d.Hash,
		Canonical:   string(d.Canonical),
		Children:    children,
		Tasks:       contractVersions(d),
		Extensions:  expr.Extensions(),
		CreatedAtMS: e.nowMS(),
	})
	if err != nil {
		return Registered{}, fromStore(err, "definition")
	}
	if stored.Hash != d.Hash {
		return Registered{}, errorf(DefinitionConflict,
			"%s@%s is registered with other content (%s); a version never changes: give this one another version", d.Name, d.Version, stored.Hash)
	}
	e.programs.forgetVersions(d.Name)
	e.pushed.forget()
	return Registered{Name: d.Name, Version: d.Version, Hash: d.Hash, Created: created, Warnings: append(faults, e.serverWarnings(d)...)}, nil
}

// ValidateDefinition reports every fault of a definition and, where it has
// none that keeps it from being read, the first child that is not registered
// and what this server does not do.
func (e *Engine) ValidateDefinition(ctx context.Context, source []byte, format definition.Format) ([]definition.Fault, error) {
	d, faults := definition.Parse(source, format)
	if d == nil {
		return faults, nil
	}
	var missing *Error
	if _, err := e.pinChildren(ctx, d); errors.As(err, &missing) && missing.Code == ChildNotRegistered {
		faults = append(faults, definition.Fault{
			Code: strings.ToLower(string(missing.Code)), Severity: definition.SeverityError, Message: missing.Message,
		})
	} else if err != nil {
		return nil, err
	}
	return append(faults, e.serverWarnings(d)...), nil
}

// contractVersions are the tasks that a definition's workers must offer.
func contractVersions(d *definition.Definition) map[string]string {
	tasks := make(map[string]string, len(d.Tasks))
	for name, c := range d.Tasks {
		tasks[name] = c.Version
	}
	return tasks
}

func faultsMessage(faults []definition.Fault) string {
	n, first := 0, ""
	for _, f := range faults {
		if f.Severity == definition.SeverityError {
			if n++; n == 1 {
				first = f.Error()
			}
		}
	}
	if n == 1 {
		return "the definition has a fault: " + first
	}
	return fmt.Sprintf("the definition has %d faults; the first: %s", n, first)
}

// pinChildren finds the hashes of the child workflows that a definition names.
func (e *Engine) pinChildren(ctx context.Context, d *definition.Definition) (map[string]string, error) {
	children := make(map[string]string, len(d.Children))
	for _, child := range d.Children {
		name, version, _ := strings.Cut(child, "@")
		row, err := e.version(ctx, name, version)
		switch {
		case errors.Is(err, errorf(WorkflowNotFound, "")):
			return nil, errorf(ChildNotRegistered, "%s@%s starts the child workflow %s, which is not registered; register it first (`perigee deploy` orders files itself)", d.Name, d.Version, child)
		case err != nil:
			return nil, err
		}
		children[child] = row.Hash
	}
	return children, nil
}

// Definitions lists the registered versions, by name and creation.
func (e *Engine) Definitions(ctx context.Context) ([]DefinitionInfo, error) {
	rows, err := e.store.Definitions(ctx, "")
	if err != nil {
		return nil, fromStore(err, "definitions")
	}
	infos := make([]DefinitionInfo, len(rows))
	for i, row := range rows {
		infos[i] = infoOf(row)
	}
	return infos, nil
}

// Definition finds one version; with version "" the default one.
func (e *Engine) Definition(ctx context.Context, name, version string) (DefinitionInfo, error) {
	row, err := e.version(ctx, name, version)
	if err != nil {
		return DefinitionInfo{}, err
	}
	p, err := e.program(ctx, row.Hash)
	if err != nil {
		return DefinitionInfo{}, fromStore(err, "definition")
	}
	info := infoOf(row)
	info.Description = p.Definition.Description
	info.Canonical = p.Definition.Canonical
	return info, nil
}

func infoOf(row store.Definition) DefinitionInfo {
	return DefinitionInfo{
		Name: row.Name, Version: row.Version, Hash: row.Hash,
		Retired: row.Retired, CreatedAtMS: row.CreatedAtMS, Canonical: exactjson.Value(row.Canonical),
	}
}

// Graph gives the nodes and edges of a version.
func (e *Engine) Graph(ctx context.Context, name, version string) (definition.Graph, error) {
	row, err := e.version(ctx, name, version)
	if err != nil {
		return definition.Graph{}, err
	}
	p, err := e.program(ctx, row.Hash)
	if err != nil {
		return definition.Graph{}, fromStore(err, "definition")
	}
	return p.Definition.Graph(), nil
}

// Retire takes a version out of the default choice. Running executions, and
// starts that name the version, go on with it.
func (e *Engine) Retire(ctx context.Context, name, version string) error {
	err := e.store.RetireDefinition(ctx, name, version)
	if errors.Is(err, store.ErrNotFound) {
		return errorf(WorkflowNotFound, "workflow %s@%s is not registered", name, version)
	}
	e.programs.forgetVersions(name)
	return fromStore(err, "definition")
}

// version finds the row of a version; "" chooses the highest that is not
// retired, a pre-release only where there is nothing else.
func (e *Engine) version(ctx context.Context, name, version string) (store.Definition, error) {
	rows, err := e.versions(ctx, name, version)
	if err != nil {
		return store.Definition{}, err
	}
	if version != "" {
		for _, row := range rows {
			if row.Version == version {
				return row, nil
			}
		}
		return store.Definition{}, errorf(WorkflowNotFound, "workflow %s@%s is not registered%s", name, version, registered(rows))
	}
	var best *store.Definition
	for i, row := range rows {
		if !row.Retired && (best == nil || preferred(row.Version, best.Version)) {
			best = &rows[i]
		}
	}
	if best == nil && len(rows) > 0 {
		return store.Definition{}, errorf(WorkflowNotFound, "every version of workflow %s is retired; name one to start it all the same, or deploy a new one%s", name, registered(rows))
	}
	if best == nil {
		return store.Definition{}, errorf(WorkflowNotFound, "workflow %s is not registered; register it with `perigee deploy FILE`", name)
	}
	return *best, nil
}

func registered(rows []store.Definition) string {
	if len(rows) == 0 {
		return ""
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		if names[i] = row.Version; row.Retired {
			names[i] += " (retired)"
		}
	}
	return "; registered: " + strings.Join(names, ", ")
}

func preferred(a, b string) bool {
	if preA, preB := strings.Contains(a, "-"), strings.Contains(b, "-"); preA != preB {
		return preB
	}
	return definition.CompareVersions(a, b) > 0
}

// versionsFreshMS is how long a list of versions is trusted: another process
// may have registered a newer one.
const versionsFreshMS = 1000

// versions lists a workflow's versions, from memory where that list is fresh
// and, if a version is asked for, has it.
func (e *Engine) versions(ctx context.Context, name, version string) ([]store.Definition, error) {
	now := e.localMS()
	if rows, ok := e.programs.versions(name, now-versionsFreshMS); ok {
		for _, row := range rows {
			if version == "" || row.Version == version {
				return rows, nil
			}
		}
	}
	rows, err := e.store.Definitions(ctx, name)
	if err != nil {
		return nil, fromStore(err, "definitions")
	}
	e.programs.keepVersions(name, now, rows)
	return rows, nil
}
