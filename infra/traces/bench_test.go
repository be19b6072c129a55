package traces

import (
	"encoding/json"
	"testing"

	"perigee/engine"
)

// What a call does for each span; the rest is the sender's.
func BenchmarkSpan(b *testing.B) {
	e := engine.Ended{
		ExecutionID: "order-1", RootID: "order-1", Workflow: "order", WorkflowVersion: "1.0.0", StartMS: 1, EndMS: 2,
		Attempt: &engine.EndedAttempt{Unit: "charge", Calls: "payments.charge", Number: 1, WorkerID: "worker-1", Outcome: engine.AttemptSucceeded},
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(spanOf(e)); err != nil {
			b.Fatal(err)
		}
	}
}
