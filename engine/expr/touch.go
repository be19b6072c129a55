package expr

import (
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// touch is v as an operator sees it: tokens are converted, also those in
// containers, at the moment when they are read. The result is an error for a
// number that cannot be converted.
func touch(v ref.Val) ref.Val {
	switch v := v.(type) {
	case token:
		return v.convert()
	case *object:
		return touchedObject{v}
	case *record:
		return touchedObject{v.object()}
	case *types.Optional:
		if v.HasValue() {
			return types.OptionalOf(touch(v.GetValue()))
		}
	case touchedList, traits.MutableLister:
		return v
	case traits.Lister:
		return touchedList{v}
	}
	return v
}

// touchScalar is touch for what has no parts; containers stay as they are.
func touchScalar(v ref.Val) ref.Val {
	if t, ok := v.(token); ok {
		return t.convert()
	}
	return v
}

// untouched is the value behind touch, which still has its text.
func untouched(v ref.Val) ref.Val {
	switch v := v.(type) {
	case touchedList:
		return v.Lister
	case touchedObject:
		return v.object
	case *record:
		return v.object()
	}
	return v
}

// touchPart is touch for a part of a container. Functions of the libraries do
// not expect an error there, so it ends the evaluation.
func touchPart(v ref.Val) ref.Val {
	v = touch(v)
	if err, failed := v.(*types.Err); failed {
		panic(interpreter.EvalCancelledError{Message: err.Error()})
	}
	return v
}

// touchedList is a list whose elements are converted when they are read.
type touchedList struct {
	traits.Lister
}

// Get implements traits.Indexer.
func (l touchedList) Get(index ref.Val) ref.Val {
	element := l.Lister.Get(index)
	if types.IsError(element) {
		return element // no such index
	}
	return touchPart(element)
}

// Iterator implements traits.Iterable.
func (l touchedList) Iterator() traits.Iterator {
	return touchedIterator{l.Lister.Iterator()}
}

type touchedIterator struct {
	traits.Iterator
}

func (it touchedIterator) Next() ref.Val { return touchPart(it.Iterator.Next()) }

// elements is the list as a slice.
func (l touchedList) elements() []ref.Val {
	elements := []ref.Val{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		elements = append(elements, it.Next())
	}
	return elements
}

// Add implements traits.Adder.
func (l touchedList) Add(other ref.Val) ref.Val { return l.Lister.Add(untouched(other)) }

// Contains implements traits.Container.
func (l touchedList) Contains(element ref.Val) ref.Val { return new(meter).contains(l.Lister, element) }

// Equal implements ref.Val.
func (l touchedList) Equal(other ref.Val) ref.Val { return new(meter).equal(l.Lister, other) }

// ConvertToNative implements ref.Val.
func (l touchedList) ConvertToNative(typeDesc reflect.Type) (any, error) {
	return types.NewRefValList(adapter{}, l.elements()).ConvertToNative(typeDesc)
}

// Value implements ref.Val.
func (l touchedList) Value() any { return l.elements() }

// touchedObject is a map whose values are converted when they are read.
type touchedObject struct {
	*object
}

// FindStringKey is what a selection uses.
func (o touchedObject) FindStringKey(key string) (any, bool) {
	value, found := o.object.get(key)
	if found {
		value = touchPart(value)
	}
	return value, found
}

// Find implements traits.Mapper.
func (o touchedObject) Find(key ref.Val) (ref.Val, bool) {
	value, found := o.object.Find(key)
	if found {
		value = touchPart(value)
	}
	return value, found
}

// Get implements traits.Indexer.
func (o touchedObject) Get(key ref.Val) ref.Val {
	value := o.object.Get(key)
	if types.IsError(value) {
		return value
	}
	return touchPart(value)
}

// Fold implements traits.Foldable.
func (o touchedObject) Fold(folder traits.Folder) { o.object.Fold(touchedFolder{folder}) }

type touchedFolder struct {
	traits.Folder
}

func (f touchedFolder) FoldEntry(key, value any) bool {
	return f.Folder.FoldEntry(key, touchPart(value.(ref.Val)))
}
