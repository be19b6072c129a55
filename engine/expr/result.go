package expr

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"perigee/engine/exactjson"
)

// maxResult bounds a result where the caller does not, in bytes.
const maxResult = 64 << 20

// resultWriter writes the values of CEL as JSON.
type resultWriter struct {
	dst   []byte
	limit int // bytes
	built bool
}

// errTooLarge stops a writer that has passed its limit.
type errTooLarge struct{ limit int }

func (e errTooLarge) Error() string {
	return fmt.Sprintf("the result is larger than %d bytes", e.limit)
}

func (w *resultWriter) room(n int) error {
	if len(w.dst)+n > w.limit {
		return errTooLarge{w.limit}
	}
	return nil
}

func (w *resultWriter) raw(text string) error {
	if err := w.room(len(text)); err != nil {
		return err
	}
	w.dst = append(w.dst, text...)
	return nil
}

func (w *resultWriter) quoted(text string) error {
	if err := w.room(len(text) + 2); err != nil {
		return err
	}
	w.dst = exactjson.AppendQuoted(w.dst, text)
	return w.room(0)
}

// absent reports whether v is optional.none(), which leaves out what it stands
// for.
func absent(v ref.Val) bool {
	optional, ok := v.(*types.Optional)
	return ok && !optional.HasValue()
}

// value writes v, which is not absent.
func (w *resultWriter) value(v ref.Val) error {
	switch v := untouched(v).(type) {
	case token:
		return w.raw(string(v))
	case *array:
		return w.raw(string(v.text))
	case *object:
		if !v.text.Absent() {
			return w.raw(string(v.text))
		}
		return w.object(v)
	case *types.Optional:
		return w.value(v.GetValue())
	case traits.Lister:
		return w.list(v)
	default:
		return w.scalar(v)
	}
}

func (w *resultWriter) list(list traits.Lister) error {
	w.built = true
	if err := w.raw("["); err != nil {
		return err
	}
	first := true
	for it := list.Iterator(); it.HasNext() == types.True; {
		element := it.Next()
		if absent(element) {
			continue
		}
		if !first {
			w.dst = append(w.dst, ',')
		}
		first = false
		if err := w.value(element); err != nil {
			return err
		}
	}
	return w.raw("]")
}

func (w *resultWriter) object(o *object) error {
	w.built = true
	if err := w.raw("{"); err != nil {
		return err
	}
	first := true
	for _, key := range o.keys {
		name, ok := key.(types.String)
		if !ok {
			return fmt.Errorf("a key of an object must be a string, got %s", typeName(key))
		}
		member := o.index[keyName(key)]
		if absent(member) {
			continue
		}
		if !first {
			w.dst = append(w.dst, ',')
		}
		first = false
		if err := w.quoted(string(name)); err != nil {
			return err
		}
		w.dst = append(w.dst, ':')
		if err := w.value(member); err != nil {
			return err
		}
	}
	return w.raw("}")
}

func (w *resultWriter) scalar(v ref.Val) error {
	switch v := v.(type) {
	case types.Bool:
		return w.raw(strconv.FormatBool(bool(v)))
	case types.Int:
		return w.raw(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		return w.raw(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		text, ok := exactjson.FromFloat(float64(v))
		if !ok {
			return fmt.Errorf("the result is %v, which JSON cannot say", float64(v))
		}
		return w.raw(string(text))
	case types.Null:
		return w.raw("null")
	case *types.Err:
		return v
	}
	if text, ok := plainText(v); ok {
		return w.quoted(text)
	}
	return fmt.Errorf("the result is of type %s, which JSON cannot say", typeName(v))
}

// plainText is what a value gives inside a longer text without quotes.
func plainText(v ref.Val) (text string, ok bool) {
	switch v := v.(type) {
	case types.String:
		return string(v), true
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), true
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339Nano), true
	case types.Duration:
		return seconds(v.Duration), true
	case token:
		return exactjson.Value(v).Text()
	}
	return "", false
}

// seconds is a duration such as 5400s or -0.25s, exactly.
func seconds(d time.Duration) string {
	whole, rest := d/time.Second, d%time.Second
	if rest == 0 {
		return fmt.Sprintf("%ds", int64(whole))
	}
	sign := ""
	if d < 0 {
		sign, whole, rest = "-", -whole, -rest
	}
	return sign + strings.TrimRight(fmt.Sprintf("%d.%09d", int64(whole), int64(rest)), "0") + "s"
}
