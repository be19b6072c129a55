package expr

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"perigee/engine/exactjson"
)

// JSON enters an evaluation as text and stays text while it is only moved:
// numbers and strings with escapes are tokens, arrays and objects keep their
// text beside their parts. An operator that looks at a value touches it first
// (see touch.go).

// wrap is v as a value of CEL; an absent one is null.
func wrap(v exactjson.Value) ref.Val {
	switch v.Kind() {
	case exactjson.KindBool:
		return types.Bool(v == exactjson.True)
	case exactjson.KindNumber:
		return token(v)
	case exactjson.KindString:
		text, _ := v.Text()
		if len(text)+2 != len(v) {
			return token(v) // it has escapes
		}
		return types.String(text)
	case exactjson.KindArray:
		return newArray(v)
	case exactjson.KindObject:
		return &object{text: v}
	}
	return types.NullValue
}

// token is a number, or a string with escapes, that nothing has looked at.
type token exactjson.Value

// convert is what an operator sees: int, double or string, or an error.
func (t token) convert() ref.Val {
	v := exactjson.Value(t)
	if text, ok := v.Text(); ok {
		return types.String(text)
	}
	if n, ok := v.Int64(); ok {
		return types.Int(n)
	}
	if v.Whole() {
		return types.NewErr("%s is a whole number outside of 64 bits; it can be moved, not computed with: send it as a string", brief(string(v)))
	}
	f, _ := v.Float64()
	if double := types.Double(f); f-f == 0 {
		return double
	}
	return types.NewErr("%s is beyond the largest double; it can be moved, not computed with: send it as a string", brief(string(v)))
}

// ConvertToNative implements ref.Val.
func (t token) ConvertToNative(typeDesc reflect.Type) (any, error) {
	return t.convert().ConvertToNative(typeDesc)
}

// ConvertToType implements ref.Val.
func (t token) ConvertToType(typeVal ref.Type) ref.Val { return t.convert().ConvertToType(typeVal) }

// Equal implements ref.Val.
func (t token) Equal(other ref.Val) ref.Val { return new(meter).equal(t, other) }

// Type implements ref.Val. A whole number that is too large is an int all the
// same; only looking at its value fails.
func (t token) Type() ref.Type {
	switch v := exactjson.Value(t); {
	case v.Kind() == exactjson.KindString:
		return types.StringType
	case v.Whole():
		return types.IntType
	}
	return types.DoubleType
}

// Value implements ref.Val.
func (t token) Value() any { return t.convert().Value() }

// IsZeroValue implements traits.Zeroer.
func (t token) IsZeroValue() bool {
	zeroer, ok := t.convert().(traits.Zeroer)
	return ok && zeroer.IsZeroValue()
}

// array is a JSON array. Its elements are tokens as long as they can be.
type array struct {
	traits.Lister
	text exactjson.Value
}

func newArray(text exactjson.Value) *array {
	elements := []ref.Val{}
	for element := range text.Elements() {
		elements = append(elements, wrap(element))
	}
	return &array{Lister: types.NewRefValList(adapter{}, elements), text: text}
}

// Equal implements ref.Val.
func (a *array) Equal(other ref.Val) ref.Val { return new(meter).equal(a, other) }

// IsZeroValue implements traits.Zeroer.
func (a *array) IsZeroValue() bool { return a.Size() == types.IntZero }

// object is a map that is walked in the order of its keys. One that came as
// JSON has a text and takes it apart when it must; one made by an expression
// has no text.
type object struct {
	text    exactjson.Value
	lookups int // in the text; after a few an index is worth it
	keys    []ref.Val
	index   map[any]ref.Val // by the key's name
}

// scans is how often the text is searched before it is indexed.
const scans = 2

// newObject is a map in order, or an error if two of its keys are equal.
func newObject(entries traits.Mapper) ref.Val {
	o := &object{index: map[any]ref.Val{}}
	for it := entries.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		value, _ := entries.Find(key)
		o.put(key, value)
	}
	if len(o.keys) < sizeOf(entries) {
		return types.NewErr("a key stands twice in one map")
	}
	slices.SortFunc(o.keys, compareKeys)
	return o
}

func (o *object) put(key, value ref.Val) {
	name := keyName(key)
	if _, twice := o.index[name]; !twice {
		o.keys = append(o.keys, key)
	}
	o.index[name] = value
}

// parts indexes the text.
func (o *object) parts() {
	if o.index != nil {
		return
	}
	o.index = map[any]ref.Val{}
	for key, value := range o.text.Members() {
		o.put(types.String(key), wrap(value))
	}
	slices.SortFunc(o.keys, compareKeys)
}

// FindStringKey is what a selection uses.
func (o *object) FindStringKey(key string) (any, bool) {
	value, found := o.get(key)
	return value, found
}

func (o *object) get(key string) (ref.Val, bool) {
	if o.index == nil && o.lookups < scans {
		o.lookups++
		if value := o.text.Get(key); !value.Absent() {
			return wrap(value), true
		}
		return nil, false
	}
	o.parts()
	value, found := o.index[key]
	return value, found
}

// Find implements traits.Mapper.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	if types.IsUnknownOrError(key) {
		return key, false
	}
	o.parts()
	value, found := o.index[keyName(touch(key))]
	return value, found
}

// Get implements traits.Indexer.
func (o *object) Get(key ref.Val) ref.Val {
	if value, found := o.Find(key); found {
		return value
	}
	return types.NewErr("no such key: %v", key)
}

// Contains implements traits.Container.
func (o *object) Contains(key ref.Val) ref.Val {
	value, found := o.Find(key)
	if !found && value != nil {
		return value
	}
	return types.Bool(found)
}

// Size implements traits.Sizer.
func (o *object) Size() ref.Val {
	if o.index == nil {
		return types.Int(o.text.Len())
	}
	return types.Int(len(o.keys))
}

// Iterator implements traits.Iterable: the keys in order.
func (o *object) Iterator() traits.Iterator {
	o.parts()
	return types.NewRefValList(adapter{}, o.keys).Iterator()
}

// Fold implements traits.Foldable.
func (o *object) Fold(folder traits.Folder) {
	o.parts()
	for _, key := range o.keys {
		if !folder.FoldEntry(key, o.index[keyName(key)]) {
			return
		}
	}
}

// IsZeroValue implements traits.Zeroer.
func (o *object) IsZeroValue() bool { return o.Size() == types.IntZero }

// ConvertToNative implements ref.Val. Nothing here converts maps.
func (o *object) ConvertToNative(typeDesc reflect.Type) (any, error) {
	return nil, fmt.Errorf("a map cannot be converted to %v", typeDesc)
}

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(typeVal ref.Type) ref.Val {
	switch typeVal {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("type conversion error from map to %s", typeVal.TypeName())
}

// Equal implements ref.Val.
func (o *object) Equal(other ref.Val) ref.Val { return new(meter).equal(o, other) }

// Type implements ref.Val.
func (o *object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *object) Value() any { return o }

// keyName is what a key is found by: equal keys have one name, 1 and 1.0 too.
func keyName(key ref.Val) any {
	switch key := key.(type) {
	case types.String:
		return string(key)
	case types.Int:
		return int64(key)
	case types.Uint:
		if int64(key) >= 0 {
			return int64(key)
		}
		return uint64(key)
	case types.Double:
		if n := int64(key); key >= -1<<63 && key < 1<<63 && types.Double(n) == key {
			return n
		}
		return float64(key)
	case types.Bool:
		return bool(key)
	case types.Bytes:
		return key.Type().TypeName() + string(key)
	}
	return key
}

// compareKeys orders strings by their bytes, behind numbers and booleans.
func compareKeys(a, b ref.Val) int {
	left, isText := a.(types.String)
	right, areTexts := b.(types.String)
	if isText && areTexts {
		return cmp.Compare(left, right)
	}
	if isText != areTexts {
		if isText {
			return 1
		}
		return -1
	}
	if c, ok := compareNumbers(a, b); ok {
		return c
	}
	return cmp.Or(cmp.Compare(a.Type().TypeName(), b.Type().TypeName()), cmp.Compare(fmt.Sprint(a.Value()), fmt.Sprint(b.Value())))
}

// record is a map with fixed fields that are made when they are asked for: the
// steps, one step, the execution.
type record struct {
	names []string // nil if they are not known
	field func(name string) (ref.Val, bool)
	whole *object
}

// FindStringKey is what a selection uses.
func (r *record) FindStringKey(key string) (any, bool) {
	value, found := r.field(key)
	return value, found
}

func (r *record) object() *object {
	if r.whole == nil {
		r.whole = &object{index: map[any]ref.Val{}}
		for _, name := range r.names {
			value, _ := r.field(name)
			r.whole.put(types.String(name), value)
		}
		slices.SortFunc(r.whole.keys, compareKeys)
	}
	return r.whole
}

// Find implements traits.Mapper.
func (r *record) Find(key ref.Val) (ref.Val, bool) {
	if name, ok := touch(key).(types.String); ok {
		return r.field(string(name))
	}
	return r.object().Find(key)
}

// Get implements traits.Indexer.
func (r *record) Get(key ref.Val) ref.Val {
	if value, found := r.Find(key); found {
		return value
	}
	return types.NewErr("no such key: %v", key)
}

// Contains implements traits.Container.
func (r *record) Contains(key ref.Val) ref.Val {
	_, found := r.Find(key)
	return types.Bool(found)
}

// Size implements traits.Sizer.
func (r *record) Size() ref.Val { return r.object().Size() }

// Iterator implements traits.Iterable.
func (r *record) Iterator() traits.Iterator { return r.object().Iterator() }

// Fold implements traits.Foldable.
func (r *record) Fold(folder traits.Folder) { r.object().Fold(folder) }

// ConvertToNative implements ref.Val.
func (r *record) ConvertToNative(typeDesc reflect.Type) (any, error) {
	return r.object().ConvertToNative(typeDesc)
}

// ConvertToType implements ref.Val.
func (r *record) ConvertToType(typeVal ref.Type) ref.Val { return r.object().ConvertToType(typeVal) }

// Equal implements ref.Val.
func (r *record) Equal(other ref.Val) ref.Val { return new(meter).equal(r.object(), other) }

// Type implements ref.Val.
func (r *record) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (r *record) Value() any { return r.object() }

// adapter hands values to CEL; whatever is one already stays as it is.
type adapter struct{}

// NativeToValue implements types.Adapter.
func (adapter) NativeToValue(value any) ref.Val {
	switch value := value.(type) {
	case ref.Val:
		return value
	case []ref.Val:
		return types.NewRefValList(adapter{}, value)
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}
