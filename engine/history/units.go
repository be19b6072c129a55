package history

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strconv"
	"strings"

	"perigee/engine/exactjson"
)

// Unit is the unit under key, nil if the history does not speak of it. The unit
// stays as it is; a later Apply puts another one in its place.
func (s *State) Unit(key string) *Unit {
	if u, ok := s.units.Get(key); ok {
		return &u.Unit
	}
	return nil
}

func (s *State) has(key string) bool {
	_, ok := s.units.Get(key)
	return ok
}

// Units yields the units with their keys, in the byte order of the keys.
func (s *State) Units() iter.Seq2[string, *Unit] {
	return s.unitsFrom("")
}

func (s *State) unitsFrom(key string) iter.Seq2[string, *Unit] {
	return func(yield func(string, *Unit) bool) {
		s.units.Ascend(key, func(key string, u *unit) bool { return yield(key, &u.Unit) })
	}
}

// Result is what a worker reports with a token: an output or, where Error is
// set, a failure.
type Result struct {
	Output       exactjson.Value // after the defaults of its contract
	Error        *TaskError
	RetryAfterMS *int64
}

// AttemptOf is the attempt that a token was issued for.
func (u *Unit) AttemptOf(token string) (attempt uint32, issued bool) {
	for _, t := range slices.Backward(u.Tokens) {
		if t.Token == token {
			return t.Attempt, true
		}
	}
	return 0, false
}

// FailedByEngine says of a unit whose attempt failed that the engine found the
// failure: the last token that was issued reported none.
func (u *Unit) FailedByEngine() bool {
	return len(u.Tokens) == 0 || u.Tokens[len(u.Tokens)-1].Failure == ""
}

// ChildSession begins the worker session of an attempt that is a child execution.
const ChildSession = "child:"

// WithChild reports whether the latest attempt is, or was, a child execution.
func (u *Unit) WithChild() bool {
	return u.WorkerSession != nil && strings.HasPrefix(*u.WorkerSession, ChildSession)
}

// Recorded reports whether this very token recorded a result equal to r: then
// the report is a repeated one. Outputs and details are compared as JSON, with
// numbers by value and keys in any order.
//
// A success is compared with the unit's output and a failure with the digest
// that the fold took, since its error need not be the unit's last.
func (u *Unit) Recorded(token string, r Result) bool {
	if token == "" {
		return false
	}
	if r.Error == nil {
		return u.SucceededBy == token && exactjson.Equal(u.Output, r.Output.OrNull())
	}
	digest := failureDigest(*r.Error, r.RetryAfterMS)
	return slices.ContainsFunc(u.Tokens, func(t IssuedToken) bool { return t.Token == token && t.Failure == digest })
}

// recordFailure notes at its token what a worker reported. The list is copied:
// older copies of the unit share it.
func (u *Unit) recordFailure(e StepAttemptFailed) {
	for i, t := range slices.Backward(u.Tokens) {
		if t.Token == e.Token {
			u.Tokens = slices.Clone(u.Tokens)
			u.Tokens[i].Failure = failureDigest(e.Error, e.RetryAfterMS)
			return
		}
	}
}

// failureDigest is the hex SHA-256 of a failure; equal ones have the same.
func failureDigest(e TaskError, retryAfterMS *int64) string {
	text := make([]byte, 0, 256)
	text = exactjson.AppendQuoted(text, e.Code)
	text = exactjson.AppendQuoted(text, e.Message)
	text = strconv.AppendBool(text, e.Retryable)
	if retryAfterMS != nil {
		text = strconv.AppendInt(append(text, '+'), *retryAfterMS, 10)
	}
	if !e.Details.IsNull() {
		text = append(append(text, ' '), exactjson.Hash(e.Details)...)
	}
	digest := sha256.Sum256(text)
	return string(hex.AppendEncode(text[:0], digest[:]))
}
