package httpapi_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/functions/httpapi"
	"perigee/functions/httpapi/httpapitest"
	"perigee/store"
)

// fakeEngine answers with what a test put in and keeps the last request.
type fakeEngine struct {
	mu    sync.Mutex
	err   error // of every call
	last  any   // what the last call was asked
	calls int

	started engine.Started
	page    engine.HistoryPage
	acks    []engine.Ack
	panics  bool
	secret  string // what a panic would tell
}

var _ httpapi.Engine = (*fakeEngine)(nil)

func (f *fakeEngine) note(request any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics {
		panic("password=" + f.secret)
	}
	f.last, f.calls = request, f.calls+1
	return f.err
}

// list is a request without a type of its own.
type list []any

var (
	taskError = history.TaskError{Code: "OUT_OF_STOCK", Message: "no \"lamps\" left", Details: `{"sku":"a<b"}`}
	task      = engine.Assignment{
		Token: "bGFtcA.secret", ExecutionID: "order-1", Workflow: "order", WorkflowVersion: "1.0.0", StepID: "ship[0]",
		TaskName: "shipping.ship", ContractVersion: "1.0.0", Input: `{"n":18446744073709551615.50,"z":1,"a":"\u0000"}`,
		IdempotencyKey: "order-1/ship[0]", Attempt: 1, DeadlineMS: 1790000000000, TimeoutMS: 30000,
	}
)

func state(records ...history.Event) *history.State {
	events := append([]history.Event{history.WorkflowCreated{Workflow: "order", Version: "1.0.0", DefinitionHash: "sha256:ab", Input: `{"n":1.50}`}, history.WorkflowStarted{}}, records...)
	var list []history.Record
	for i, e := range events {
		list = append(list, history.Record{Seq: uint64(i + 1), TimestampMS: 1790000000000 + int64(i), Event: e})
	}
	return history.Fold("order-1", list)
}

func richState() *history.State {
	deadline, session := int64(1790000030000), "ab12"
	return state(
		history.StepScheduled{Step: "reserve", Attempt: 1, Input: `{}`, IdempotencyKey: "order-1/reserve"},
		history.StepDispatched{Step: "reserve", Attempt: 1, Token: "cd34", WorkerID: "w", WorkerSession: session, DeadlineMS: &deadline},
		history.StepSucceeded{Step: "reserve", Attempt: 1, Output: `{"id":1}`, Token: "cd34"},
		history.SignalReceived{Name: "approval", Payload: `{"approved":true}`, SignalID: "s-1"},
		history.StepFanOut{Step: "ship", Items: []exactjson.Value{"1", "2"}},
		history.StepFailed{Step: "ship", Error: taskError},
		history.CompensationStarted{Reason: history.ReasonFailed, Steps: []string{"reserve"}},
		history.HandlersStarted{Kind: history.HandlerFailure, Compensation: history.CompensationDone},
	)
}

func (f *fakeEngine) RegisterDefinition(_ context.Context, source []byte, format definition.Format) (engine.Registered, error) {
	return engine.Registered{Name: "order", Version: "1.0.0", Hash: "sha256:ab", Created: string(source) != "same", Warnings: []definition.Fault{warning}}, f.note(list{string(source), format})
}

var warning = definition.Fault{Code: "NO_TIMEOUT", Severity: definition.SeverityWarning, Line: 1, Column: 2, Path: "/steps/0", Message: "no timeout", Hint: "give one"}

func (f *fakeEngine) ValidateDefinition(_ context.Context, source []byte, format definition.Format) ([]definition.Fault, error) {
	if string(source) == "bad" {
		return []definition.Fault{warning, {Code: "UNKNOWN_KEY", Severity: definition.SeverityError}}, f.note(list{string(source), format})
	}
	return nil, f.note(list{string(source), format})
}

func (f *fakeEngine) Definitions(context.Context) ([]engine.DefinitionInfo, error) {
	info := engine.DefinitionInfo{Name: "order", Version: "1.0.0", Hash: "sha256:ab", Retired: true, CreatedAtMS: 1790000000000}
	return []engine.DefinitionInfo{info, info}, f.note(nil)
}

func (f *fakeEngine) Definition(_ context.Context, name, version string) (engine.DefinitionInfo, error) {
	return engine.DefinitionInfo{Name: name, Version: "1.0.0", Hash: "sha256:ab", Description: "orders", Canonical: `{"name":"order"}`}, f.note(list{name, version})
}

func (f *fakeEngine) Graph(_ context.Context, name, version string) (definition.Graph, error) {
	return definition.Graph{Nodes: []definition.GraphNode{{ID: name, Kind: "task", Task: "a.b", For: true}}, Edges: []definition.GraphEdge{{From: name, To: name}}}, f.note(list{name, version})
}

func (f *fakeEngine) Retire(_ context.Context, name, version string) error {
	return f.note(list{name, version})
}

func (f *fakeEngine) Start(_ context.Context, req engine.StartRequest) (engine.Started, error) {
	out := f.started
	if out.ExecutionID == "" {
		out = engine.Started{ExecutionID: "order-1", Created: true}
	}
	return out, f.note(req)
}

func (f *fakeEngine) Execution(_ context.Context, id string, wait time.Duration) (*history.State, error) {
	return richState(), f.note(list{id, wait})
}

func (f *fakeEngine) List(_ context.Context, req engine.ListRequest) (engine.ListPage, error) {
	return engine.ListPage{
		Executions: []store.Head{
			{ID: "order-1", Workflow: "order", Version: "1.0.0", Status: "RUNNING", LastSeq: 4, CreatedAtMS: 1, LastAtMS: 2, DueAtMS: 5, ErrorCount: 2, ParentID: "p", ParentStep: "child[0]"},
			{ID: "order-0", Workflow: "order", Version: "1.0.0", Status: "FAILED", FinishedAtMS: 9, Tags: map[string]string{"z": "1", "a": "2"}},
		},
		NextCursor: "next",
	}, f.note(req)
}

func (f *fakeEngine) History(_ context.Context, req engine.HistoryRequest) (engine.HistoryPage, error) {
	page := f.page
	if page.Events == nil {
		page = engine.HistoryPage{NextAfterSeq: 2, Events: []store.Event{
			{Seq: 1, Type: "WorkflowCreated", AtMS: 1790000000000, Data: `{"workflow":"order","input":18446744073709551615.50}`},
			{Seq: 2, Type: "WorkflowStarted", AtMS: 1790000000000, Data: `{}`},
		}}
	}
	return page, f.note(req)
}

func (f *fakeEngine) Signal(_ context.Context, id, name string, payload exactjson.Value, signalID string) (uint64, error) {
	return 7, f.note(list{id, name, payload, signalID})
}

func (f *fakeEngine) Cancel(_ context.Context, id, reason string) (*history.State, error) {
	return state(history.CancelRequested{Reason: reason}, history.WorkflowCancelled{Compensation: history.CompensationNone}), f.note(list{id, reason})
}

func (f *fakeEngine) Query(_ context.Context, id, name string) (exactjson.Value, error) {
	return `[1.0,2]`, f.note(list{id, name})
}

func (f *fakeEngine) RegisterWorker(_ context.Context, req engine.RegisterRequest) (engine.WorkerRegistered, error) {
	return engine.WorkerRegistered{SessionID: "mine", HeartbeatInterval: 10 * time.Second, SessionTimeout: 30 * time.Second}, f.note(req)
}

func (f *fakeEngine) Poll(_ context.Context, req engine.PollRequest) (engine.Polled, error) {
	return engine.Polled{Tasks: []engine.Assignment{task, task}, NextPoll: 1500 * time.Millisecond}, f.note(req)
}

func (f *fakeEngine) Heartbeat(_ context.Context, sessionID string, tokens []string) ([]string, error) {
	return []string{"bGFtcA.secret"}, f.note(list{sessionID, tokens})
}

func (f *fakeEngine) Unregister(_ context.Context, sessionID string) error {
	return f.note(list{sessionID})
}

func (f *fakeEngine) Results(_ context.Context, req engine.ResultsRequest) (engine.ResultsAnswer, error) {
	acks := f.acks
	if acks == nil {
		for _, r := range req.Results {
			acks = append(acks, engine.Ack{Token: r.Token, Accepted: r.TooLarge == "" && r.Malformed == "", Reason: "output violates the task contract"})
		}
	}
	out := engine.ResultsAnswer{Acks: acks}
	switch req.NextSession {
	case "":
	case "gone":
		out.NextError = "UNKNOWN_SESSION"
	default:
		out.Next = []engine.Assignment{task}
	}
	return out, f.note(req)
}

func (f *fakeEngine) Progress(_ context.Context, token string, details exactjson.Value) (bool, bool, error) {
	return true, false, f.note(list{token, details})
}

func (f *fakeEngine) Workers(context.Context) ([]engine.WorkerInfo, error) {
	return []engine.WorkerInfo{{WorkerID: "w", Runtime: "go", Contracts: []store.Contract{{TaskName: "a", ContractVersion: "1.0.0"}}, Online: true, Sessions: 1}}, f.note(nil)
}

// Authenticate knows one token for each role, named as the role.
func (f *fakeEngine) Authenticate(_ context.Context, token string) (engine.Identity, error) {
	switch token {
	case "admin", "operator", "reader":
		return engine.Identity{Name: "t", Role: token}, nil
	case "worker":
		return engine.Identity{Name: "t", Role: token, WorkerIDs: []string{"w"}, Tasks: []string{"payments.*", "mail"}}, nil
	}
	return engine.Identity{}, &engine.Error{Code: engine.Unauthenticated, Message: "this token is not known"}
}

// SessionWorker: the session "mine" is the worker w's, "gone" is unknown.
func (f *fakeEngine) SessionWorker(_ context.Context, sessionID string) (string, error) {
	switch sessionID {
	case "mine":
		return "w", nil
	case "gone":
		return "", &engine.Error{Code: engine.UnknownSession, Message: "register again"}
	}
	return "other", nil
}

// TokenWorker: tokens that start with "mine" are the worker w's.
func (f *fakeEngine) TokenWorker(token string) (string, bool) {
	switch {
	case len(token) >= 4 && token[:4] == "mine":
		return "w", true
	case token == "nonsense":
		return "", false
	}
	return "other", true
}

// newServer is an open server over a fake engine.
func newServer(t testing.TB) (*httpapitest.Server, *fakeEngine) {
	t.Helper()
	f := &fakeEngine{}
	return httpapitest.NewServer(t, httpapi.Options{Engine: f, Open: true, HoldPolls: true}), f
}

// newGuarded is one that asks for tokens.
func newGuarded(t testing.TB) (*httpapitest.Server, *fakeEngine) {
	t.Helper()
	f := &fakeEngine{}
	return httpapitest.NewServer(t, httpapi.Options{Engine: f}), f
}
