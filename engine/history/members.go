package history

import (
	"fmt"
	"strconv"

	"perigee/engine/exactjson"
)

// member is the place of an event's JSON member in a members table.
type member uint8

// The JSON members of all events. A name means the same in each event, so one
// table serves them all.
const (
	mUnknown member = iota
	mSeq
	mTimestampMS
	mType
	mAttempt
	mCompensation
	mDeadlineMS
	mDefinitionHash
	mDelayMS
	mDetails
	mError
	mFireAtMS
	mIdempotencyKey
	mInput
	mItems
	mKind
	mLimit
	mMessage
	mName
	mNextAttempt
	mOutcome
	mOutput
	mParent
	mPayload
	mReason
	mRedelivery
	mRetryAfterMS
	mSignal
	mSignalID
	mSignalSeq
	mStep
	mSteps
	mToken
	mVersion
	mWorkerID
	mWorkerSession
	mWorkflow
	memberCount
)

var memberNames = [memberCount]string{
	mSeq: "seq", mTimestampMS: "timestamp_ms", mType: "type", mAttempt: "attempt", mCompensation: "compensation",
	mDeadlineMS: "deadline_ms", mDefinitionHash: "definition_hash", mDelayMS: "delay_ms", mDetails: "details",
	mError: "error", mFireAtMS: "fire_at_ms", mIdempotencyKey: "idempotency_key", mInput: "input", mItems: "items",
	mKind: "kind", mLimit: "limit", mMessage: "message", mName: "name", mNextAttempt: "next_attempt",
	mOutcome: "outcome", mOutput: "output", mParent: "parent", mPayload: "payload", mReason: "reason",
	mRedelivery: "redelivery", mRetryAfterMS: "retry_after_ms", mSignal: "signal", mSignalID: "signal_id",
	mSignalSeq: "signal_seq", mStep: "step", mSteps: "steps", mToken: "token", mVersion: "version",
	mWorkerID: "worker_id", mWorkerSession: "worker_session", mWorkflow: "workflow",
}

// memberOf finds a name's place. A switch over constants costs a third of a
// map's look-up, and an event has up to ten members.
func memberOf(name string) member {
	switch name {
	case "seq":
		return mSeq
	case "timestamp_ms":
		return mTimestampMS
	case "type":
		return mType
	case "attempt":
		return mAttempt
	case "compensation":
		return mCompensation
	case "deadline_ms":
		return mDeadlineMS
	case "definition_hash":
		return mDefinitionHash
	case "delay_ms":
		return mDelayMS
	case "details":
		return mDetails
	case "error":
		return mError
	case "fire_at_ms":
		return mFireAtMS
	case "idempotency_key":
		return mIdempotencyKey
	case "input":
		return mInput
	case "items":
		return mItems
	case "kind":
		return mKind
	case "limit":
		return mLimit
	case "message":
		return mMessage
	case "name":
		return mName
	case "next_attempt":
		return mNextAttempt
	case "outcome":
		return mOutcome
	case "output":
		return mOutput
	case "parent":
		return mParent
	case "payload":
		return mPayload
	case "reason":
		return mReason
	case "redelivery":
		return mRedelivery
	case "retry_after_ms":
		return mRetryAfterMS
	case "signal":
		return mSignal
	case "signal_id":
		return mSignalID
	case "signal_seq":
		return mSignalSeq
	case "step":
		return mStep
	case "steps":
		return mSteps
	case "token":
		return mToken
	case "version":
		return mVersion
	case "worker_id":
		return mWorkerID
	case "worker_session":
		return mWorkerSession
	case "workflow":
		return mWorkflow
	}
	return mUnknown
}

// members are an event's members by place, as text: the one pass over an event
// slices, and only what its type has is then decoded.
type members struct {
	raw [memberCount]exactjson.Value
	reader
}

func (m *members) slice(object exactjson.Value) {
	for name, v := range braced(object).Members() {
		m.raw[memberOf(name)] = v
	}
}

func (m *members) text(f member) string    { return m.reader.text(memberNames[f], m.raw[f]) }
func (m *members) uint64(f member) uint64  { return m.reader.uint64(memberNames[f], m.raw[f]) }
func (m *members) uint32(f member) uint32  { return m.reader.uint32(memberNames[f], m.raw[f]) }
func (m *members) int64(f member) int64    { return m.reader.int64(memberNames[f], m.raw[f]) }
func (m *members) intPtr(f member) *int64  { return m.reader.intPtr(memberNames[f], m.raw[f]) }
func (m *members) flag(f member) bool      { return m.reader.flag(memberNames[f], m.raw[f]) }
func (m *members) texts(f member) []string { return m.reader.texts(memberNames[f], m.raw[f]) }
func (m *members) taskError() TaskError {
	return m.reader.taskError(memberNames[mError], m.raw[mError])
}
func (m *members) parent() *ParentRef           { return m.reader.parent(memberNames[mParent], m.raw[mParent]) }
func (m *members) outcome() CompensationOutcome { return CompensationOutcome(m.text(mCompensation)) }

// braced is v if it starts and ends as an object does, else absent. It keeps a
// text that was cut off in a store from being read past its end.
func braced(v exactjson.Value) exactjson.Value {
	if len(v) < 2 || v[0] != '{' || v[len(v)-1] != '}' {
		return ""
	}
	return v
}

// reader turns the text of single values into what Go holds and keeps the
// first fault. Absent and null stand for the zero value everywhere.
type reader struct{ err error }

func (r *reader) fault(name, want string, got exactjson.Value) {
	if r.err != nil {
		return
	}
	shown := string(got)
	if kind := got.Kind(); kind != exactjson.KindNumber {
		shown = kind.String()
	}
	r.err = fmt.Errorf("member %q: expected %s, got %s", name, want, shown)
}

func (r *reader) text(name string, v exactjson.Value) string {
	if v.IsNull() {
		return ""
	}
	s, ok := v.Text()
	if !ok {
		r.fault(name, "a string", v)
	}
	return s
}

func (r *reader) textPtr(name string, v exactjson.Value) *string {
	if v.IsNull() {
		return nil
	}
	return new(r.text(name, v))
}

func (r *reader) uint64(name string, v exactjson.Value) uint64 {
	if v.IsNull() {
		return 0
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil {
		r.fault(name, "an integer from 0 to 18446744073709551615", v)
	}
	return n
}

func (r *reader) uintPtr(name string, v exactjson.Value) *uint64 {
	if v.IsNull() {
		return nil
	}
	return new(r.uint64(name, v))
}

func (r *reader) uint32(name string, v exactjson.Value) uint32 {
	if v.IsNull() {
		return 0
	}
	n, err := strconv.ParseUint(string(v), 10, 32)
	if err != nil {
		r.fault(name, "an integer from 0 to 4294967295", v)
	}
	return uint32(n)
}

func (r *reader) int64(name string, v exactjson.Value) int64 {
	if v.IsNull() {
		return 0
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		r.fault(name, "an integer of 64 bits", v)
	}
	return n
}

func (r *reader) intPtr(name string, v exactjson.Value) *int64 {
	if v.IsNull() {
		return nil
	}
	return new(r.int64(name, v))
}

func (r *reader) flag(name string, v exactjson.Value) bool {
	if v.IsNull() {
		return false
	}
	b, ok := v.Bool()
	if !ok {
		r.fault(name, "true or false", v)
	}
	return b
}

func (r *reader) texts(name string, v exactjson.Value) []string {
	var list []string
	for _, element := range r.values(name, v) {
		list = append(list, r.text(name, element))
	}
	return list
}

func (r *reader) values(name string, v exactjson.Value) []exactjson.Value {
	if v.IsNull() {
		return nil
	}
	if v.Kind() != exactjson.KindArray {
		r.fault(name, "an array", v)
		return nil
	}
	list := make([]exactjson.Value, 0, v.Len())
	for element := range v.Elements() {
		list = append(list, element)
	}
	return list
}

// object checks that v is an object. Ranging over its Members at the call, where
// the loop is inlined, allocates nothing.
func (r *reader) object(name string, v exactjson.Value) exactjson.Value {
	if !v.IsNull() && v.Kind() != exactjson.KindObject {
		r.fault(name, "an object", v)
	}
	return braced(v)
}

func (r *reader) taskError(name string, v exactjson.Value) TaskError {
	e := TaskError{Retryable: true}
	for key, v := range r.object(name, v).Members() {
		switch key {
		case "code":
			e.Code = r.text(key, v)
		case "message":
			e.Message = r.text(key, v)
		case "retryable":
			e.Retryable = v.IsNull() || r.flag(key, v)
		case "details":
			if !v.IsNull() {
				e.Details = v
			}
		}
	}
	return e
}

func (r *reader) taskErrorPtr(name string, v exactjson.Value) *TaskError {
	if v.IsNull() {
		return nil
	}
	return new(r.taskError(name, v))
}

func (r *reader) parent(name string, v exactjson.Value) *ParentRef {
	if v.IsNull() {
		return nil
	}
	p := &ParentRef{}
	for key, v := range r.object(name, v).Members() {
		switch key {
		case "execution_id":
			p.ExecutionID = r.text(key, v)
		case "step":
			p.Step = r.text(key, v)
		}
	}
	return p
}
