package expr

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// fact is something that must be so when a part of an expression is evaluated,
// because has() or a comparison before it said so: the place is there, and it
// may be known not to be null.
type fact struct {
	root    string
	path    []string
	notNull bool
}

type facts []fact

// guard marks the segments of a selection that the facts speak of.
func (known facts) guard(root string, path []Segment) {
	for _, f := range known {
		if f.root != root || len(f.path) > len(path) {
			continue
		}
		matches := true
		for i, name := range f.path {
			matches = matches && path[i].Name == name
		}
		if !matches {
			continue
		}
		for i := range f.path {
			path[i].Optional = true
		}
		if f.notNull && len(f.path) < len(path) {
			path[len(f.path)].Optional = true
		}
	}
}

// learn is what is known where e is true, or false.
func (a *analysis) learn(e ast.Expr, truth bool) facts {
	if e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() && truth {
		return a.place(e, false)
	}
	if e.Kind() != ast.CallKind {
		return nil
	}
	call := e.AsCall()
	arguments := call.Args()
	switch function := call.FunctionName(); {
	case function == operators.LogicalNot:
		return a.learn(arguments[0], !truth)
	case function == operators.LogicalAnd && truth, function == operators.LogicalOr && !truth:
		var known facts
		for _, term := range arguments {
			known = append(known, a.learn(term, truth)...)
		}
		return known
	case function == operators.NotEquals && truth, function == operators.Equals && !truth:
		if isNull(arguments[1]) {
			return a.place(arguments[0], true)
		}
		if isNull(arguments[0]) {
			return a.place(arguments[1], true)
		}
	case function == operators.In && truth:
		if key, ok := literalText(arguments[0]); ok {
			known := a.place(arguments[1], false)
			for i := range known {
				known[i].path = append(known[i].path, key)
			}
			return known
		}
	}
	return nil
}

// place is the fact that a selection is there.
func (a *analysis) place(e ast.Expr, notNull bool) facts {
	s := selectionOf(e)
	root := a.variable(s)
	if root == "" {
		return nil
	}
	f := fact{root: root, notNull: notNull}
	for i, segment := range s.segments {
		if s.keys[i] != nil {
			return nil
		}
		f.path = append(f.path, segment.Name)
	}
	return facts{f}
}

func isNull(e ast.Expr) bool {
	return e.Kind() == ast.LiteralKind && e.AsLiteral() == types.NullValue
}

func literalText(e ast.Expr) (text string, ok bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}
