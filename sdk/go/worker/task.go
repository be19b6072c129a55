package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"perigee/sdk/go/client"
)

// Task is one attempt handed to this worker. Input is JSON as it came; Attempt
// counts from 1; Redelivery says that this same attempt was handed out before
// and its outcome is unknown; IdempotencyKey is the same for all attempts.
type Task struct {
	*client.Task
	held *holding
	run  *run
}

// Decode reads the input into v. An input that does not fit is a failure that
// no repetition mends: INPUT_INVALID, not retryable.
func (t *Task) Decode(v any) error {
	if err := json.Unmarshal(t.Input, v); err != nil {
		return NonRetryable(Fail("INPUT_INVALID", fmt.Sprintf("input of %s: %v", t.TaskName, err), nil))
	}
	return nil
}

// Progress says that the task is under way and what it is at; details are
// encoded as JSON and kept in the history, at most one a second. Where the
// answer is that the task should stop, its context is cancelled. An error only
// says that the server did not hear.
func (t *Task) Progress(ctx context.Context, details any) error {
	encoded, err := client.Encode(details)
	if err != nil {
		return fmt.Errorf("encode progress of %s: %w", t.StepID, err)
	}
	_, cancel, err := t.run.worker.once.Progress(ctx, t.Token, encoded)
	if cancel {
		t.held.cancel(ErrCancelled)
	}
	return err
}
