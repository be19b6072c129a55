package expr

import (
	"errors"
	"fmt"

	"cel.dev/cel-go/interpreter"
)

// explain says in our words why an evaluation failed.
func (e *expression) explain(err error, act *activation, limit uint64) string {
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return fmt.Sprintf("the evaluation costs more than %d units; it walks lists that are too long for an expression, do this work in a task", limit)
	}
	return err.Error()
}
