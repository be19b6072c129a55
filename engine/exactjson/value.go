package exactjson

// Value is one JSON value as compact text (no insignificant white space), or
// "" for "absent". A Value made by Parse is well-formed; code that builds one
// by hand must keep it so. Values are immutable and safe to share.
type Value string

// Often used values.
const (
	Null        Value = "null"
	True        Value = "true"
	False       Value = "false"
	EmptyObject Value = "{}"
	EmptyArray  Value = "[]"
)

// Absent reports whether v stands for "no value was given".
func (v Value) Absent() bool { return v == "" }

// IsNull reports whether v is absent or the JSON null.
func (v Value) IsNull() bool { return v == "" || v == Null }

// OrNull is v, or null where v is absent.
func (v Value) OrNull() Value { return v.Or(Null) }

// Or is v, or other where v is absent.
func (v Value) Or(other Value) Value {
	if v == "" {
		return other
	}
	return v
}
