package blackbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"perigee/sdk/go/client"
	"perigee/store"
)

// family has a parent that goes on whatever becomes of its children.
var family = []string{`
name: quick
version: "1.0.0"
steps: [ { id: value, compute: "1 + 1" } ]
output: "${steps.value.output}"
`, `
name: failing
version: "1.0.0"
steps: [ { id: no, fail: { code: NO, message: no } } ]
`, `
name: late
version: "1.0.0"
timeout: 20ms
steps: [ { id: nap, sleep: 1h } ]
`, `
name: endless
version: "1.0.0"
signals: { go: {} }
steps: [ { id: wait, await: go, timeout: 1h } ]
`, `
name: parent
version: "1.0.0"
timeout: 1h
steps:
  - parallel:
      - { id: quick, workflow: quick@1.0.0 }
      - { id: failing, workflow: failing@1.0.0, catch: [ { output: "${error.code}" } ] }
      - { id: late, workflow: late@1.0.0, catch: [ { output: "${error.code}" } ] }
      - { id: cancelled, workflow: endless@1.0.0, catch: [ { codes: [CHILD_CANCELLED], output: "${error.code}" } ] }
      - { id: outlasted, workflow: endless@1.0.0, timeout: 30ms, catch: [ { codes: [TIMEOUT], output: "${error.code}" } ] }
      - { id: many, for: "[1, 2, 3]", workflow: quick@1.0.0 }
output:
  - "${steps.quick.output}"
  - "${steps.failing.output}"
  - "${steps.late.output}"
  - "${steps.cancelled.output}"
  - "${steps.outlasted.output}"
  - "${steps.many.output}"
`}

const familyOutput = `[2,"NO","CHILD_TIMED_OUT","CHILD_CANCELLED","TIMEOUT",[2,2,2]]`

func (e *env) deployFamily() {
	e.Helper()
	for _, source := range family {
		e.deploy(source)
	}
}

// cancelChild cancels the child that only a cancellation ends.
func (e *env) cancelChild(api *client.Client, parent string) {
	e.Helper()
	_, err := api.Cancel(e.ctx(), parent+".cancelled", "not needed")
	if err != nil {
		e.Errorf("cancel the child of %s: %v", parent, err)
	}
}

func TestChildren_WhateverBecomesOfThemTheParentGoesOn(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deployFamily()
		id := e.start("parent", "", "")
		e.cancelChild(e.api, id)
		s := e.end(id, client.Completed)
		if string(s.Output) != familyOutput {
			e.Errorf("output %s, want %s", s.Output, familyOutput)
		}
		e.end("parent.outlasted", client.Cancelled)
	})
}

// flaky is a database that errs at random: calls fail before they do anything,
// and writes fail after they are done.
type flaky struct {
	store.Store
	on *atomic.Bool
}

func (f flaky) errs() bool { return f.on.Load() && rand.IntN(8) == 0 }

var (
	errAway    = fmt.Errorf("the test's database is away: %w", store.ErrUnavailable)
	errUnknown = fmt.Errorf("the test's connection is lost: %w", store.ErrUnknownOutcome)
)

func (f flaky) Load(ctx context.Context, r store.LoadRequest) (store.Loaded, error) {
	if f.errs() {
		return store.Loaded{}, errAway
	}
	return f.Store.Load(ctx, r)
}

func (f flaky) Commit(ctx context.Context, c store.Commit) error {
	if f.errs() {
		return errAway
	}
	err := f.Store.Commit(ctx, c)
	if err == nil && f.errs() {
		return errUnknown
	}
	return err
}

func (f flaky) WithHeadLocked(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	if f.errs() {
		return errAway
	}
	err := f.Store.WithHeadLocked(ctx, r, decide)
	if err == nil && f.errs() {
		return errUnknown
	}
	return err
}

func (f flaky) Claim(ctx context.Context, r store.ClaimRequest) (store.Claimed, error) {
	if f.errs() {
		return store.Claimed{}, errAway
	}
	c, err := f.Store.Claim(ctx, r)
	if err == nil && f.errs() {
		return store.Claimed{}, errUnknown
	}
	return c, err
}

func (f flaky) Due(ctx context.Context, r store.DueRequest) (store.Due, error) {
	if f.errs() {
		return store.Due{}, errAway
	}
	return f.Store.Due(ctx, r)
}

func (f flaky) Outbox(ctx context.Context, source string, limit int) ([]store.Message, error) {
	if f.errs() {
		return nil, errAway
	}
	return f.Store.Outbox(ctx, source, limit)
}

func (f flaky) DeleteMessages(ctx context.Context, ids []string) error {
	if f.errs() {
		return errAway
	}
	return f.Store.DeleteMessages(ctx, ids)
}

func TestChildren_NoParentIsForgottenWhileTheDatabaseErrs(t *testing.T) {
	onDatabases(t, func(t *testing.T, db testDatabase) {
		var on atomic.Bool
		s := settings{disturb: func(st store.Store) store.Store { return flaky{st, &on} }}
		e := newEnv(t, inProcess{}, db, s)
		e.errorsExpected = true
		e.deployFamily()
		on.Store(true)
		patient := newClient(e.T, e.server.URL(), patience)
		var ids []string
		for i := range 8 {
			id := fmt.Sprintf("p-%d", i)
			if _, err := patient.Start(e.ctx(), client.StartRequest{Workflow: "parent", ExecutionID: id}); err != nil {
				e.Fatal(err)
			}
			e.cancelChild(patient, id)
			ids = append(ids, id)
		}
		for _, id := range ids {
			s, err := patient.Wait(e.ctx(), id)
			if err != nil {
				e.Fatalf("%s: %v", id, err)
			}
			if string(s.Output) != familyOutput {
				e.Errorf("%s: output %s, want %s", id, s.Output, familyOutput)
			}
		}
		on.Store(false)
		for _, line := range e.server.log().lines("ERROR") {
			var entry struct{ Cause, Error, Code string }
			if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Cause == "" && entry.Error == "" {
				e.Errorf("the log tells no cause: %s", line)
			}
			if entry.Code == "INTERNAL" {
				e.Errorf("an error of the database was called a fault of ours: %s", line)
			}
		}
	})
}

func TestChildren_ParentThatAbortsTakesThemAlong(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deployFamily()
		id := e.start("parent", "", "")
		if _, err := e.api.Cancel(e.ctx(), id, "enough"); err != nil {
			e.Fatal(err)
		}
		e.end(id, client.Cancelled)
		for _, child := range []string{"cancelled", "outlasted"} {
			s := e.end(id+"."+child, client.Cancelled)
			if s.Parent == nil || s.Parent.ExecutionID != id {
				e.Errorf("the parent of %s is %+v", s.ID, s.Parent)
			}
		}
	})
}

// TestChildren_CountEvenWithoutAnyTick: every end of a child reaches its
// parent in the calls themselves.
func TestChildren_CountEvenWithoutAnyTick(t *testing.T) {
	everyDatabaseWithClock(t, func(e *env, _ *clock) {
		e.deployFamily()
		e.deploy(`
name: plain
version: "1.0.0"
steps: [ { id: one, workflow: quick@1.0.0 }, { id: two, workflow: quick@1.0.0 } ]
output: [ "${steps.one.output}", "${steps.two.output}" ]
`)
		s, err := e.api.Start(e.ctx(), client.StartRequest{Workflow: "plain", Wait: 5 * time.Second})
		if err != nil || s.Status != client.Completed {
			e.Errorf("got %+v, %v", s, errors.Unwrap(err))
		}
	})
}
