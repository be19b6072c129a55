package expr

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// defaultCost bounds one evaluation, in CEL's units: about one for each node
// that is evaluated, and one for each ten bytes or elements that a function
// reads or writes.
const defaultCost = 1_000_000

// costs charges calls by the sizes that they meet. cel-go would take most of
// them for free here, because it knows a function by the types of its arguments
// and those of JSON are not known beforehand.
type costs struct{}

// cheap are the functions whose work does not grow with their arguments.
var cheap = map[string]bool{
	"size": true, "type": true, "dyn": true, "first": true, "last": true, "value": true, "hasValue": true,
	"optional.of": true, "optional.none": true, "optional.ofNonZeroValue": true,
	operators.NotStrictlyFalse: true, operators.LogicalNot: true, operators.Negate: true,
	"int": true, "double": true, "uint": true, "bool": true, "timestamp": true, "duration": true,
}

// CallCost implements cost.ActualCostEstimator.
func (costs) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	total := uint64(1)
	switch {
	case cheap[function]:
	case function == operators.Add: // of lists it is lazy
		total += textLength(result) / 10
	case function == operators.Equals || function == operators.NotEquals:
		total += min(length(args[0]), length(args[1])) / 10
	default:
		for _, arg := range args {
			total += length(arg) / 10
		}
		total += length(result) / 10
	}
	return &total
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

func length(v ref.Val) uint64 {
	switch v := v.(type) {
	case traits.Lister:
		return uint64(sizeOf(v))
	case traits.Mapper:
		return uint64(sizeOf(v))
	}
	return textLength(v)
}
