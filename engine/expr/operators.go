package expr

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// The operators are ours because JSON has one kind of number: they take any mix
// of int and double. All of them touch their operands themselves.
var binaryOperators = map[string]func(m *meter, left, right ref.Val) ref.Val{
	operators.Add:           unmetered(add),
	operators.Subtract:      unmetered(subtract),
	operators.Multiply:      unmetered(func(l, r ref.Val) ref.Val { return arithmetic("*", l, r) }),
	operators.Divide:        unmetered(func(l, r ref.Val) ref.Val { return arithmetic("/", l, r) }),
	operators.Modulo:        unmetered(func(l, r ref.Val) ref.Val { return arithmetic("%", l, r) }),
	operators.Equals:        (*meter).equal,
	operators.NotEquals:     (*meter).notEqual,
	operators.Less:          unmetered(comparison("<", func(c int) bool { return c < 0 })),
	operators.LessEquals:    unmetered(comparison("<=", func(c int) bool { return c <= 0 })),
	operators.Greater:       unmetered(comparison(">", func(c int) bool { return c > 0 })),
	operators.GreaterEquals: unmetered(comparison(">=", func(c int) bool { return c >= 0 })),
	operators.In:            func(m *meter, l, r ref.Val) ref.Val { return m.contains(r, l) },
}

func unmetered(apply func(left, right ref.Val) ref.Val) func(*meter, ref.Val, ref.Val) ref.Val {
	return func(_ *meter, left, right ref.Val) ref.Val { return apply(left, right) }
}

// Texts and lists that an operator makes may not be larger than this: an
// expression can double its value at every turn.
const (
	maxText     = 16 << 20 // bytes
	maxElements = 1_000_000
)

func add(left, right ref.Val) ref.Val {
	if list, ok := left.(traits.Lister); ok {
		return concat(list, right)
	}
	left, right = touch(left), touch(right)
	switch l := left.(type) {
	case types.String:
		if r, ok := right.(types.String); ok {
			if len(l)+len(r) > maxText {
				return types.NewErr("the text grows beyond %d bytes", maxText)
			}
			return l + r
		}
	case types.Bytes:
		if r, ok := right.(types.Bytes); ok {
			if len(l)+len(r) > maxText {
				return types.NewErr("the bytes grow beyond %d", maxText)
			}
			return l.Add(r)
		}
	case types.Timestamp, types.Duration:
		return left.(traits.Adder).Add(right)
	}
	return arithmetic("+", left, right)
}

func concat(left traits.Lister, right ref.Val) ref.Val {
	list, ok := right.(traits.Lister)
	if !ok {
		return mismatch("+", left, right)
	}
	if sizeOf(left)+sizeOf(list) > maxElements {
		return types.NewErr("the list grows beyond %d elements", maxElements)
	}
	if a, ok := untouched(left).(*array); ok {
		return a.Lister.Add(untouched(list)) // Add of the parts, which is lazy
	}
	return left.Add(untouched(list))
}

func sizeOf(v traits.Sizer) int {
	n, _ := v.Size().(types.Int)
	return int(n)
}

func subtract(left, right ref.Val) ref.Val {
	left, right = touch(left), touch(right)
	switch left.(type) {
	case types.Timestamp, types.Duration:
		return left.(traits.Subtractor).Subtract(right)
	}
	return arithmetic("-", left, right)
}

// arithmetic is one of + - * / % on numbers. Two ints give an int, or an error
// where it would overflow; a division that does not come out gives a double, as
// does a mix.
func arithmetic(operator string, left, right ref.Val) ref.Val {
	left, right = touch(left), touch(right)
	if err := firstError(left, right); err != nil {
		return err
	}
	a, leftInt := left.(types.Int)
	b, rightInt := right.(types.Int)
	if leftInt && rightInt {
		return integers(operator, int64(a), int64(b))
	}
	if l, ok := left.(types.Uint); ok {
		if _, same := right.(types.Uint); same {
			return unsigned(operator, l, right)
		}
	}
	x, leftNumber := float(left)
	y, rightNumber := float(right)
	if !leftNumber || !rightNumber {
		return mismatch(operator, left, right)
	}
	return doubles(operator, x, y)
}

func integers(operator string, a, b int64) ref.Val {
	var result int64
	fits := true
	switch operator {
	case "+":
		result = a + b
		fits = (result > a) == (b > 0)
	case "-":
		result = a - b
		fits = (result < a) == (b > 0)
	case "*":
		result, fits = multiply(a, b)
	default:
		if b == 0 {
			return types.NewErr("division by zero: %d %s 0", a, operator)
		}
		if operator == "%" {
			if b == -1 {
				return types.IntZero // what the processor cannot say of the smallest int
			}
			return types.Int(a % b)
		}
		return divide(a, b)
	}
	if !fits {
		return types.NewErr("integer overflow: %d %s %d does not fit into 64 bits; write a factor as a double (1.0 * x) to go on with doubles", a, operator, b)
	}
	return types.Int(result)
}

func multiply(a, b int64) (product int64, fits bool) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	if (a < 0) != (b < 0) {
		return -int64(low), high == 0 && low <= 1<<63
	}
	return int64(low), high == 0 && low < 1<<63
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// divide is exact: an int if it comes out, else the nearest double.
func divide(a, b int64) ref.Val {
	if b == -1 && a == math.MinInt64 {
		return types.NewErr("integer overflow: %d / -1 does not fit into 64 bits", a)
	}
	if a%b == 0 {
		return types.Int(a / b)
	}
	nearest, _ := new(big.Rat).SetFrac(big.NewInt(a), big.NewInt(b)).Float64()
	return types.Double(nearest)
}

func unsigned(operator string, left types.Uint, right ref.Val) ref.Val {
	switch operator {
	case "+":
		return left.Add(right)
	case "-":
		return left.Subtract(right)
	case "*":
		return left.Multiply(right)
	case "/":
		return left.Divide(right)
	}
	return left.Modulo(right)
}

func doubles(operator string, x, y float64) ref.Val {
	var result float64
	switch operator {
	case "+":
		result = x + y
	case "-":
		result = x - y
	case "*":
		result = x * y
	default:
		if y == 0 {
			return types.NewErr("division by zero: %v %s 0", x, operator)
		}
		if result = x / y; operator == "%" {
			result = math.Mod(x, y)
		}
	}
	if result-result != 0 && x-x == 0 && y-y == 0 {
		return types.NewErr("overflow: %v %s %v is beyond the largest double", x, operator, y)
	}
	return types.Double(result)
}

// float is a number of any kind as a double.
func float(v ref.Val) (f float64, ok bool) {
	switch v := v.(type) {
	case types.Double:
		return float64(v), true
	case types.Int:
		return float64(v), true
	}
	return 0, false
}

// compareNumbers compares numbers of any kinds exactly; ok is false if one is
// no number, or NaN.
func compareNumbers(left, right ref.Val) (c int, ok bool) {
	switch l := left.(type) {
	case types.Int:
		if r, same := right.(types.Int); same {
			return cmp.Compare(l, r), true
		}
	case types.Double:
		if r, same := right.(types.Double); same {
			return cmp.Compare(l, r), !math.IsNaN(float64(l)) && !math.IsNaN(float64(r))
		}
	}
	if x, exact := exactFloat(left); exact {
		if y, exact := exactFloat(right); exact {
			return cmp.Compare(x, y), true
		}
	}
	a, b := rational(left), rational(right)
	if a == nil || b == nil {
		return compareInfinite(left, right)
	}
	return a.Cmp(b), true
}

// exactFloat is a number as a double if that changes nothing.
func exactFloat(v ref.Val) (f float64, exact bool) {
	switch v := v.(type) {
	case types.Double:
		return float64(v), !math.IsNaN(float64(v))
	case types.Int:
		return float64(v), v >= -1<<53 && v <= 1<<53
	}
	return 0, false
}

// rational is a finite number, nil for everything else.
func rational(v ref.Val) *big.Rat {
	switch v := v.(type) {
	case types.Int:
		return new(big.Rat).SetInt64(int64(v))
	case types.Uint:
		return new(big.Rat).SetUint64(uint64(v))
	case types.Double:
		return new(big.Rat).SetFloat64(float64(v)) // nil unless finite
	}
	return nil
}

func compareInfinite(left, right ref.Val) (c int, ok bool) {
	if f, double := left.(types.Double); double && math.IsInf(float64(f), 0) && rational(right) != nil {
		return cmp.Compare(float64(f), 0), true
	}
	if f, double := right.(types.Double); double && math.IsInf(float64(f), 0) && rational(left) != nil {
		return cmp.Compare(0, float64(f)), true
	}
	return 0, false
}

func isNumber(v ref.Val) bool {
	switch v.(type) {
	case types.Int, types.Uint, types.Double:
		return true
	}
	return false
}

func comparison(operator string, holds func(c int) bool) func(left, right ref.Val) ref.Val {
	return func(left, right ref.Val) ref.Val {
		left, right = touch(left), touch(right)
		if err := firstError(left, right); err != nil {
			return err
		}
		if isNumber(left) && isNumber(right) {
			c, ok := compareNumbers(left, right)
			if !ok {
				return types.NewErr("NaN cannot be compared")
			}
			return types.Bool(holds(c))
		}
		comparer, ok := left.(traits.Comparer)
		if !ok || left.Type() != right.Type() {
			return mismatch(operator, left, right)
		}
		c, ok := comparer.Compare(right).(types.Int)
		if !ok {
			return mismatch(operator, left, right)
		}
		return types.Bool(holds(int(c)))
	}
}

func (m *meter) notEqual(left, right ref.Val) ref.Val {
	result := m.equal(left, right)
	if same, ok := result.(types.Bool); ok {
		return !same
	}
	return result
}

// equal is ==: numbers by value, whatever their kind; lists and maps by their
// parts. Values of different kinds are not equal, which is no error.
func (m *meter) equal(left, right ref.Val) ref.Val {
	left, right = touch(left), touch(right)
	m.charge(1)
	if err := firstError(left, right); err != nil {
		return err
	}
	if isNumber(left) && isNumber(right) {
		c, ok := compareNumbers(left, right)
		return types.Bool(ok && c == 0)
	}
	switch l := left.(type) {
	case touchedList:
		if r, ok := right.(touchedList); ok {
			return m.equalLists(l.Lister, r.Lister)
		}
		return types.False
	case touchedObject:
		if r, ok := right.(touchedObject); ok {
			return m.equalObjects(l.object, r.object)
		}
		return types.False
	case *types.Optional:
		r, ok := right.(*types.Optional)
		if ok && l.HasValue() && r.HasValue() {
			return m.equal(l.GetValue(), r.GetValue())
		}
		return types.Bool(ok && l.HasValue() == r.HasValue())
	}
	m.charge(min(textLength(left), textLength(right)) / bytesPerUnit)
	return types.Equal(left, right)
}

func (m *meter) equalLists(left, right traits.Lister) ref.Val {
	if sizeOf(left) != sizeOf(right) {
		return types.False
	}
	l, r := left.Iterator(), right.Iterator()
	for l.HasNext() == types.True && r.HasNext() == types.True {
		if same := m.equal(l.Next(), r.Next()); same != types.True {
			return same
		}
	}
	return types.True
}

func (m *meter) equalObjects(left, right *object) ref.Val {
	left.parts()
	right.parts()
	if len(left.keys) != len(right.keys) {
		return types.False
	}
	for _, key := range left.keys {
		other, found := right.index[keyName(key)]
		if !found {
			return types.False
		}
		if same := m.equal(left.index[keyName(key)], other); same != types.True {
			return same
		}
	}
	return types.True
}

// contains is `element in container`: an element of a list, a key of a map.
func (m *meter) contains(container, element ref.Val) ref.Val {
	element = touch(element)
	if err := firstError(element, container); err != nil {
		return err
	}
	switch container := untouched(container).(type) {
	case *object:
		return container.Contains(element)
	case traits.Lister:
		var failed ref.Val
		for it := container.Iterator(); it.HasNext() == types.True; {
			switch same := m.equal(element, it.Next()); {
			case same == types.True:
				return types.True
			case failed == nil && types.IsError(same):
				failed = same
			}
		}
		if failed != nil {
			return failed
		}
		return types.False
	}
	return mismatch("in", element, container)
}

func firstError(values ...ref.Val) ref.Val {
	for _, v := range values {
		if types.IsError(v) {
			return v
		}
	}
	return nil
}

func mismatch(operator string, left, right ref.Val) ref.Val {
	return types.NewErr("%s takes no %s and %s", operator, typeName(left), typeName(right))
}

// typeName is the type of v in messages.
func typeName(v ref.Val) string {
	switch name := v.Type().TypeName(); name {
	case "null_type":
		return "null"
	case "google.protobuf.Timestamp":
		return "timestamp"
	case "google.protobuf.Duration":
		return "duration"
	case "optional_type":
		return "optional"
	default:
		return name
	}
}
