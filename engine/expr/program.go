package expr

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"perigee/engine/exactjson"
	"perigee/engine/words"
)

// Program is a compiled expression or template. It is safe for concurrent use.
type Program struct {
	source string
	scope  Scope
	value  exactjson.Value // the template; absent for an expression

	once        sync.Once
	root        *part
	expressions []*expression
	problems    []Problem

	analysed sync.Once
	refs     []Ref
}

// Expression compiles source, which may stand in ${ } as a whole. With problems
// the program is for its Refs alone: those of the expressions that can be read.
func Expression(source string, s Scope) (*Program, []Problem) {
	p := LoadExpression(source, s)
	return p.checked()
}

// Template compiles v: every string in it may hold expressions in ${ }.
func Template(v exactjson.Value, s Scope) (*Program, []Problem) {
	p := LoadTemplate(v, s)
	return p.checked()
}

// LoadExpression is Expression for a source that was checked before: the work
// is put off until the program is used.
func LoadExpression(source string, s Scope) *Program {
	return &Program{source: source, scope: s}
}

// LoadTemplate is Template for a value that was checked before.
func LoadTemplate(v exactjson.Value, s Scope) *Program {
	return &Program{source: string(v), scope: s, value: v.OrNull()}
}

func (p *Program) checked() (*Program, []Problem) {
	p.parse()
	problems := p.problems
	p.analysed.Do(func() {
		for _, e := range p.expressions {
			refs, found := e.compile()
			p.refs = append(p.refs, refs...)
			problems = append(problems, found...)
		}
	})
	return p, problems
}

// parse takes the source apart, once.
func (p *Program) parse() {
	p.once.Do(func() {
		if !p.value.Absent() {
			parser := templateParser{scope: p.scope}
			p.root = parser.value(p.value, "")
			p.expressions, p.problems = parser.expressions, parser.problems
			return
		}
		source, offset, problem := unwrap(p.source)
		if problem != nil {
			p.problems = []Problem{*problem}
		}
		e := &expression{source: source, offset: offset, scope: p.scope}
		p.root, p.expressions = &part{whole: e}, []*expression{e}
		if problem != nil {
			p.expressions = nil
		}
	})
}

// unwrap takes ${ } off an expression that stands in it as a whole.
func unwrap(source string) (inner string, offset int, problem *Problem) {
	trimmed := strings.TrimSpace(source)
	offset = strings.Index(source, trimmed)
	if !strings.HasPrefix(trimmed, "${") {
		return source, 0, nil
	}
	closing, cut := closingBrace(trimmed, 2)
	switch {
	case closing < 0:
		half := halfOpen(trimmed, 0, cut, "close it, or leave ${ } out: here stands an expression anyway")
		half.Offset += offset
		return "", 0, &half
	case closing < len(trimmed)-1:
		return "", 0, &Problem{Code: CodeMisplaced, Offset: offset + closing + 1, Message: "expected one expression, got text behind ${ }", Hint: `join texts with +, such as "order " + input.id`}
	case strings.TrimSpace(trimmed[2:closing]) == "":
		return "", 0, &Problem{Code: CodeEmptyTemplate, Offset: offset, Message: "expected an expression inside ${ }, got nothing"}
	}
	return trimmed[2:closing], offset + 2, nil
}

// Source is what the program was made from: the expression as written, or the
// JSON text of the template.
func (p *Program) Source() string { return p.source }

// Refs are the plain selections that start at a name in scope, in the order of
// their places.
func (p *Program) Refs() []Ref {
	p.parse()
	p.analysed.Do(func() {
		for _, e := range p.expressions {
			refs, _ := e.compile()
			p.refs = append(p.refs, refs...)
		}
	})
	return p.refs
}

// Constant is the value of a template without expressions, its $${ written ${.
func (p *Program) Constant() (v exactjson.Value, ok bool) {
	p.parse()
	if len(p.expressions) > 0 || len(p.problems) > 0 {
		return "", false
	}
	var w resultWriter
	w.limit = maxResult
	if err := p.write(&w, p.root, nil, 0); err != nil {
		return "", false
	}
	return exactjson.Value(w.dst), true
}

// Eval is the value of the program, absent where the whole of it is
// optional.none(). Every error is an *Error.
func (p *Program) Eval(v *Vars, b Bounds) (exactjson.Value, error) {
	if err := p.ready(); err != nil {
		return "", err
	}
	act := newActivation(v)
	w := resultWriter{limit: b.ResultBytes}
	if w.limit <= 0 {
		w.limit = maxResult
	}
	if p.root.literal != "" && len(p.root.literal) <= w.limit {
		return p.root.literal, nil
	}
	if err := p.write(&w, p.root, act, b.cost()); err != nil {
		return "", err
	}
	result := exactjson.Value(w.dst)
	if w.built && result.Depth() > exactjson.MaxDepth {
		return "", &Error{Expression: p.source, Message: fmt.Sprintf("%s: the result nests deeper than %d levels", excerpt(p.source), exactjson.MaxDepth)}
	}
	return result, nil
}

// Bool is Eval for a condition: a result that is no boolean is an error.
func (p *Program) Bool(v *Vars, b Bounds) (bool, error) {
	if err := p.ready(); err != nil {
		return false, err
	}
	e := p.root.whole
	if e == nil {
		return false, &Error{Expression: p.source, Message: excerpt(p.source) + ": expected an expression for a condition"}
	}
	act := newActivation(v)
	result, err := e.eval(act, b.cost())
	if err != nil {
		return false, err
	}
	truth, ok := result.(types.Bool)
	if !ok {
		return false, e.fail("expected true or false, got " + typeName(result))
	}
	return bool(truth), nil
}

func (b Bounds) cost() uint64 {
	if b.Cost == 0 {
		return defaultCost
	}
	return b.Cost
}

func (p *Program) ready() error {
	p.parse()
	if len(p.problems) > 0 {
		return &Error{Expression: p.source, Message: excerpt(p.source) + ": " + p.problems[0].Message}
	}
	return nil
}

// write appends the value of a part; nothing for an absent one.
func (p *Program) write(w *resultWriter, n *part, act *activation, limit uint64) error {
	switch {
	case n.literal != "":
		return w.place(n.literal)
	case n.whole != nil:
		result, err := n.whole.eval(act, limit)
		if err != nil {
			return err
		}
		if absent(result) {
			return nil
		}
		return n.whole.writing(w.value(result))
	case n.text != nil:
		return p.writeText(w, n, act, limit)
	}
	opening, closing := byte('['), byte(']')
	if n.kind == exactjson.KindObject {
		opening, closing = '{', '}'
	}
	w.built = true
	w.dst = append(w.dst, opening)
	first := len(w.dst)
	for i, child := range n.children {
		start := len(w.dst)
		if start > first {
			w.dst = append(w.dst, ',')
		}
		if n.kind == exactjson.KindObject {
			w.dst = append(append(w.dst, n.keys[i]...), ':')
		}
		before := len(w.dst)
		if err := p.write(w, child, act, limit); err != nil {
			return err
		}
		if len(w.dst) == before {
			w.dst = w.dst[:start] // absent
		}
	}
	w.dst = append(w.dst, closing)
	return w.place("")
}

// place is raw for the parts of a template.
func (w *resultWriter) place(v exactjson.Value) error {
	if err := w.raw(string(v)); err != nil {
		return tooLarge(w.limit)
	}
	return nil
}

func (p *Program) writeText(w *resultWriter, n *part, act *activation, limit uint64) error {
	var text strings.Builder
	for _, piece := range n.text {
		if piece.inner == nil {
			text.WriteString(piece.literal)
			continue
		}
		result, err := piece.inner.eval(act, limit)
		if err != nil {
			return err
		}
		if absent(result) {
			return piece.inner.fail("it has no value, which cannot stand inside a text; write .orValue(\"\")")
		}
		if s, ok := plainText(result); ok {
			text.WriteString(s)
		} else {
			inner := resultWriter{limit: w.limit}
			if err := inner.value(result); err != nil {
				return piece.inner.writing(err)
			}
			text.Write(inner.dst)
		}
		if text.Len() > w.limit {
			return tooLarge(w.limit)
		}
	}
	if err := w.quoted(text.String()); err != nil {
		return tooLarge(w.limit)
	}
	return nil
}

func tooLarge(limit int) *Error {
	return &Error{Message: errTooLarge{limit}.Error(), TooLarge: true, Limit: limit}
}

// writing is the error of a result that could not be written.
func (e *expression) writing(err error) error {
	if err == nil {
		return nil
	}
	var large errTooLarge
	if errors.As(err, &large) {
		failed := tooLarge(large.limit)
		failed.Expression = e.source
		return failed
	}
	return e.fail(err.Error())
}

// fail is an error of e with its expression and place.
func (e *expression) fail(message string) *Error {
	place := ""
	if e.at != "" {
		place = " at " + words.Shorten(e.at, 200)
	}
	return &Error{Expression: e.source, Message: excerpt(e.source) + place + ": " + message}
}

// excerpt is an expression as messages show it.
func excerpt(source string) string {
	return "`" + words.Shorten(strings.TrimSpace(source), 200) + "`"
}

// eval is the value of e; the error is an *Error.
func (e *expression) eval(act *activation, limit uint64) (ref.Val, error) {
	if value, ok := e.follow(act, limit); ok {
		return value, nil
	}
	return e.compute(act, limit)
}

// compute is eval by CEL.
func (e *expression) compute(act *activation, limit uint64) (ref.Val, error) {
	program, err := e.program(limit)
	if err != nil {
		return nil, e.fail(words.Shorten(err.Error(), 500))
	}
	result, _, err := program.Eval(act)
	if err != nil {
		return nil, e.fail(e.explain(err, act, limit))
	}
	return result, nil
}
