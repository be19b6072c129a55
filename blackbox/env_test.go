package blackbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"perigee/sdk/go/client"
)

// env is a test with a server on a database of its own.
type env struct {
	*testing.T
	db     testDatabase
	set    settings
	server server
	// api calls the server once: what fails is the test's to see.
	api *client.Client
	// errorsExpected allows the server to log errors.
	errorsExpected bool
}

// everyDatabase runs a test on every kind of database, side by side.
func everyDatabase(t *testing.T, s settings, test func(*env)) {
	t.Helper()
	onDatabases(t, func(t *testing.T, db testDatabase) { test(newEnv(t, targetFor(t, s), db, s)) })
}

// onDatabases is everyDatabase for tests that start servers themselves.
func onDatabases(t *testing.T, test func(*testing.T, testDatabase)) {
	t.Helper()
	t.Parallel()
	for kind := range strings.SplitSeq(*databases, ",") {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, newDatabase(t, kind))
		})
	}
}

// newEnv starts a server and, when the test has ended, looks at what it left.
func newEnv(t *testing.T, from target, db testDatabase, s settings) *env {
	t.Helper()
	e := &env{T: t, db: db, set: s}
	opts := s.engineOptions(t, db)
	t.Cleanup(func() {
		if t.Failed() {
			return // what a test left half-done differs for no other reason
		}
		db.doctor(t, opts)
		if !e.errorsExpected {
			for _, line := range e.server.log().lines("ERROR") {
				t.Errorf("the server logged an error: %s", line)
			}
		}
	})
	e.server = from.start(t, db, s)
	e.connect()
	return e
}

// connect makes the client of the server, which is elsewhere after a restart.
func (e *env) connect() {
	e.Helper()
	e.api = newClient(e.T, e.server.URL(), client.NoRetry)
}

func newClient(t *testing.T, url string, retryFor time.Duration) *client.Client {
	t.Helper()
	c, err := client.New(url, client.Options{RetryFor: retryFor})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// crash kills the server and starts it again.
func (e *env) crash() {
	e.Helper()
	e.server.kill()
	e.server.restart()
	e.connect()
}

// ctx ends with the test, or when patience ends.
func (e *env) ctx() context.Context {
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	context.AfterFunc(ctx, cancel)
	return ctx
}

func (e *env) deploy(source string) {
	e.Helper()
	if _, err := e.api.RegisterDefinition(e.ctx(), []byte(source), client.YAML); err != nil {
		e.Fatalf("deploy: %v %+v", err, client.Faults(err))
	}
}

// start starts an execution and gives its id, which is the workflow's name
// where none is asked for.
func (e *env) start(workflow, id, input string) string {
	e.Helper()
	if id == "" {
		id = workflow
	}
	r := client.StartRequest{Workflow: workflow, ExecutionID: id}
	if input != "" {
		r.Input = json.RawMessage(input)
	}
	if _, err := e.api.Start(e.ctx(), r); err != nil {
		e.Fatalf("start %s: %v", id, err)
	}
	return id
}

// register opens a session that offers tasks at version 1.0.0.
func (e *env) register(worker string, tasks ...string) (session string) {
	e.Helper()
	r := client.RegisterRequest{WorkerID: worker, Runtime: "go"}
	for _, task := range tasks {
		r.Contracts = append(r.Contracts, client.Contract{TaskName: task, ContractVersion: "1.0.0"})
	}
	reg, err := e.api.Register(e.ctx(), r)
	if err != nil {
		e.Fatalf("register %s: %v", worker, err)
	}
	return reg.WorkerSessionID
}

// poll takes one task, waiting for it.
func (e *env) poll(session string) *client.Task {
	e.Helper()
	for ctx := e.ctx(); ; {
		p, err := e.api.Poll(ctx, client.PollRequest{SessionID: session, Wait: 5 * time.Second})
		if err != nil {
			e.Fatalf("poll: %v", err)
		}
		if len(p.Tasks) == 1 {
			return p.Tasks[0]
		}
		// Where polls are not held one is told when to come again.
		time.Sleep(min(50*time.Millisecond, time.Duration(p.NextPollMS)*time.Millisecond))
	}
}

// pollNone asserts that there is no task.
func (e *env) pollNone(session string) {
	e.Helper()
	p, err := e.api.Poll(e.ctx(), client.PollRequest{SessionID: session})
	if err != nil {
		e.Fatalf("poll: %v", err)
	}
	for _, t := range p.Tasks {
		e.Errorf("there is a task for %s, attempt %d, and there should be none", t.StepID, t.Attempt)
	}
}

// complete reports a success; the answer may be anything.
func (e *env) complete(t *client.Task, output string) client.Reported {
	e.Helper()
	r, err := e.api.Complete(e.ctx(), t.Token, json.RawMessage(output), "")
	if err != nil {
		e.Fatalf("complete %s: %v", t.StepID, err)
	}
	return r
}

// done is complete that has to be accepted.
func (e *env) done(t *client.Task, output string) {
	e.Helper()
	if r := e.complete(t, output); !r.Accepted {
		e.Fatalf("complete %s: not accepted: %s", t.StepID, r.Reason)
	}
}

// fail reports a failure; the answer may be anything.
func (e *env) fail(t *client.Task, code string, retryable bool) client.Reported {
	e.Helper()
	r, err := e.api.Fail(e.ctx(), t.Token, client.TaskError{Code: code, Message: "it " + code, Retryable: retryable}, nil, "")
	if err != nil {
		e.Fatalf("fail %s: %v", t.StepID, err)
	}
	return r
}

func (e *env) state(id string) *client.State {
	e.Helper()
	s, err := e.api.Execution(e.ctx(), client.ExecutionRequest{ExecutionID: id})
	if err != nil {
		e.Fatalf("state of %s: %v", id, err)
	}
	return s
}

// end waits until an execution has ended, and asserts how.
func (e *env) end(id string, status client.Status) *client.State {
	e.Helper()
	s, err := e.api.Wait(e.ctx(), id)
	if err != nil {
		e.Fatalf("wait for %s: %v; its history: %v", id, err, e.types(id))
	}
	if s.Status != status {
		e.Fatalf("%s ended %s (%+v), want %s", id, s.Status, s.Error, status)
	}
	return s
}

// history is the whole of it, with a look at its numbering.
func (e *env) history(id string) []client.Event {
	e.Helper()
	var events []client.Event
	for ev, err := range e.api.Events(e.ctx(), id, false) {
		if err != nil {
			e.Fatalf("history of %s: %v", id, err)
		}
		if ev.Seq != uint64(len(events)+1) {
			e.Fatalf("history of %s: event %d follows event %d", id, ev.Seq, len(events))
		}
		events = append(events, ev)
	}
	return events
}

// types shows a history, an event a word: StepSucceeded(charge).
func (e *env) types(id string) []string {
	e.Helper()
	var list []string
	for _, ev := range e.history(id) {
		list = append(list, word(ev))
	}
	return list
}

func word(ev client.Event) string {
	if ev.Step == "" {
		return ev.Type
	}
	return ev.Type + "(" + ev.Step + ")"
}

// until waits for an event of an execution, as types shows it.
func (e *env) until(id, want string) client.Event {
	e.Helper()
	ctx := e.ctx()
	var seen []string
	for ev, err := range e.api.Events(ctx, id, true) {
		if err != nil {
			e.Fatalf("wait for %s of %s: %v; there is %v", want, id, err, seen)
		}
		if word(ev) == want {
			return ev
		}
		seen = append(seen, word(ev))
	}
	e.Fatalf("%s has ended without %s: %v", id, want, seen)
	return client.Event{}
}

// count is how many events of a history read like this.
func (e *env) count(id, want string) int {
	e.Helper()
	n := 0
	for _, w := range e.types(id) {
		if w == want {
			n++
		}
	}
	return n
}

// reply is an answer as it came.
type reply struct {
	status int
	header http.Header
	body   string
}

// code and message are those of an error.
func (r reply) code() string    { return r.member("code") }
func (r reply) message() string { return r.member("message") }

func (r reply) member(name string) string {
	var m map[string]json.RawMessage
	var text string
	if json.Unmarshal([]byte(r.body), &m) != nil || json.Unmarshal(m[name], &text) != nil {
		return ""
	}
	return text
}

// byGateway reports the front's own words for what no function may take.
func (r reply) byGateway(want int) bool {
	return *targetName == "lambda" && want == http.StatusRequestEntityTooLarge && r.status == want && r.message() == "Request Too Long"
}

func (r reply) String() string { return fmt.Sprintf("%d %.300s", r.status, r.body) }

// send makes a call with any body.
func (e *env) send(method, path, contentType, body string) reply {
	e.Helper()
	req, err := http.NewRequestWithContext(e.ctx(), method, e.server.URL()+path, strings.NewReader(body))
	if err != nil {
		e.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		e.Fatalf("%s %s: %v", method, path, err)
	}
	return reply{resp.StatusCode, resp.Header, string(text)}
}

// post sends JSON.
func (e *env) post(path, body string) reply {
	e.Helper()
	return e.send("POST", path, "application/json", body)
}

// refused asserts the status and the code of an error, and that its message
// says all of some words.
func (e *env) refused(r reply, status int, code string, words ...string) {
	e.Helper()
	if r.byGateway(status) {
		return
	}
	if r.status != status || r.code() != code {
		e.Errorf("got %s, want %d %s", r, status, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(r.body, w) {
			e.Errorf("%s does not say %q", r, w)
		}
	}
}

// quote is a text as JSON.
func quote(text string) string {
	b, err := client.Encode(text)
	if err != nil {
		panic(err) // a string always encodes
	}
	return string(b)
}

// replace is strings.Replace that has to find what it replaces.
func replace(text, old, new string) string {
	if !strings.Contains(text, old) {
		panic("there is no " + old + " in " + text)
	}
	return strings.Replace(text, old, new, 1)
}
