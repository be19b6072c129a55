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
)

// Kind is what a value is.
type Kind byte

// The kinds of JSON, and KindAbsent for the zero Value.
const (
	KindAbsent Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

var kindNames = [...]string{"nothing", "null", "boolean", "number", "string", "array", "object"}

// String is the kind's name in messages: "object", "null", "nothing".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Kind looks at the first byte of v only.
func (v Value) Kind() Kind {
	if v == "" {
		return KindAbsent
	}
	switch v[0] {
	case 'n':
		return KindNull
	case 't', 'f':
		return KindBool
	case '"':
		return KindString
	case '[':
		return KindArray
	case '{':
		return KindObject
	}
	return KindNumber
}

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

// Bool is the boolean that v is; ok is false for every other kind.
func (v Value) Bool() (value, ok bool) {
	return v == True, v.Kind() == KindBool
}

// MarshalJSON gives the text; an absent value is null. (encoding/json escapes
// <, > and & in it unless its encoder was told SetEscapeHTML(false).)
func (v Value) MarshalJSON() ([]byte, error) {
	return []byte(v.OrNull()), nil
}

// UnmarshalJSON is Parse, for use by encoding/json.
func (v *Value) UnmarshalJSON(text []byte) error {
	parsed, err := Parse(text)
	if err != nil {
		return err
	}
	*v = parsed
	return nil
}
