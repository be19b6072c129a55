package expr

import (
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// analysis walks a parsed expression for what it refers to and for what the
// type check does not see.
type analysis struct {
	*expression
	env      *cel.Env
	source   *ast.SourceInfo
	names    []string
	locals   map[string]int // macro variables, by how often they are open
	refs     []Ref
	problems []Problem
	unknown  map[string]bool // names that were reported
}

func newAnalysis(e *expression, env *cel.Env, parsed *ast.AST) *analysis {
	return &analysis{
		expression: e, env: env, source: parsed.SourceInfo(), names: e.scope.names(),
		locals: map[string]int{}, unknown: map[string]bool{},
	}
}

func (a *analysis) report(code string, id int64, message, hint string) {
	a.problems = append(a.problems, a.problem(code, a.start(id), message, hint))
}

// start is where a node begins, in bytes into the source.
func (a *analysis) start(id int64) int {
	if place, ok := a.source.GetOffsetRange(id); ok {
		return a.byteOffset(int(place.Start))
	}
	return 0
}

// selection is a chain of selections: root.a["b"].?c, has(root.a) …
type selection struct {
	root     ast.Expr // where it starts; an identifier or anything else
	segments []Segment
	keys     []ast.Expr // the key of each segment, nil for a constant name
}

func selectionOf(e ast.Expr) selection {
	s := selection{root: e}
	tested := false
	for {
		operand, segment, key := step(s.root)
		if operand == nil {
			break
		}
		tested = tested || s.root.Kind() == ast.SelectKind && s.root.AsSelect().IsTestOnly()
		s.segments = append(s.segments, segment)
		s.keys = append(s.keys, key)
		s.root = operand
	}
	slices.Reverse(s.segments)
	slices.Reverse(s.keys)
	optional := false
	for i := range s.segments {
		optional = optional || s.segments[i].Optional // it passes on to what follows
		s.segments[i].Optional = optional
	}
	if tested {
		s.segments[len(s.segments)-1].Optional = true
	}
	return s
}

// step takes one selection off e; operand is nil if e is none.
func step(e ast.Expr) (operand ast.Expr, segment Segment, key ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand(), Segment{Name: e.AsSelect().FieldName()}, nil
	case ast.CallKind:
		call := e.AsCall()
		name := call.FunctionName()
		if name != operators.Index && name != operators.OptIndex && name != operators.OptSelect || len(call.Args()) != 2 {
			return nil, Segment{}, nil
		}
		operand, key := call.Args()[0], call.Args()[1]
		segment := Segment{Name: Each, Optional: name != operators.Index}
		if text, ok := literalText(key); ok {
			segment.Name = text
			return operand, segment, nil
		}
		return operand, segment, key
	}
	return nil, Segment{}, nil
}

// variable is the name in scope that a selection starts at, "" if none.
func (a *analysis) variable(s selection) string {
	if s.root.Kind() != ast.IdentKind {
		return ""
	}
	name := strings.TrimPrefix(s.root.AsIdent(), ".")
	if a.locals[name] > 0 || !slices.Contains(a.names, name) {
		return ""
	}
	return name
}

// walk visits e, given the facts that hold when it is evaluated.
func (a *analysis) walk(e ast.Expr, known facts) {
	if e == nil {
		return
	}
	switch e.Kind() {
	case ast.IdentKind, ast.SelectKind:
		a.selection(e, known)
	case ast.CallKind:
		a.call(e, known)
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			a.walk(element, known)
		}
	case ast.MapKind:
		a.mapping(e, known)
	case ast.StructKind:
		a.report(CodeUnsupported, e.ID(), "there are no message types here; write an object: {\"name\": value}", "")
	case ast.ComprehensionKind:
		a.comprehension(e, known)
	}
}

func (a *analysis) selection(e ast.Expr, known facts) {
	s := selectionOf(e)
	for _, key := range s.keys {
		a.walk(key, known)
	}
	if s.root.Kind() != ast.IdentKind {
		a.walk(s.root, known)
		return
	}
	if name := a.variable(s); name != "" {
		a.reference(name, s, known)
		return
	}
	a.identifier(s)
}

// reference records a selection that starts at a variable.
func (a *analysis) reference(name string, s selection, known facts) {
	path := slices.Clone(s.segments)
	known.guard(name, path)
	a.refs = append(a.refs, Ref{Root: name, Path: path, At: a.at, Offset: a.offset + a.start(s.root.ID())})
	id := s.root.ID()
	switch name {
	case "steps":
		if len(path) == 0 {
			a.report(CodeStepsReference, id, "expected the id of a step behind steps, got steps alone", `write steps.<id> or steps["<id>"]`)
			return
		}
		if s.keys[0] != nil {
			a.report(CodeStepsReference, id, "expected the id of a step as a constant, got a computed key", `write steps.<id> or steps["<id>"]`)
			return
		}
		a.field(id, "steps."+path[0].Name, path[1:], stepFields)
	case "execution":
		a.field(id, "execution", path, executionFields)
		if len(path) > 0 && path[0].Name == "parent" {
			a.field(id, "execution.parent", path[1:], parentFields)
		}
	case "failure":
		a.field(id, "failure", path, failureFields)
	}
}

// field checks the first segment of path against the fields that there are.
func (a *analysis) field(id int64, of string, path []Segment, fields []string) {
	if len(path) == 0 || slices.Contains(fields, path[0].Name) {
		return
	}
	hint := didYouMean(path[0].Name, fields)
	if hint == "" {
		hint = "its fields are " + strings.Join(fields, ", ")
	}
	a.report(CodeUnknownName, id, of+" has no field "+brief(path[0].Name), hint)
}

// identifier checks a name that is no variable of the scope.
func (a *analysis) identifier(s selection) {
	name := strings.TrimPrefix(s.root.AsIdent(), ".")
	if a.locals[name] > 0 || a.isType(name) {
		return
	}
	qualified := name
	for _, segment := range s.segments {
		if qualified += "." + segment.Name; a.isType(qualified) {
			return
		}
	}
	if a.unknown[name] {
		return
	}
	a.unknown[name] = true
	hint := didYouMean(name, a.names)
	if hint == "" {
		hint = "here are " + strings.Join(a.names, ", ")
	}
	if where, elsewhere := otherScopes[name]; elsewhere {
		hint = name + " is only there " + where
	} else if meant := meantNames[strings.ToLower(name)]; meant != "" {
		hint = meant
	}
	a.report(CodeUnknownName, s.root.ID(), "there is no name "+brief(name), hint)
}

var otherScopes = map[string]string{
	"item": "under for", "index": "under for", "output": "in a compensation", "failure": "in a compensation and in handlers",
	"idempotency_key": "in a compensation", "error": "in catch",
}

func (a *analysis) isType(name string) bool {
	_, found := a.env.CELTypeProvider().FindIdent(name)
	return found
}

func (a *analysis) call(e ast.Expr, known facts) {
	if operand, _, _ := step(e); operand != nil {
		a.selection(e, known)
		return
	}
	call := e.AsCall()
	arguments := call.Args()
	switch call.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr:
		for _, term := range arguments {
			a.walk(term, known)
			known = append(slices.Clip(known), a.learn(term, call.FunctionName() == operators.LogicalAnd)...)
		}
		return
	case operators.Conditional:
		a.walk(arguments[0], known)
		a.walk(arguments[1], append(slices.Clip(known), a.learn(arguments[0], true)...))
		a.walk(arguments[2], append(slices.Clip(known), a.learn(arguments[0], false)...))
		return
	}
	if call.IsMemberFunction() && !a.isNamespace(e) {
		a.walk(call.Target(), known)
	}
	variable := a.strangeMacro(call)
	a.locals[variable]++
	for _, argument := range arguments {
		a.walk(argument, known)
	}
	a.locals[variable]--
}

// isNamespace reports whether what looks like the target of a call belongs to
// the name of the function, as in math.least(), or was meant to.
func (a *analysis) isNamespace(e ast.Expr) bool {
	call := e.AsCall()
	s := selectionOf(call.Target())
	if s.root.Kind() != ast.IdentKind {
		return false
	}
	root := strings.TrimPrefix(s.root.AsIdent(), ".")
	name := root
	for _, segment := range s.segments {
		name += "." + segment.Name
	}
	name += "." + call.FunctionName()
	if a.env.HasFunction(name) {
		return true
	}
	if a.variable(s) != "" || a.locals[root] > 0 || a.isType(root) {
		return false
	}
	hint := functionHint(name, functionNames(a.env))
	if hint == "" {
		return false
	}
	a.report(CodeUnknownFunction, s.root.ID(), "there is no function "+brief(name), hint)
	a.unknown[root], a.unknown[call.FunctionName()] = true, true // the type check finds both
	return true
}

// strangeMacro is the variable of what was meant to be a macro, under the name
// that another language has for it; "" if call is none. Of the variable itself
// there is nothing to say.
func (a *analysis) strangeMacro(call ast.CallExpr) string {
	meant := meantFunctions[strings.ToLower(call.FunctionName())]
	if !call.IsMemberFunction() || len(call.Args()) < 2 || call.Args()[0].Kind() != ast.IdentKind || !slices.Contains(macros, meant) {
		return ""
	}
	name := call.Args()[0].AsIdent()
	a.unknown[name] = true
	return name
}

func (a *analysis) mapping(e ast.Expr, known facts) {
	seen := map[any]bool{}
	for _, entry := range e.AsMap().Entries() {
		key := entry.AsMapEntry().Key()
		if key.Kind() == ast.LiteralKind {
			name := keyName(key.AsLiteral())
			if seen[name] {
				a.report(CodeDuplicateKey, key.ID(), "this key stands twice in one map", "keep one of the two")
			}
			seen[name] = true
		}
		a.walk(key, known)
		a.walk(entry.AsMapEntry().Value(), known)
	}
}

func (a *analysis) comprehension(e ast.Expr, known facts) {
	fold := e.AsComprehension()
	a.walk(fold.IterRange(), known)
	a.walk(fold.AccuInit(), known)
	var variables []string
	for _, name := range []string{fold.IterVar(), fold.IterVar2(), fold.AccuVar()} {
		if name == "" {
			continue
		}
		variables = append(variables, name)
		if slices.Contains(a.names, name) {
			a.report(CodeShadowedName, e.ID(), "the variable "+brief(name)+" of a macro is named like something in scope", "give it another name")
		}
	}
	for _, name := range variables {
		a.locals[name]++
	}
	a.walk(fold.LoopCondition(), known)
	a.walk(fold.LoopStep(), known)
	a.walk(fold.Result(), known)
	for _, name := range variables {
		a.locals[name]--
	}
}
