package expr

import (
	"fmt"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/ext"
)

// The versions of the extensions, fixed so that an update of cel-go does not
// change what a definition means. (Encoders above 0 write JSON by way of
// doubles, lists above 4 compare lists with each other in quadratic time.)
const (
	stringsVersion   = 5
	listsVersion     = 4
	mathVersion      = 2
	setsVersion      = 0
	encodersVersion  = 0
	optionalsVersion = 4

	maxRange = 100_000 // elements of lists.range()
)

// Extensions names the pinned versions of the language's extensions; it is
// recorded with a definition.
func Extensions() string {
	return fmt.Sprintf("strings@%d lists@%d math@%d sets@%d encoders@%d optional@%d",
		stringsVersion, listsVersion, mathVersion, setsVersion, encodersVersion, optionalsVersion)
}

// names are the variables of the scope, in the order of messages.
func (s Scope) names() []string {
	names := []string{"input", "steps", "execution", "now"}
	for _, optional := range []struct {
		name string
		here bool
	}{
		{"item", s.Item}, {"index", s.Item}, {"output", s.Output}, {"failure", s.Failure},
		{"idempotency_key", s.IdempotencyKey}, {"error", s.Error},
	} {
		if optional.here {
			names = append(names, optional.name)
		}
	}
	return names
}

var variableTypes = map[string]*cel.Type{
	"now":             cel.TimestampType,
	"index":           cel.IntType,
	"idempotency_key": cel.StringType,
}

// environments are built once for each scope: that takes a few milliseconds.
var environments sync.Map // Scope → func() (*cel.Env, error)

func environment(s Scope) (*cel.Env, error) {
	build, found := environments.Load(s)
	if !found {
		build, _ = environments.LoadOrStore(s, sync.OnceValues(func() (*cel.Env, error) { return newEnvironment(s) }))
	}
	return build.(func() (*cel.Env, error))()
}

func newEnvironment(s Scope) (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(&env.LibrarySubset{ExcludeFunctions: replacedFunctions()})),
		cel.CustomTypeAdapter(adapter{}),
		cel.OptionalTypes(cel.OptionalTypesVersion(optionalsVersion)),
		ext.Strings(ext.StringsVersion(stringsVersion)),
		ext.Lists(ext.ListsVersion(listsVersion), ext.ListsMaxRangeSize(maxRange)),
		ext.Math(ext.MathVersion(mathVersion)),
		ext.Sets(ext.SetsVersion(setsVersion)),
		ext.Encoders(ext.EncodersVersion(encodersVersion)),
		cel.DefaultUTCTimeZone(true),
	}
	options = append(options, operatorDeclarations()...)
	options = append(options, wholeNumbers()...)
	for _, name := range s.names() {
		kind, known := variableTypes[name]
		if !known {
			kind = cel.DynType
		}
		options = append(options, cel.Variable(name, kind))
	}
	return cel.NewCustomEnv(options...)
}

// replacedFunctions are those of the standard that are left out for ours.
func replacedFunctions() []*env.Function {
	replaced := []*env.Function{env.NewFunction(operators.Conditional)}
	for name := range binaryOperators {
		replaced = append(replaced, env.NewFunction(name))
	}
	return replaced
}

// operatorDeclarations are the types of our operators. What they do is bound
// when a program is planned (see plan.go).
func operatorDeclarations() []cel.EnvOption {
	numbers := func(operator string, ints *cel.Type) []cel.FunctionOpt {
		return []cel.FunctionOpt{
			overload(operator, cel.IntType, cel.IntType, ints),
			overload(operator, cel.UintType, cel.UintType, cel.UintType),
			overload(operator, cel.DoubleType, cel.DoubleType, cel.DoubleType),
			overload(operator, cel.IntType, cel.DoubleType, cel.DoubleType),
			overload(operator, cel.DoubleType, cel.IntType, cel.DoubleType),
		}
	}
	element := cel.TypeParamType("A")
	options := []cel.EnvOption{
		cel.Function(operators.Add, append(numbers("add", cel.IntType),
			overload("add", cel.StringType, cel.StringType, cel.StringType),
			overload("add", cel.BytesType, cel.BytesType, cel.BytesType),
			overload("add", cel.ListType(element), cel.ListType(element), cel.ListType(element)),
			overload("add", cel.TimestampType, cel.DurationType, cel.TimestampType),
			overload("add", cel.DurationType, cel.TimestampType, cel.TimestampType),
			overload("add", cel.DurationType, cel.DurationType, cel.DurationType))...),
		cel.Function(operators.Subtract, append(numbers("subtract", cel.IntType),
			overload("subtract", cel.TimestampType, cel.TimestampType, cel.DurationType),
			overload("subtract", cel.TimestampType, cel.DurationType, cel.TimestampType),
			overload("subtract", cel.DurationType, cel.DurationType, cel.DurationType))...),
		cel.Function(operators.Multiply, numbers("multiply", cel.IntType)...),
		cel.Function(operators.Divide, numbers("divide", cel.DynType)...),
		cel.Function(operators.Modulo, numbers("modulo", cel.IntType)...),
		cel.Function(operators.Equals, overload("equals", cel.DynType, cel.DynType, cel.BoolType)),
		cel.Function(operators.NotEquals, overload("not_equals", cel.DynType, cel.DynType, cel.BoolType)),
		cel.Function(operators.In,
			overload("in", cel.DynType, cel.ListType(cel.DynType), cel.BoolType),
			overload("in", cel.DynType, cel.MapType(cel.DynType, cel.DynType), cel.BoolType)),
		cel.Function(operators.Conditional,
			cel.Overload("conditional_dyn", []*cel.Type{cel.BoolType, cel.DynType, cel.DynType}, cel.DynType)),
		cel.Function("sum", cel.MemberOverload("list_sum", []*cel.Type{cel.ListType(cel.DynType)}, cel.DynType)),
	}
	for _, name := range []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals} {
		options = append(options, cel.Function(name, comparisons(name)...))
	}
	return options
}

func comparisons(name string) []cel.FunctionOpt {
	var overloads []cel.FunctionOpt
	numbers := []*cel.Type{cel.IntType, cel.UintType, cel.DoubleType}
	for _, left := range numbers {
		for _, right := range numbers {
			overloads = append(overloads, overload(name, left, right, cel.BoolType))
		}
	}
	for _, kind := range []*cel.Type{cel.BoolType, cel.StringType, cel.BytesType, cel.TimestampType, cel.DurationType} {
		overloads = append(overloads, overload(name, kind, kind, cel.BoolType))
	}
	return overloads
}

func overload(operator string, left, right, result *cel.Type) cel.FunctionOpt {
	id := fmt.Sprintf("%s_%s_%s", operator, left.TypeName(), right.TypeName())
	return cel.Overload(id, []*cel.Type{left, right}, result)
}
