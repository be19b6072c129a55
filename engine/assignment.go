package engine

import (
	"strconv"

	"perigee/engine/exactjson"
)

// AppendJSON appends the assignment as workers get it, from a poll, with a
// result's answer or by a push.
func (a *Assignment) AppendJSON(dst []byte) []byte {
	for _, m := range []struct{ name, text string }{
		{`{"token":`, a.Token},
		{`,"execution_id":`, a.ExecutionID},
		{`,"workflow":`, a.Workflow},
		{`,"workflow_version":`, a.WorkflowVersion},
		{`,"step_id":`, a.StepID},
		{`,"task_name":`, a.TaskName},
		{`,"contract_version":`, a.ContractVersion},
	} {
		dst = exactjson.AppendQuoted(append(dst, m.name...), m.text)
	}
	dst = append(append(dst, `,"input":`...), a.Input.OrNull()...)
	dst = exactjson.AppendQuoted(append(dst, `,"idempotency_key":`...), a.IdempotencyKey)
	dst = strconv.AppendUint(append(dst, `,"attempt":`...), uint64(a.Attempt), 10)
	dst = strconv.AppendBool(append(dst, `,"redelivery":`...), a.Redelivery)
	if a.DeadlineMS != 0 {
		dst = strconv.AppendInt(append(dst, `,"deadline_ms":`...), a.DeadlineMS, 10)
	}
	if a.TimeoutMS != 0 {
		dst = strconv.AppendInt(append(dst, `,"timeout_ms":`...), a.TimeoutMS, 10)
	}
	if a.TraceParent != "" {
		dst = exactjson.AppendQuoted(append(dst, `,"traceparent":`...), a.TraceParent)
	}
	return append(dst, '}')
}
