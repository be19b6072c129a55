package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"perigee/engine/decide"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/engine/schema"
	"perigee/store"
)

// isExecutionID reports whether a text can name an execution: 1 to 200 letters,
// digits or - _ . : of ASCII.
func isExecutionID(text string) bool {
	for _, c := range []byte(text) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' && c != ':' {
			return false
		}
	}
	return len(text) >= 1 && len(text) <= 200
}

// notOfID says of a text that can name no execution what it has: the first
// character that is not allowed, or its length.
func notOfID(text string) string {
	for i, r := range text {
		if !isExecutionID(string(r)) {
			return fmt.Sprintf("%q at byte %d", r, i)
		}
	}
	return fmt.Sprintf("%d bytes", len(text))
}

// Bounds of an execution's tags.
const (
	maxTags     = 32
	maxTagBytes = 256 // of a name, and of a value
)

// Start starts an execution. The same id with the same workflow and input
// again is a no-op. Errors: InvalidRequest, InvalidInput, InvalidExecutionID,
// WorkflowNotFound, ExecutionExists, PayloadTooLarge, ResourceExhausted.
func (e *Engine) Start(ctx context.Context, r StartRequest) (Started, error) {
	if r.ExecutionID == "" {
		r.ExecutionID = e.opts.NewID()
	} else if !isExecutionID(r.ExecutionID) {
		return Started{}, errorf(InvalidExecutionID, "an execution id has 1 to 200 letters (a-z, A-Z), digits or - _ . : — this one has %s", notOfID(r.ExecutionID))
	}
	if err := checkTags(r.Tags); err != nil {
		return Started{}, err
	}
	row, err := e.version(ctx, r.Workflow, r.Version)
	if err != nil {
		return Started{}, err
	}
	program, err := e.program(ctx, row.Hash)
	if err != nil {
		return Started{}, fromStore(err, "definition")
	}
	if r.Wait <= 0 {
		created, err := e.start(ctx, r, program)
		return Started{ExecutionID: r.ExecutionID, Created: created}, err
	}
	f := e.hub.follow(r.ExecutionID, true)
	created, err := e.start(ctx, r, program)
	if err != nil {
		e.hub.unfollow(r.ExecutionID, f)
		return Started{ExecutionID: r.ExecutionID}, err
	}
	return Started{ExecutionID: r.ExecutionID, Created: created, State: e.endOfStarted(ctx, r, created, f)}, nil
}

// endOfStarted waits for the end of an execution that was started; nil where it
// did not end in time. What was created here a moment ago needs no look.
func (e *Engine) endOfStarted(ctx context.Context, r StartRequest, created bool, f *follower) *history.State {
	began := time.Now()
	if created && e.opts.HoldPolls {
		if end := e.hold(ctx, r.ExecutionID, f, min(r.Wait, lookAgain)); end != nil {
			return end
		}
		f = e.hub.follow(r.ExecutionID, true)
	}
	state, err := e.awaitEnd(ctx, r.ExecutionID, r.Wait-time.Since(began), f)
	if err != nil || !state.Status.Terminal() {
		return nil // the start stands; whoever wants to know asks again
	}
	return state
}

func (e *Engine) start(ctx context.Context, r StartRequest, program decide.Program) (bool, error) {
	created := false
	input, refused := e.checkInput(program, r.Input)
	if full := e.roomForOne(ctx); full != nil && refused == nil {
		refused = full
	}
	err := e.do(ctx, r.ExecutionID, &job{
		tags:   r.Tags,
		create: func() decide.Program { return program },
		apply: func(m *decide.Machine, l *store.Loaded) error {
			created = m.State().LastSeq == 0
			if !created {
				return sameStart(m, r) // a start that was taken may be repeated, whatever became of the limits
			}
			if refused != nil {
				return refused
			}
			d := program.Definition
			m.Create(history.WorkflowCreated{Workflow: d.Name, Version: d.Version, DefinitionHash: d.Hash, Input: input})
			return nil
		},
	})
	if err != nil {
		return false, err
	}
	return created, nil
}

// checkInput applies the definition's defaults and its input schema.
func (e *Engine) checkInput(p decide.Program, input exactjson.Value) (exactjson.Value, error) {
	if input.IsNull() {
		input = exactjson.EmptyObject
	}
	filled, violations := p.Definition.Input.Apply(input)
	if len(violations) > 0 {
		return "", violated(InvalidInput, fmt.Sprintf("the input of %s@%s", p.Definition.Name, p.Definition.Version), violations)
	}
	return filled, e.checkPayload("the input", filled, p)
}

// checkPayload bounds what is written into a history.
func (e *Engine) checkPayload(what string, v exactjson.Value, p decide.Program) error {
	limit := e.limits.MaxPayloadBytes
	if own := p.Definition.Limits.MaxPayloadBytes; own > 0 && (limit == 0 || own < limit) {
		limit = own
	}
	if limit == 0 || len(v) <= limit {
		return nil
	}
	return errorf(PayloadTooLarge, "%s has %d bytes; the limit is %d (max_payload_bytes); keep large data elsewhere and pass a reference", what, len(v), limit)
}

// violated makes an error of schema violations, all of them in the details.
func violated(code Code, what string, violations []schema.Violation) error {
	type fault struct {
		Path    string `json:"path"`
		Message string `json:"message"`
	}
	list := make([]fault, len(violations))
	for i, v := range violations {
		list[i] = fault(v)
	}
	at := violations[0].Path
	if at == "" {
		at = "the top"
	}
	return &Error{
		Code:    code,
		Message: fmt.Sprintf("%s is not as its schema says, at %s: %s", what, at, violations[0].Message),
		Details: map[string]any{"faults": list},
	}
}

// sameStart compares a start with the execution that has its id, under that
// execution's own definition.
func sameStart(m *decide.Machine, r StartRequest) error {
	s := m.State()
	input := r.Input
	if input.IsNull() {
		input = exactjson.EmptyObject
	}
	filled, violations := m.Definition().Input.Apply(input)
	var differs []string
	if s.Workflow != r.Workflow {
		differs = append(differs, "workflow")
	}
	if r.Version != "" && s.Version != r.Version {
		differs = append(differs, "version")
	}
	if len(violations) > 0 || !exactjson.Equal(filled, s.Input) {
		differs = append(differs, "input")
	}
	if len(differs) == 0 {
		return nil
	}
	return errorf(ExecutionExists, "execution %q exists with another %s (%s@%s); use another execution_id for another execution",
		s.ID, strings.Join(differs, " and "), s.Workflow, s.Version)
}

func checkTags(tags map[string]string) error {
	if len(tags) > maxTags {
		return errorf(InvalidRequest, "an execution has at most %d tags; these are %d", maxTags, len(tags))
	}
	for name, value := range tags {
		if name == "" || len(name) > maxTagBytes || len(value) > maxTagBytes || strings.Contains(name, "=") {
			return errorf(InvalidRequest, "a tag has a name of 1 to %d bytes without `=` and a value of at most %d bytes", maxTagBytes, maxTagBytes)
		}
	}
	return nil
}

// roomForOne bounds the executions that are active at once. Starts that come
// together may overshoot a little.
func (e *Engine) roomForOne(ctx context.Context) error {
	limit := e.opts.MaxActiveExecutions
	if limit <= 0 {
		return nil
	}
	n, err := e.store.CountActive(ctx, limit)
	if err != nil {
		return fromStore(err, "executions")
	}
	if n >= limit {
		return &Error{Code: ResourceExhausted, Message: fmt.Sprintf("%d executions are active, the limit is %d (max_active_executions); try again when some have ended", n, limit), RetryAfter: retryAfter}
	}
	return nil
}
