package expr

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// functions replace what the extensions do under these names, with the same
// meaning but for the numbers: int and double mix, and nothing takes quadratic
// time or makes a text of any size.
var functions = map[string]func(m *meter, args ...ref.Val) ref.Val{
	"sum":                   (*meter).sum,
	"sort":                  func(m *meter, args ...ref.Val) ref.Val { return m.sortBy(args[0], args[0]) },
	"@sortByAssociatedKeys": func(m *meter, args ...ref.Val) ref.Val { return m.sortBy(args[0], args[1]) },
	"distinct":              (*meter).distinct,
	"sets.contains":         func(m *meter, args ...ref.Val) ref.Val { return m.setsContain(args[0], args[1]) },
	"sets.equivalent":       (*meter).setsEquivalent,
	"sets.intersects":       (*meter).setsIntersect,
	"hasValue":              (*meter).hasValue,
	"join":                  (*meter).join,
	"replace":               (*meter).replace,
	"indexOf":               (*meter).indexOf,
	"lastIndexOf":           (*meter).lastIndexOf,
}

// wholeNumbers are the functions for doubles that must take an int too: 10.0 in
// JSON is one.
func wholeNumbers() []cel.EnvOption {
	var options []cel.EnvOption
	same := func(n ref.Val) ref.Val { return n }
	for _, name := range []string{"ceil", "floor", "round", "trunc"} {
		options = append(options, cel.Function("math."+name,
			cel.Overload("math_"+name+"_int", []*cel.Type{cel.IntType}, cel.IntType, cel.UnaryBinding(same))))
	}
	for name, result := range map[string]types.Bool{"isNaN": false, "isInf": false, "isFinite": true} {
		options = append(options, cel.Function("math."+name,
			cel.Overload("math_"+name+"_int", []*cel.Type{cel.IntType}, cel.BoolType,
				cel.UnaryBinding(func(ref.Val) ref.Val { return result }))))
	}
	return options
}

// sum adds up the numbers of a list; nothing gives 0.
func (m *meter) sum(args ...ref.Val) ref.Val {
	values, failed := m.elements("sum", args[0])
	if failed != nil {
		return failed
	}
	var total ref.Val = types.IntZero
	for _, v := range values {
		total = arithmetic("+", total, v)
		if types.IsError(total) {
			return total
		}
	}
	return total
}

// elements are those of a list as they are; the error is for what is no list.
func (m *meter) elements(function string, v ref.Val) ([]ref.Val, ref.Val) {
	list, ok := untouched(v).(traits.Lister)
	if !ok {
		return nil, types.NewErr("%s() is for a list, got %s", function, typeName(v))
	}
	m.charge(uint64(sizeOf(list)))
	result := make([]ref.Val, 0, sizeOf(list))
	for it := list.Iterator(); it.HasNext() == types.True; {
		result = append(result, it.Next())
	}
	return result, nil
}

// sortBy orders a list by the keys that belong to its elements; equal ones keep
// their order.
func (m *meter) sortBy(list, keys ref.Val) ref.Val {
	values, failed := m.elements("sort", list)
	if failed != nil {
		return failed
	}
	order, failed := m.elements("sort", keys)
	if failed != nil {
		return failed
	}
	type entry struct{ key, value ref.Val }
	entries := make([]entry, len(values))
	for i := range values {
		entries[i] = entry{touch(order[i]), values[i]}
		if types.IsError(entries[i].key) {
			return entries[i].key
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		c, err := compareForSort(a.key, b.key)
		if failed == nil {
			failed = err
		}
		return c
	})
	if len(entries) == 1 {
		_, failed = compareForSort(entries[0].key, entries[0].key)
	}
	if failed != nil {
		return failed
	}
	for i := range entries {
		values[i] = entries[i].value
	}
	return types.NewRefValList(adapter{}, values)
}

func compareForSort(a, b ref.Val) (c int, failed ref.Val) {
	if c, ok := compareNumbers(a, b); ok {
		return c, nil
	}
	if comparer, ok := a.(traits.Comparer); ok && a.Type() == b.Type() {
		if c, ok := comparer.Compare(b).(types.Int); ok {
			return int(c), nil
		}
	}
	return 0, types.NewErr("expected values of one kind that have an order, got %s and %s", typeName(a), typeName(b))
}

func (m *meter) distinct(args ...ref.Val) ref.Val {
	values, failed := m.elements("distinct", args[0])
	if failed != nil {
		return failed
	}
	seen := map[string]bool{}
	result := []ref.Val{}
	for _, v := range values {
		identity, err := m.appendIdentity(nil, v)
		if err != nil {
			return err
		}
		if !seen[string(identity)] {
			seen[string(identity)] = true
			result = append(result, v)
		}
	}
	return types.NewRefValList(adapter{}, result)
}

// set is the identities of a list's elements.
func (m *meter) set(list ref.Val) (map[string]bool, ref.Val) {
	values, failed := m.elements("sets", list)
	if failed != nil {
		return nil, failed
	}
	identities := make(map[string]bool, len(values))
	for _, v := range values {
		identity, err := m.appendIdentity(nil, v)
		if err != nil {
			return nil, err
		}
		identities[string(identity)] = true
	}
	return identities, nil
}

func (m *meter) setsContain(list, sublist ref.Val) ref.Val {
	all, failed := m.set(list)
	if failed != nil {
		return failed
	}
	wanted, failed := m.set(sublist)
	if failed != nil {
		return failed
	}
	for identity := range wanted {
		if !all[identity] {
			return types.False
		}
	}
	return types.True
}

func (m *meter) setsEquivalent(args ...ref.Val) ref.Val {
	if result := m.setsContain(args[0], args[1]); result != types.True {
		return result
	}
	return m.setsContain(args[1], args[0])
}

func (m *meter) setsIntersect(args ...ref.Val) ref.Val {
	left, failed := m.set(args[0])
	if failed != nil {
		return failed
	}
	right, failed := m.set(args[1])
	if failed != nil {
		return failed
	}
	for identity := range left {
		if right[identity] {
			return types.True
		}
	}
	return types.False
}

// appendIdentity appends bytes that are the same for equal values only.
func (m *meter) appendIdentity(dst []byte, v ref.Val) ([]byte, ref.Val) {
	m.charge(1)
	switch v := untouched(touch(v)).(type) {
	case *types.Err:
		return dst, v
	case types.Int:
		return appendNumber(dst, v), nil
	case types.Uint:
		return appendNumber(dst, v), nil
	case types.Double:
		return appendNumber(dst, v), nil
	case *object:
		v.parts()
		dst = append(dst, '{')
		for _, key := range v.keys {
			var failed ref.Val
			if dst, failed = m.appendIdentity(dst, key); failed != nil {
				return dst, failed
			}
			if dst, failed = m.appendIdentity(dst, v.index[keyName(key)]); failed != nil {
				return dst, failed
			}
		}
		return append(dst, '}'), nil
	case *types.Optional:
		if !v.HasValue() {
			return append(dst, 'o'), nil
		}
		return m.appendIdentity(append(dst, 'O'), v.GetValue())
	case traits.Lister:
		dst = append(dst, '[')
		for it := v.Iterator(); it.HasNext() == types.True; {
			var failed ref.Val
			if dst, failed = m.appendIdentity(dst, it.Next()); failed != nil {
				return dst, failed
			}
		}
		return append(dst, ']'), nil
	default:
		text, plain := plainText(v)
		if !plain {
			text = fmt.Sprint(v.Value())
		}
		m.charge(uint64(len(text)) / bytesPerUnit)
		dst = append(append(dst, typeName(v)...), ' ')
		dst = binary.AppendUvarint(dst, uint64(len(text)))
		return append(dst, text...), nil
	}
}

// appendNumber gives one form to the numbers of one value: ints where they fit.
func appendNumber(dst []byte, v ref.Val) []byte {
	switch name := keyName(v).(type) {
	case int64:
		return binary.BigEndian.AppendUint64(append(dst, 'i'), uint64(name))
	case uint64:
		return binary.BigEndian.AppendUint64(append(dst, 'u'), name)
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, 'd'), math.Float64bits(name))
	}
	return dst
}

// hasValue asks whether an optional holds anything, or this.
func (m *meter) hasValue(args ...ref.Val) ref.Val {
	optional, ok := args[0].(*types.Optional)
	switch {
	case !ok:
		return types.NewErr("hasValue() is for an optional, got %s", typeName(args[0]))
	case len(args) == 1 || !optional.HasValue():
		return types.Bool(optional.HasValue())
	}
	return m.equal(optional.GetValue(), args[1])
}

func (m *meter) join(args ...ref.Val) ref.Val {
	values, failed := m.elements("join", args[0])
	if failed != nil {
		return failed
	}
	separator := ""
	if len(args) > 1 {
		var ok bool
		if separator, ok = textOf(args[1]); !ok {
			return types.NewErr("join() takes a string between the elements, got %s", typeName(args[1]))
		}
	}
	var text strings.Builder
	for i, v := range values {
		if i > 0 {
			text.WriteString(separator)
		}
		s, ok := textOf(v)
		if !ok {
			return types.NewErr("join() is for a list of strings, got %s at %d; write list.map(x, string(x)).join()", typeName(touch(v)), i)
		}
		if text.Len()+len(s)+len(separator) > maxText {
			return types.NewErr("the text grows beyond %d bytes", maxText)
		}
		text.WriteString(s)
	}
	m.charge(uint64(text.Len()) / bytesPerUnit)
	return types.String(text.String())
}

func textOf(v ref.Val) (string, bool) {
	s, ok := touch(v).(types.String)
	return string(s), ok
}

// texts are the leading string arguments and the int behind them, if any.
func texts(function string, args []ref.Val, count int) (s []string, n int64, failed ref.Val) {
	for i, arg := range args {
		switch arg := touch(arg).(type) {
		case types.String:
			if i < count {
				s = append(s, string(arg))
				continue
			}
		case types.Int:
			if i == count {
				n = int64(arg)
				continue
			}
		}
		return nil, 0, types.NewErr("%s() does not take %s as its argument %d", function, typeName(arg), i)
	}
	if len(s) < count {
		return nil, 0, types.NewErr("%s() takes more arguments", function)
	}
	return s, n, nil
}

func (m *meter) replace(args ...ref.Val) ref.Val {
	s, limit, failed := texts("replace", args, 3)
	if failed != nil {
		return failed
	}
	count := strings.Count(s[0], s[1])
	if len(args) == 4 && limit >= 0 {
		count = min(count, int(min(limit, maxText)))
	}
	if len(s[0])+count*(len(s[2])-len(s[1])) > maxText {
		return types.NewErr("the text grows beyond %d bytes", maxText)
	}
	m.charge(uint64(len(s[0])+count*len(s[2])) / bytesPerUnit)
	return types.String(strings.Replace(s[0], s[1], s[2], count))
}

// indexOf counts characters, not bytes; -1 if there is none.
func (m *meter) indexOf(args ...ref.Val) ref.Val {
	s, from, failed := texts("indexOf", args, 2)
	if failed != nil {
		return failed
	}
	m.charge(uint64(len(s[0])) / bytesPerUnit)
	if from < 0 {
		return types.NewErr("index out of range: %d", from)
	}
	start, skipped := forward(s[0], from)
	if s[1] == "" {
		return types.Int(skipped)
	}
	found := strings.Index(s[0][start:], s[1])
	if found < 0 {
		return types.IntNegOne
	}
	return types.Int(skipped) + types.Int(utf8.RuneCountInString(s[0][start:start+found]))
}

// lastIndexOf is indexOf from the end, or from the character given.
func (m *meter) lastIndexOf(args ...ref.Val) ref.Val {
	s, from, failed := texts("lastIndexOf", args, 2)
	if failed != nil {
		return failed
	}
	m.charge(uint64(len(s[0])) / bytesPerUnit)
	size := int64(utf8.RuneCountInString(s[0]))
	switch {
	case len(args) == 2:
		from = size
	case from < 0:
		return types.NewErr("index out of range: %d", from)
	case s[1] == "":
		return types.Int(min(from, size))
	case from >= size:
		return types.IntNegOne
	}
	start, _ := forward(s[0], from)
	end := min(start+len(s[1]), len(s[0])) // a match may begin at from, not behind it
	found := strings.LastIndex(s[0][:end], s[1])
	if found < 0 {
		return types.IntNegOne
	}
	return types.Int(utf8.RuneCountInString(s[0][:found]))
}

// forward is the byte at which character n of s starts, and n or the number of
// characters if there are fewer.
func forward(s string, n int64) (offset int, characters int64) {
	for offset < len(s) && characters < n {
		_, size := utf8.DecodeRuneInString(s[offset:])
		offset += size
		characters++
	}
	return offset, characters
}
