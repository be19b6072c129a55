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
// library takes, which is touched before the function sees it.

// moves says which arguments of a function (the target is the first) are only
// passed on, so that they keep their text.
var moves = map[string]map[int]bool{
	operators.LogicalAnd: {0: true, 1: true}, operators.LogicalOr: {0: true, 1: true}, operators.LogicalNot: {0: true},
	operators.Conditional: {0: true, 1: true, 2: true}, operators.NotStrictlyFalse: {0: true},
	operators.Index: {0: true}, operators.OptIndex: {0: true}, operators.OptSelect: {0: true, 1: true},
	"dyn": {0: true}, "size": {0: true}, "sum": {0: true},
	"optional.of": {0: true}, "optional.ofNonZeroValue": {0: true}, "optional.unwrap": {0: true}, "unwrapOpt": {0: true},
	"value": {0: true}, "or": {0: true, 1: true}, "orValue": {0: true, 1: true},
	"first": {0: true}, "last": {0: true}, "slice": {0: true}, "reverse": {0: true}, "flatten": {0: true},
	"@sortByAssociatedKeys": {0: true},
}

// touchedNodes are the ids of the nodes whose values must be touched.
func touchedNodes(root ast.Expr) map[int64]bool {
	touched := map[int64]bool{}
	visitor := ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.CallKind:
			call := e.AsCall()
			if _, ours := binaryOperators[call.FunctionName()]; ours {
				return // touches for itself
			}
			arguments := call.Args()
			if call.IsMemberFunction() {
				arguments = append([]ast.Expr{call.Target()}, arguments...)
			}
			for i, argument := range arguments {
				if !moves[call.FunctionName()][i] && argument.Kind() != ast.LiteralKind {
					touched[argument.ID()] = true
				}
			}
		case ast.MapKind:
			for _, entry := range e.AsMap().Entries() {
				touched[entry.AsMapEntry().Key().ID()] = true
			}
		}
	})
	ast.PostOrderVisit(root, visitor)
	return touched
}

func plan(environment *cel.Env, checked *cel.Ast, limit uint64) (cel.Program, error) {
	touched := touchedNodes(checked.NativeRep().Expr())
	return environment.Program(checked,
		cel.CostLimit(limit),
		cel.CostTracking(costs{}),
		cel.CustomDecoratorV2(func(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
			return decorate(node, touched), nil
		}))
}

func decorate(node interpreter.InterpretableV2, touched map[int64]bool) interpreter.InterpretableV2 {
	switch n := node.(type) {
	case interpreter.InterpretableConst, touchAttribute, touchNode:
		return node
	case interpreter.InterpretableCall:
		if apply, ours := binaryOperators[n.Function()]; ours && len(n.Args()) == 2 {
			node = &operation{InterpretableCall: n, left: n.Args()[0], right: n.Args()[1], apply: apply}
		}
	case interpreter.InterpretableConstructor:
		if n.Type() == types.MapType {
			node = orderedMap{node}
		}
	}
	if !touched[node.ID()] {
		return node
	}
	if attribute, ok := node.(interpreter.InterpretableAttribute); ok {
		return touchAttribute{attribute}
	}
	return touchNode{node}
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
}

// Exec implements interpreter.InterpretableV2.
func (n touchNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return labelled(n.ID(), touch(n.InterpretableV2.Exec(frame)))
}

// Eval implements interpreter.Interpretable.
func (n touchNode) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, n.Exec)
}

// touchAttribute is touchNode for a selection, which may also be a key.
type touchAttribute struct {
	interpreter.InterpretableAttribute
}

// Exec implements interpreter.InterpretableV2.
func (a touchAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return labelled(a.ID(), touch(a.InterpretableAttribute.Exec(frame)))
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
		v = touch(v)
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
