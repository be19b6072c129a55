package expr

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"

	"perigee/engine/words"
)

// Codes of problems.
const (
	CodeSyntax          = "expression_syntax"      // it does not parse
	CodeType            = "expression_type"        // operands of the wrong kind
	CodeUnknownName     = "unknown_name"           // no such name in scope, or no such field of one
	CodeUnknownFunction = "unknown_function"       // no such function
	CodeStepsReference  = "steps_reference"        // steps alone, or with a computed key
	CodeShadowedName    = "shadowed_name"          // a macro variable named like something in scope
	CodeDuplicateKey    = "duplicate_key"          // twice in one map
	CodeEmptyTemplate   = "empty_template"         // ${} without an expression
	CodeHalfOpen        = "half_open_template"     // ${ without its }
	CodeMisplaced       = "misplaced_template"     // ${ } inside an expression
	CodeUnsupported     = "expression_unsupported" // a part of CEL that is not here
)

// expression is one expression and where it stands. It is compiled on its first
// use and safe for concurrent use.
type expression struct {
	source string // without ${ }
	scope  Scope
	at     string // JSON pointer of the string that holds it
	offset int    // of source in that string, in bytes

	parted sync.Once
	path   []string // see follow

	once     sync.Once
	checked  *cel.Ast
	err      error
	programs sync.Map // cost limit → func() (cel.Program, error)
}

// compile checks e and finds what it refers to.
func (e *expression) compile() (refs []Ref, problems []Problem) {
	env, err := environment(e.scope)
	if err != nil {
		return nil, []Problem{e.problem(CodeUnsupported, 0, "the environment of expressions is broken: "+err.Error(), "")}
	}
	if strings.TrimSpace(e.source) == "" {
		return nil, []Problem{e.problem(CodeSyntax, 0, "expected an expression, got nothing", "")}
	}
	parsed, issues := env.Parse(e.source)
	if issues.Err() != nil {
		return nil, e.syntaxProblems(issues.Errors(), env)
	}
	a := newAnalysis(e, env, parsed.NativeRep())
	a.walk(parsed.NativeRep().Expr(), nil)
	_, issues = env.Check(parsed)
	if issues.Err() != nil {
		a.problems = append(a.problems, e.typeProblems(issues.Errors(), env, a.unknown)...)
	}
	slices.SortStableFunc(a.refs, func(x, y Ref) int { return x.Offset - y.Offset })
	slices.SortStableFunc(a.problems, func(x, y Problem) int { return x.Offset - y.Offset })
	return a.refs, a.problems
}

// load prepares e for evaluation.
func (e *expression) load() error {
	e.once.Do(func() {
		env, err := environment(e.scope)
		if err != nil {
			e.err = err
			return
		}
		checked, issues := env.Compile(e.source)
		e.checked, e.err = checked, issues.Err()
	})
	return e.err
}

// program is e planned for a cost limit; there is nearly always one limit.
func (e *expression) program(limit uint64) (cel.Program, error) {
	if err := e.load(); err != nil {
		return nil, err
	}
	planned, found := e.programs.Load(limit)
	if !found {
		planned, _ = e.programs.LoadOrStore(limit, sync.OnceValues(func() (cel.Program, error) {
			env, err := environment(e.scope)
			if err != nil {
				return nil, err
			}
			return plan(env, e.checked, limit)
		}))
	}
	return planned.(func() (cel.Program, error))()
}

// problem is a fault at so many bytes into the source.
func (e *expression) problem(code string, offset int, message, hint string) Problem {
	return Problem{Code: code, Message: message, Hint: hint, Path: e.at, Offset: e.offset + offset}
}

// byteOffset turns an offset in characters into one in bytes.
func (e *expression) byteOffset(characters int) int {
	offset := 0
	for ; characters > 0 && offset < len(e.source); characters-- {
		_, size := utf8.DecodeRuneInString(e.source[offset:])
		offset += size
	}
	return offset
}

// located is the place of a fault that cel-go found, in bytes into the source.
func (e *expression) located(location common.Location) int {
	rest := e.source
	for line := 1; line < location.Line(); line++ {
		_, after, found := strings.Cut(rest, "\n")
		if !found {
			break
		}
		rest = after
	}
	start := len(e.source) - len(rest)
	offset := start
	for column := 0; column < location.Column() && offset < len(e.source); column++ {
		_, size := utf8.DecodeRuneInString(e.source[offset:])
		offset += size
	}
	return offset
}

const noParse = "the expression does not parse: "

// syntaxProblems keeps the first fault: the others tend to follow from it.
func (e *expression) syntaxProblems(errs []*cel.Error, env *cel.Env) []Problem {
	first := errs[0]
	for _, err := range errs[1:] {
		if e.located(err.Location) < e.located(first.Location) {
			first = err
		}
	}
	offset := e.located(first.Location)
	message, grammar := strings.CutPrefix(first.Message, "Syntax error: ")
	if !grammar {
		message, hint := explainParser(message)
		return []Problem{e.problem(CodeSyntax, offset, noParse+words.Shorten(message, 200), hint)}
	}
	if fault := findSyntaxFault(e.source, functionNames(env)); fault != nil {
		return []Problem{e.problem(CodeSyntax, fault.offset, noParse+fault.message, fault.hint)}
	}
	return []Problem{e.problem(CodeSyntax, offset, noParse+"it cannot go on with "+shortened(lexemeFrom(e.source, offset)), "")}
}

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	noOverload = regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '(.*)'$`)
)

// typeProblems puts the faults of the type check into our words, except for the
// names that were reported before.
func (e *expression) typeProblems(errs []*cel.Error, env *cel.Env, reported map[string]bool) []Problem {
	var problems []Problem
	for _, err := range errs {
		offset := e.located(err.Location)
		if match := undeclared.FindStringSubmatch(err.Message); match != nil {
			name := strings.TrimPrefix(match[1], ".")
			root, _, _ := strings.Cut(name, ".")
			if !reported[name] && !reported[root] {
				last := name[strings.LastIndex(name, ".")+1:]
				if strings.HasSuffix(e.source[:offset], last) {
					offset -= len(last) // from the bracket of a call to its name
				}
				message, hint := unknownFunction(name, functionNames(env))
				problems = append(problems, e.problem(CodeUnknownFunction, offset, message, hint))
			}
			continue
		}
		message := err.Message
		if match := noOverload.FindStringSubmatch(message); match != nil {
			message = operatorName(match[1]) + " does not take " + match[2]
		}
		problems = append(problems, e.problem(CodeType, offset, words.Shorten(message, 300), ""))
	}
	return problems
}

// functionNames are the functions and macros that an author can write.
func functionNames(env *cel.Env) []string {
	var names []string
	for name := range env.Functions() {
		if name != "in" && !strings.ContainsAny(name, "_@!") {
			names = append(names, name)
		}
	}
	for _, macro := range env.Macros() {
		name := macro.Function()
		switch name {
		case "greatest", "least":
			name = "math." + name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return !isWordByte(name[0]) || name[0] == '_' })
}

// operatorName is the symbol of an operator, or the name of a function.
func operatorName(function string) string {
	if function == "@in" {
		return "in"
	}
	if symbol := strings.Trim(function, "_"); symbol != "" && !isWordByte(symbol[0]) {
		return symbol
	}
	return function
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
