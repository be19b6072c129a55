package expr

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// A program is planned by cel-go, node by node. Three kinds of node become
// ours: the operators, the maps (for their order), and what a function of a
// library takes, which is touched before the function sees it. Some functions are ours as well.

// How a function of a library sees an argument.
type sight int

const (
	converted sight = iota // all of it is touched
	parts                  // a container keeps its text, for the parts are passed on
	passed                 // it is passed on as it is
)

// sights are the arguments that are not converted (the target is the first).
var sights = map[string][]sight{
	operators.LogicalAnd: {passed, passed}, operators.LogicalOr: {passed, passed}, operators.LogicalNot: {passed},
	operators.Conditional: {passed, passed, passed}, operators.NotStrictlyFalse: {passed},
	operators.Index: {passed}, operators.OptIndex: {passed}, operators.OptSelect: {passed, passed},
	"dyn": {passed}, "optional.of": {passed}, "optional.ofNonZeroValue": {passed}, "optional.unwrap": {passed}, "unwrapOpt": {passed},
	"or": {passed, passed}, "orValue": {passed, passed},
	"first": {parts}, "last": {parts}, "slice": {parts}, "reverse": {parts}, "flatten": {parts}, "sum": {parts}, "size": {parts},
}

// viewed says how the nodes of an expression are seen, by their ids; a node
// that is not there is passed on.
func viewed(root ast.Expr) map[int64]sight {
	views := map[int64]sight{}
	ast.PostOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.CallKind:
			viewArguments(views, e.AsCall())
		case ast.MapKind:
			for _, entry := range e.AsMap().Entries() {
				views[entry.AsMapEntry().Key().ID()] = converted
			}
		}
	}))
	return views
}

func viewArguments(views map[int64]sight, call ast.CallExpr) {
	name := call.FunctionName()
	arguments := call.Args()
	if call.IsMemberFunction() {
		arguments = append([]ast.Expr{call.Target()}, arguments...)
	}
	if name == "value" && len(arguments) == 1 || binaryOperators[name] != nil || functions[name] != nil {
		return // an optional is passed on; ours touch for themselves
	}
	for i, argument := range arguments {
		sight := converted
		if i < len(sights[name]) {
			sight = sights[name][i]
		}
		if sight != passed && argument.Kind() != ast.LiteralKind {
			views[argument.ID()] = sight
		}
	}
}

func plan(environment *cel.Env, checked *cel.Ast, limit uint64) (cel.Program, error) {
	views := viewed(checked.NativeRep().Expr())
	return environment.Program(checked,
		cel.CostLimit(limit),
		cel.CostTracking(costs{}),
		cel.CustomDecoratorV2(func(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
			return decorate(node, views), nil
		}))
}

func decorate(node interpreter.InterpretableV2, views map[int64]sight) interpreter.InterpretableV2 {
	switch n := node.(type) {
	case interpreter.InterpretableConst, touchAttribute, touchNode:
		return node
	case interpreter.InterpretableCall:
		if apply, ours := binaryOperators[n.Function()]; ours && len(n.Args()) == 2 {
			node = &operation{InterpretableCall: n, left: n.Args()[0], right: n.Args()[1], apply: apply}
		} else if apply, ours := functions[n.Function()]; ours {
			node = interpreter.NewCall(n.ID(), n.Function(), "", n.Args(), apply)
		}
	case interpreter.InterpretableConstructor:
		if n.Type() == types.MapType {
			node = orderedMap{node}
		}
	}
	sight, seen := views[node.ID()]
	if !seen {
		return node
	}
	view := touch
	if sight == parts {
		view = touchScalar
	}
	if attribute, ok := node.(interpreter.InterpretableAttribute); ok {
		return touchAttribute{attribute, view}
	}
	return touchNode{node, view}
}

// operation is a node with one of our operators.
type operation struct {
	interpreter.InterpretableCall
	left, right interpreter.InterpretableV2
	apply       func(left, right ref.Val) ref.Val
}

// Exec implements interpreter.InterpretableV2.
func (o *operation) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	left := o.left.Exec(frame)
	if types.IsUnknownOrError(left) {
		return left
	}
	right := o.right.Exec(frame)
	if types.IsUnknownOrError(right) {
		return right
	}
	result := o.apply(left, right)
	if err, failed := result.(*types.Err); failed && err.NodeID() == 0 {
		result = types.LabelErrNode(o.ID(), err)
	}
	if tracker := frame.CostTracker(); tracker != nil {
		tracker.EvalBinary(frame, o.ID(), o, left, right, result)
	}
	return result
}

// Eval implements interpreter.Interpretable.
func (o *operation) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, o.Exec)
}

// orderedMap makes the map of a literal one that is walked in order.
type orderedMap struct {
	interpreter.InterpretableV2
}

// Exec implements interpreter.InterpretableV2.
func (m orderedMap) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := m.InterpretableV2.Exec(frame)
	if entries, ok := v.(traits.Mapper); ok {
		return newObject(entries)
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (m orderedMap) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, m.Exec)
}

// touchNode touches the value of a node.
type touchNode struct {
	interpreter.InterpretableV2
	view func(ref.Val) ref.Val
}

// Exec implements interpreter.InterpretableV2.
func (n touchNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return labelled(n.ID(), n.view(n.InterpretableV2.Exec(frame)))
}

// Eval implements interpreter.Interpretable.
func (n touchNode) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, n.Exec)
}

// touchAttribute is touchNode for a selection, which may also be a key.
type touchAttribute struct {
	interpreter.InterpretableAttribute
	view func(ref.Val) ref.Val
}

// Exec implements interpreter.InterpretableV2.
func (a touchAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return labelled(a.ID(), a.view(a.InterpretableAttribute.Exec(frame)))
}

// Eval implements interpreter.Interpretable.
func (a touchAttribute) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, a.Exec)
}

// Resolve implements interpreter.Attribute.
func (a touchAttribute) Resolve(vars interpreter.Activation) (any, error) {
	value, err := a.InterpretableAttribute.Resolve(vars)
	if err != nil {
		return nil, err
	}
	if v, ok := value.(ref.Val); ok {
		v = a.view(v)
		if failed, ok := v.(*types.Err); ok {
			return nil, failed
		}
		return v, nil
	}
	return value, nil
}

func labelled(id int64, v ref.Val) ref.Val {
	if err, failed := v.(*types.Err); failed && err.NodeID() == 0 {
		return types.LabelErrNode(id, err)
	}
	return v
}
