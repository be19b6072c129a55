package expr

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// defaultCost bounds one evaluation, in CEL's units: about one for each node
// that is evaluated, for each element and for each ten bytes that a function
// reads or writes.
const (
	defaultCost  = 1_000_000
	bytesPerUnit = 10
)

// meter counts the work of one of our operators or functions.
type meter struct {
	units uint64
}

func (m *meter) charge(units uint64) { m.units += units }

// pay adds what was counted to the cost of the evaluation, which may end it.
func (m *meter) pay(frame *interpreter.ExecutionFrame, id int64) {
	if tracker := frame.CostTracker(); tracker != nil {
		tracker.EvalUnary(frame, id, payment{}, types.Int(m.units), nil)
	}
}

// payment is the call by which a meter pays.
type payment struct{}

// Function implements cost.Call.
func (payment) Function() string { return "@payment" }

// OverloadID implements cost.Call.
func (payment) OverloadID() string { return "" }

// costs charges the functions that are not ours by the sizes that they meet.
// cel-go would take most of them for free, because it knows a function by the
// types of its arguments and those of JSON are not known beforehand.
type costs struct{}

// cheap are the functions whose work does not grow with their arguments.
var cheap = map[string]bool{
	"size": true, "type": true, "dyn": true, "first": true, "last": true, "value": true,
	"optional.of": true, "optional.none": true, "optional.ofNonZeroValue": true,
	operators.NotStrictlyFalse: true, operators.LogicalNot: true, operators.Negate: true,
	"int": true, "double": true, "uint": true, "bool": true, "timestamp": true, "duration": true,
}

// CallCost implements cost.ActualCostEstimator.
func (costs) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	total := uint64(1)
	switch {
	case function == (payment{}).Function():
		units, _ := args[0].(types.Int)
		total = uint64(units)
	case cheap[function]:
	default:
		for _, arg := range args {
			total += length(arg)
		}
		total += length(result)
	}
	return &total
}

// length is the size of a value in units.
func length(v ref.Val) uint64 {
	switch v := v.(type) {
	case traits.Lister:
		return uint64(sizeOf(v))
	case traits.Mapper:
		return uint64(sizeOf(v))
	}
	return textLength(v) / bytesPerUnit
}

func textLength(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	case token:
		return uint64(len(v))
	}
	return 0
}
