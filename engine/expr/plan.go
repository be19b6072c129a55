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
	"first": {parts}, "last": {parts}, "slice": {parts}, "reverse": {parts}, "flatten": {parts}, "size": {parts},
}

// planner is what is known of the nodes of an expression, by their ids.
type planner struct {
	views   map[int64]sight // a node that is not there is passed on
	entries map[int64]int   // of a map literal that has no optional ones
}

func newPlanner(root ast.Expr) planner {
	p := planner{views: map[int64]sight{}, entries: map[int64]int{}}
	ast.PostOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.CallKind:
			p.call(e.AsCall())
		case ast.MapKind:
			p.mapping(e)
		}
	}))
	return p
}

func (p planner) mapping(e ast.Expr) {
	optional := false
	for _, entry := range e.AsMap().Entries() {
		optional = optional || entry.AsMapEntry().IsOptional()
		p.views[entry.AsMapEntry().Key().ID()] = converted
	}
	if !optional {
		p.entries[e.ID()] = e.AsMap().Size()
	}
}

func (p planner) call(call ast.CallExpr) {
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
			p.views[argument.ID()] = sight
		}
	}
}

func plan(environment *cel.Env, checked *cel.Ast, limit uint64) (cel.Program, error) {
	p := newPlanner(checked.NativeRep().Expr())
	return environment.Program(checked,
		cel.CostLimit(limit),
		cel.CostTracking(costs{}),
		cel.CustomDecoratorV2(func(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
			return p.decorate(node), nil
		}))
}

func (p planner) decorate(node interpreter.InterpretableV2) interpreter.InterpretableV2 {
	switch n := node.(type) {
	case interpreter.InterpretableConst, touchAttribute, touchNode:
		return node
	case interpreter.InterpretableCall:
		if apply, ours := binaryOperators[n.Function()]; ours && len(n.Args()) == 2 {
			node = &operation{InterpretableCall: n, left: n.Args()[0], right: n.Args()[1], apply: apply}
		} else if apply, ours := functions[n.Function()]; ours {
			node = &call{InterpretableCall: n, args: n.Args(), apply: apply}
		}
	case interpreter.InterpretableConstructor:
		if n.Type() == types.MapType {
			node = orderedMap{node, p.entries[n.ID()]}
		}
	}
	sight, seen := p.views[node.ID()]
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
	apply       func(m *meter, left, right ref.Val) ref.Val
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
	var m meter
	result := labelled(o.ID(), o.apply(&m, left, right))
	m.charge(1)
	if o.Function() == operators.Add {
		m.charge(textLength(result) / bytesPerUnit) // of lists it is lazy
	}
	m.pay(frame, o.ID())
	return result
}

// Eval implements interpreter.Interpretable.
func (o *operation) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, o.Exec)
}

// call is a node with one of our functions.
type call struct {
	interpreter.InterpretableCall
	args  []interpreter.InterpretableV2
	apply func(m *meter, args ...ref.Val) ref.Val
}

// Exec implements interpreter.InterpretableV2.
func (c *call) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	values := make([]ref.Val, len(c.args))
	for i, arg := range c.args {
		values[i] = arg.Exec(frame)
		if types.IsUnknownOrError(values[i]) {
			return values[i]
		}
	}
	var m meter
	result := labelled(c.ID(), c.apply(&m, values...))
	m.charge(1)
	m.pay(frame, c.ID())
	return result
}

// Eval implements interpreter.Interpretable.
func (c *call) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, c.Exec)
}

// orderedMap makes the map of a literal one that is walked in order.
type orderedMap struct {
	interpreter.InterpretableV2
	entries int // at least so many must come out
}

// Exec implements interpreter.InterpretableV2.
func (m orderedMap) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := m.InterpretableV2.Exec(frame)
	entries, ok := v.(traits.Mapper)
	if !ok {
		return v
	}
	if sizeOf(entries) < m.entries {
		return types.NewErrWithNodeID(m.ID(), "a key stands twice in one map")
	}
	return labelled(m.ID(), newObject(entries))
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
