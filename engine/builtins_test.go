package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
	"perigee/engine/exactjson"
	"perigee/engine/history"
)

// pusher takes the tasks that begin with its prefix and gives them to deliver.
type pusher struct {
	prefix  string
	deliver func(context.Context, engine.Assignment) *engine.Failure
}

func (p *pusher) Takes(task string) bool { return strings.HasPrefix(task, p.prefix) }

func (p *pusher) Deliver(ctx context.Context, a engine.Assignment) *engine.Failure {
	return p.deliver(ctx, a)
}

func (p *pusher) Bound() time.Duration { return 30 * time.Second }

// accepts is a pusher whose workers take every task into got.
func accepts(prefix string, got *[]engine.Assignment) *pusher {
	return &pusher{prefix, func(_ context.Context, a engine.Assignment) *engine.Failure {
		*got = append(*got, a)
		return nil
	}}
}

// fails is a pusher whose workers cannot be called.
func fails(f engine.Failure) *pusher {
	f.TaskError = history.TaskError{Code: "PUSH_FAILED", Message: "no answer", Retryable: true}
	return &pusher{"a.", func(context.Context, engine.Assignment) *engine.Failure { return &f }}
}

// runBuiltins claims and runs what there is, once, and reports how much.
func (b *bench) runBuiltins(ctx context.Context) int {
	b.t.Helper()
	tasks, err := b.ClaimBuiltins(b.t.Context(), 10)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, task := range tasks {
		b.RunBuiltin(ctx, task)
	}
	return len(tasks)
}

func (b *bench) unit(id, unit string) *history.Unit {
	b.t.Helper()
	s, err := b.Execution(b.t.Context(), id, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return s.Unit(unit)
}

// pass lets time go by and looks at what is due.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	b.now += d.Milliseconds()
	if _, err := b.Tick(b.t.Context(), 100); err != nil {
		b.t.Fatal(err)
	}
}

const pushed = `
name: pushed
version: "1.0.0"
tasks:
  a.step: { version: "2.0.0", language: python }
  b.step: { version: "1.0.0" }
steps:
  - { id: a, task: a.step, timeout: 10m, with: { n: 1 } }
  - { id: b, task: b.step, after: [] }
`

func TestPush_TheWorkerReportsOnItsToken(t *testing.T) {
	var got []engine.Assignment
	b := newBench(t, engine.Options{Push: accepts("a.", &got)})
	b.deploy(pushed)
	b.start("pushed", "e", `{}`)
	if n := b.runBuiltins(t.Context()); n != 1 {
		t.Fatalf("%d tasks were claimed, want that of a.step alone", n)
	}
	task := got[0]
	if task.TaskName != "a.step" || task.ContractVersion != "2.0.0" || task.Input != `{"n":1}` || task.DeadlineMS != b.now+600_000 {
		t.Errorf("delivered: %+v", task)
	}
	if u := b.unit("e", "a"); u.Status != history.UnitDispatched || *u.WorkerID != "push" {
		t.Errorf("after the delivery: %s with %v", u.Status, u.WorkerID)
	}
	// Nobody's heartbeat speaks for it: it stays out until its deadline.
	b.pass(9 * time.Minute)
	if n := b.runBuiltins(t.Context()); n != 0 {
		t.Errorf("it was delivered again")
	}
	answer, err := b.Results(t.Context(), engine.ResultsRequest{Results: []engine.Result{{Token: task.Token, Output: `{"done":true}`}}})
	if err != nil || !answer.Acks[0].Accepted {
		t.Fatalf("%+v, %v", answer, err)
	}
	if u := b.unit("e", "a"); u.Status != history.UnitSucceeded || u.Output != `{"done":true}` {
		t.Errorf("at the end: %s, %s", u.Status, u.Output)
	}
	b.healthy()
}

func TestPush_AWorkerThatIsLostMeetsTheDeadline(t *testing.T) {
	var got []engine.Assignment
	b := newBench(t, engine.Options{Push: accepts("a.", &got)})
	b.deploy(pushed)
	b.start("pushed", "e", `{}`)
	b.runBuiltins(t.Context())
	b.pass(11 * time.Minute)
	b.pass(time.Hour) // the delay of the retry
	if b.runBuiltins(t.Context()); len(got) != 2 || got[1].Attempt != 2 || got[1].Token == got[0].Token {
		t.Errorf("after the deadline: %+v", got)
	}
	b.healthy()
}

// die claims what there is and runs none of it, as a process does that dies.
func (b *bench) die() {
	b.t.Helper()
	tasks, err := b.ClaimBuiltins(b.t.Context(), 10)
	if err != nil || len(tasks) != 1 {
		b.t.Fatalf("%d tasks were claimed, %v; want 1", len(tasks), err)
	}
}

// Nobody speaks for an attempt until its target has taken the call.
func TestPush_AServerThatDiesWhileItCallsIsNoticed(t *testing.T) {
	var got []engine.Assignment
	b := newBench(t, engine.Options{Push: accepts("a.", &got)})
	b.deploy(strings.Replace(pushed, "timeout: 10m,", "", 1))
	b.start("pushed", "e", `{}`)
	b.die()
	b.pass(44 * time.Second) // the time of a call, 30 s, and a margin are not over
	if n := b.runBuiltins(t.Context()); n != 0 {
		t.Fatal("it was delivered again before the call must have ended")
	}
	b.pass(time.Second)      // now they are: it is suspect
	b.pass(10 * time.Second) // and nothing was heard since
	if b.runBuiltins(t.Context()); len(got) != 1 || got[0].Attempt != 1 || !got[0].Redelivery {
		t.Errorf("after the server's death: %+v", got)
	}
	// Once the worker has taken it, it may take as long as any task.
	b.pass(23 * time.Hour)
	if n := b.runBuiltins(t.Context()); n != 0 || b.unit("e", "a").Status != history.UnitDispatched {
		t.Errorf("it was delivered again after its worker had taken it")
	}
	b.healthy()
}

func TestPush_AServerThatDiesLeavesAnAtMostOnceStepUncertain(t *testing.T) {
	b := newBench(t, engine.Options{Push: fails(engine.Failure{})})
	b.deploy(strings.Replace(pushed, "timeout: 10m,", "at_most_once: true,", 1))
	b.start("pushed", "e", `{}`)
	b.die()
	b.pass(45 * time.Second)
	b.pass(10 * time.Second)
	if u := b.unit("e", "a"); u.Status != history.UnitFailed || u.LastError.Code != "UNCERTAIN" {
		t.Errorf("it is %s, %+v", u.Status, u.LastError)
	}
	b.healthy()
}

// An attempt that is shorter than the call ends as every attempt does.
func TestPush_AnAttemptShorterThanTheCallMeetsItsDeadline(t *testing.T) {
	b := newBench(t, engine.Options{Push: fails(engine.Failure{})})
	b.deploy(strings.Replace(pushed, "timeout: 10m,", "timeout: 20s,", 1))
	b.start("pushed", "e", `{}`)
	b.die()
	b.pass(20 * time.Second)
	if u := b.unit("e", "a"); u.Status != history.UnitRetryWait || u.LastError.Code != "TIMEOUT" {
		t.Errorf("it is %s, %+v", u.Status, u.LastError)
	}
	b.healthy()
}

func TestPush_AFailedDeliveryIsAFailedAttempt(t *testing.T) {
	wait := 7 * time.Second
	b := newBench(t, engine.Options{Push: fails(engine.Failure{RetryAfter: &wait, Unknown: true})})
	b.deploy(strings.Replace(pushed, "timeout: 10m,", "retry: { max_attempts: 2 },", 1))
	b.start("pushed", "e", `{}`)
	b.runBuiltins(t.Context())
	u := b.unit("e", "a")
	if u.Status != history.UnitRetryWait || u.WakeAtMS == nil || *u.WakeAtMS != b.now+wait.Milliseconds() {
		t.Fatalf("after the first: %s, %v", u.Status, u.WakeAtMS)
	}
	b.pass(wait)
	b.runBuiltins(t.Context())
	u = b.unit("e", "a")
	want := &history.TaskError{Code: "PUSH_FAILED", Message: "no answer", Retryable: true}
	if diff := cmp.Diff(want, u.LastError); u.Status != history.UnitFailed || diff != "" {
		t.Errorf("after the last: %s (-want +got):\n%s", u.Status, diff)
	}
	b.healthy()
}

// At most once means: not again where the first time may have worked.
func TestPush_AnUnknownOutcomeIsNotTriedAgainAtMostOnce(t *testing.T) {
	for _, tt := range []struct {
		unknown bool
		want    history.UnitStatus
	}{{true, history.UnitFailed}, {false, history.UnitRetryWait}} {
		b := newBench(t, engine.Options{Push: fails(engine.Failure{Unknown: tt.unknown})})
		b.deploy(strings.Replace(pushed, "timeout: 10m,", "at_most_once: true,", 1))
		b.start("pushed", "e", `{}`)
		b.runBuiltins(t.Context())
		u := b.unit("e", "a")
		if u.Status != tt.want || tt.unknown && u.LastError.Code != "UNCERTAIN" {
			t.Errorf("unknown %v: %s, %+v", tt.unknown, u.Status, u.LastError)
		}
		b.healthy()
	}
}

// The worker may be done before its answer is lost.
func TestPush_AResultStandsAgainstAFailedDelivery(t *testing.T) {
	var b *bench
	b = newBench(t, engine.Options{Push: &pusher{"a.", func(ctx context.Context, a engine.Assignment) *engine.Failure {
		if _, err := b.Results(ctx, engine.ResultsRequest{Results: []engine.Result{{Token: a.Token}}}); err != nil {
			t.Error(err)
		}
		return &engine.Failure{TaskError: history.TaskError{Code: "PUSH_FAILED", Retryable: true}, Unknown: true}
	}}})
	b.deploy(strings.Replace(pushed, "timeout: 10m,", "at_most_once: true,", 1))
	b.start("pushed", "e", `{}`)
	b.runBuiltins(t.Context())
	if u := b.unit("e", "a"); u.Status != history.UnitSucceeded {
		t.Errorf("it is %s", u.Status)
	}
	b.healthy()
}

func TestBuiltins_AProcessThatStopsGivesItsTasksBack(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	opts := fails(engine.Failure{})
	once := opts.deliver
	var got []engine.Assignment
	opts.deliver = func(ctx context.Context, a engine.Assignment) *engine.Failure {
		if got = append(got, a); len(got) == 1 {
			stop()
			return once(ctx, a)
		}
		return nil
	}
	b := newBench(t, engine.Options{Push: opts})
	b.deploy(pushed)
	b.start("pushed", "e", `{}`)
	b.runBuiltins(ctx)
	if b.runBuiltins(t.Context()); len(got) != 2 || got[1].Attempt != 1 || !got[1].Redelivery {
		t.Errorf("after the stop: %+v", got)
	}
	b.healthy()
}

func TestBuiltins_HTTPRequestRunsWithinItsAttempt(t *testing.T) {
	b := newBench(t, engine.Options{HTTPRequest: func(ctx context.Context, input exactjson.Value) (exactjson.Value, *engine.Failure) {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > 3*time.Second {
			t.Errorf("the deadline is %v, %v", end, ok)
		}
		return exactjson.Object([]exactjson.Member{{Key: "called", Value: input.Get("url")}}), nil
	}})
	b.deploy("name: call\nversion: \"1.0.0\"\nsteps:\n  - { id: c, task: http.request, timeout: 3s, with: { url: 'https://a.example/' } }\n")
	b.start("call", "e", `{}`)
	b.runBuiltins(t.Context())
	if u := b.unit("e", "c"); u.Output != `{"called":"https://a.example/"}` || *u.WorkerID != "perigee" {
		t.Errorf("%s: %s", u.Status, u.Output)
	}
	b.healthy()
}

// A request takes four minutes at most, whatever time its attempt has.
func TestBuiltins_AServerThatDiesWithARequestIsNoticed(t *testing.T) {
	b := newBench(t, engine.Options{HTTPRequest: func(context.Context, exactjson.Value) (exactjson.Value, *engine.Failure) {
		return `{"status":200}`, nil
	}})
	b.deploy("name: call\nversion: \"1.0.0\"\nsteps:\n  - { id: c, task: http.request, timeout: 2h, with: { url: 'https://a.example/' } }\n")
	b.start("call", "e", `{}`)
	b.die()
	b.pass(5 * time.Minute)
	b.pass(10 * time.Second)
	b.runBuiltins(t.Context())
	if u := b.unit("e", "c"); u.Status != history.UnitSucceeded {
		t.Errorf("it is %s", u.Status)
	}
	b.healthy()
}

// Another process may register a definition at any time.
func TestPush_FindsDefinitionsThatAreRegisteredLater(t *testing.T) {
	var got []engine.Assignment
	b := newBench(t, engine.Options{Push: accepts("a.", &got)})
	if n := b.runBuiltins(t.Context()); n != 0 {
		t.Fatalf("%d tasks of nothing", n)
	}
	other, err := engine.New(b.store, engine.Options{Clock: func() int64 { return b.now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	elsewhere := &bench{Engine: other, t: t, store: b.store, now: b.now}
	elsewhere.deploy(pushed)
	elsewhere.start("pushed", "e", `{}`)
	b.now += 2000
	if n := b.runBuiltins(t.Context()); n != 1 || len(got) != 1 {
		t.Errorf("%d tasks were claimed, %d delivered", n, len(got))
	}
	elsewhere.deploy(strings.NewReplacer("name: pushed", "name: later", "2.0.0", "3.0.0").Replace(pushed))
	elsewhere.start("later", "f", `{}`)
	if n := b.runBuiltins(t.Context()); n != 0 {
		t.Errorf("%d tasks of a definition that was not looked for", n)
	}
	b.ForgetBuiltins()
	if n := b.runBuiltins(t.Context()); n != 1 {
		t.Errorf("%d tasks were claimed once it was looked for", n)
	}
}

func TestRun_PushesWhatBecomesReady(t *testing.T) {
	done := make(chan struct{})
	var b *bench
	b = newBench(t, engine.Options{Push: &pusher{"a.", func(ctx context.Context, a engine.Assignment) *engine.Failure {
		if _, err := b.Results(ctx, engine.ResultsRequest{Results: []engine.Result{{Token: a.Token}}}); err != nil {
			t.Error(err)
		}
		if a.StepID == "s2" {
			close(done)
		}
		return nil
	}}})
	b.deploy(chain(3))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Run(ctx) }()
	b.start("chain", "e", `{}`)
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("the steps were not pushed")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if s := b.status("e"); s != history.Completed {
		t.Errorf("it is %s", s)
	}
}
