package history

import (
	"errors"
	"fmt"

	"perigee/engine/exactjson"
)

// maxDepth is how deep an event may nest: the deepest payload inside it.
const maxDepth = exactjson.MaxDepth + 4

// DecodeRecord reads the full JSON form of an event. The text is checked
// strictly (exactjson.Parse) and copied once; payloads are slices of the copy.
// A type that is not known gives Unknown, members that a type does not have are
// ignored, and members that are missing are zero (retryable: true).
func DecodeRecord(text []byte) (Record, error) {
	v, err := exactjson.ParseDepth(text, maxDepth)
	if err != nil {
		return Record{}, fmt.Errorf("decode event: %w", err)
	}
	return decodeRecord(v)
}

func decodeRecord(v exactjson.Value) (Record, error) {
	if v.Kind() != exactjson.KindObject {
		return Record{}, fmt.Errorf("decode event: expected an object, got %s", v.Kind())
	}
	var m members
	m.slice(v)
	r := Record{Seq: m.uint64(mSeq), TimestampMS: m.int64(mTimestampMS)}
	typ := Type(m.text(mType))
	if typ == "" && m.err == nil {
		m.err = errors.New(`expected a member "type" that names the event`)
	}
	r.Event = m.event(typ)
	if r.Event == nil {
		r.Event = Unknown{Name: typ, Data: withoutHead(v)}
	}
	if m.err != nil {
		return Record{}, fmt.Errorf("decode event %d %s: %w", r.Seq, typ, m.err)
	}
	return r, nil
}

// withoutHead is what AppendFields would have given for an event that is not
// known: its members without those that stand beside them in a store.
func withoutHead(v exactjson.Value) exactjson.Value {
	var own []exactjson.Member
	for name, v := range braced(v).Members() {
		switch memberOf(name) {
		case mSeq, mTimestampMS, mType:
		default:
			own = append(own, exactjson.Member{Key: name, Value: v})
		}
	}
	return exactjson.Object(own)
}

// DecodeFields reads what AppendFields wrote. The text is taken as it is and
// not checked again; payloads are slices of it, so nothing is copied.
func DecodeFields(typ Type, fields string) (Event, error) {
	v := exactjson.Value(fields)
	if braced(v).Absent() {
		return nil, fmt.Errorf("decode %s: expected the text of a JSON object, got %d bytes that are none", typ, len(v))
	}
	var m members
	m.slice(v)
	e := m.event(typ)
	if m.err != nil {
		return nil, fmt.Errorf("decode %s: %w", typ, m.err)
	}
	if e == nil {
		return Unknown{Name: typ, Data: v}, nil
	}
	return e, nil
}

// event makes the event of a type from its members, nil for an unknown type.
func (m *members) event(typ Type) Event {
	switch typ {
	case TypeWorkflowCreated:
		return WorkflowCreated{m.text(mWorkflow), m.text(mVersion), m.text(mDefinitionHash), m.raw[mInput], m.parent()}
	case TypeWorkflowStarted:
		return WorkflowStarted{}
	case TypeStepScheduled:
		return StepScheduled{m.text(mStep), m.uint32(mAttempt), m.raw[mInput], m.text(mIdempotencyKey), m.flag(mRedelivery)}
	case TypeStepFanOut:
		return StepFanOut{m.text(mStep), m.values(memberNames[mItems], m.raw[mItems])}
	case TypeStepSkipped:
		return StepSkipped{m.text(mStep), m.text(mReason)}
	case TypeStepDispatched:
		return StepDispatched{
			m.text(mStep), m.uint32(mAttempt), m.text(mToken),
			m.text(mWorkerID), m.text(mWorkerSession), m.intPtr(mDeadlineMS),
		}
	case TypeStepSucceeded:
		return StepSucceeded{m.text(mStep), m.uint32(mAttempt), m.raw[mOutput], m.text(mToken)}
	case TypeStepAttemptFailed:
		return StepAttemptFailed{m.text(mStep), m.uint32(mAttempt), m.taskError(), m.text(mToken), m.intPtr(mRetryAfterMS)}
	case TypeStepAttemptUncertain:
		return StepAttemptUncertain{m.text(mStep), m.uint32(mAttempt), m.text(mReason)}
	case TypeRetryScheduled:
		return RetryScheduled{m.text(mStep), m.uint32(mNextAttempt), m.int64(mDelayMS), m.int64(mFireAtMS)}
	case TypeStepFailed:
		return StepFailed{m.text(mStep), m.taskError()}
	case TypeStepRecovered:
		return StepRecovered{m.text(mStep), m.taskError(), m.raw[mOutput]}
	case TypeStepCancelled:
		return StepCancelled{m.text(mStep)}
	case TypeTimerStarted:
		return TimerStarted{m.text(mStep), m.int64(mFireAtMS)}
	case TypeTimerFired:
		return TimerFired{m.text(mStep)}
	case TypeStaleResultIgnored:
		return StaleResultIgnored{m.text(mStep), m.text(mToken), m.text(mOutcome)}
	case TypeAttemptProgress:
		return AttemptProgress{m.text(mStep), m.text(mToken), m.raw[mDetails]}
	}
	return m.wideEvent(typ)
}

// wideEvent makes the events that concern signals and the whole execution.
func (m *members) wideEvent(typ Type) Event {
	switch typ {
	case TypeSignalReceived:
		return SignalReceived{m.text(mName), m.raw[mPayload], m.text(mSignalID)}
	case TypeSignalAwaitStarted:
		return SignalAwaitStarted{m.text(mStep), m.text(mSignal), m.intPtr(mDeadlineMS)}
	case TypeSignalDelivered:
		return SignalDelivered{m.text(mStep), m.uint64(mSignalSeq)}
	case TypeCancelRequested:
		return CancelRequested{m.text(mReason)}
	case TypeWorkflowTimeoutReached:
		return WorkflowTimeoutReached{}
	case TypeLimitExceeded:
		return LimitExceeded{m.text(mLimit), m.text(mMessage)}
	case TypeCompensationStarted:
		return CompensationStarted{m.text(mReason), m.texts(mSteps)}
	case TypeCompensationCompleted:
		return CompensationCompleted{}
	case TypeCompensationFailed:
		return CompensationFailed{m.text(mStep), m.taskError()}
	case TypeHandlersStarted:
		return HandlersStarted{m.text(mKind), m.outcome()}
	case TypeWorkflowCompleted:
		return WorkflowCompleted{m.raw[mOutput]}
	case TypeWorkflowFailed:
		return WorkflowFailed{m.taskError(), m.outcome()}
	case TypeWorkflowCancelled:
		return WorkflowCancelled{m.outcome()}
	case TypeWorkflowTimedOut:
		return WorkflowTimedOut{m.outcome()}
	}
	return nil
}
