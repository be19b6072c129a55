package history

import (
	"errors"

	"perigee/engine/exactjson"
)

// JSON is the error as it stands in events and in a report:
// {code, message, retryable, details?}.
func (e TaskError) JSON() exactjson.Value {
	w := writer{}
	w.errorMembers(e)
	return exactjson.Value(w.object(0))
}

// ReadTaskError reads what JSON wrote.
func ReadTaskError(v exactjson.Value) (TaskError, error) {
	var r reader
	e := r.taskError("error", v)
	if r.err != nil {
		return TaskError{}, errors.Join(errors.New("read a task error"), r.err)
	}
	return e, nil
}
