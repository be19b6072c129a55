package simulation

import "perigee/engine/history"

// MustReach lists what a full run has to come by: every event type that this
// release writes, and every rule that a count tells apart.
func MustReach() []string {
	var must []string
	for _, t := range history.Types {
		must = append(must, "event: "+string(t))
	}
	return append(must,
		"rule: redelivery", "rule: another attempt", "rule: child started",
		"rule: success while winding down", "rule: late success taken", "rule: output failed",
		"rule: stale duplicate", "rule: stale failure", "rule: caught DECLINED", "rule: caught EXPRESSION_ERROR",
		"rule: compensation failed", "rule: compensation cancelled", "rule: compensation timed_out",
		"rule: handlers failure", "rule: handlers cancel", "rule: handlers timeout",
		"failure: TIMEOUT", "failure: QUEUE_TIMEOUT", "failure: EXPRESSION_ERROR", "failure: INPUT_CONTRACT_VIOLATION",
		"failure: OUTPUT_CONTRACT_VIOLATION", "failure: SIGNAL_TIMEOUT", "failure: LIMIT_EXCEEDED", "failure: WORKER_LOST",
		"failure: UNCERTAIN", "failure: PAYLOAD_TOO_LARGE", "failure: HTTP_ERROR", "failure: REJECTED",
		"failure: CHILD_START_FAILED", "failure: CHILD_CANCELLED", "failure: CHILD_TIMED_OUT",
		"uncertain: worker", "uncertain: worker unregistered", "uncertain: never received", "uncertain: did not stop in time",
		"end: failed, compensation none", "end: failed, compensation completed", "end: failed, compensation failed",
		"end: cancelled, compensation completed", "end: timed out, compensation completed",
		"fault: unavailable", "fault: outcome unknown", "fault: crash", "fault: poll answer lost", "fault: next answer lost",
		"told: succeeded", "told: failed", "told: cancelled", "told: superseded", "told: COMPLETED", "told: TIMED_OUT",
		"race: lost", "race: another call in between", "heartbeat: cancel",
		"ack: accepted", "ack: stale attempt", "ack: duplicate result; step already resolved",
		"ack: output violates the task contract", "ack: unknown token (execution finished or token invalid)",
	)
}
