package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"perigee/store"
)

// counting counts an engine's claims; its lulls last for as long as the test.
func counting(t *testing.T) (e *Engine, session string, claims *atomic.Int32) {
	t.Helper()
	st, _ := openEngines(t, 1, Options{})
	h, e := hook(t, st, Options{HoldPolls: true})
	e.lulls.length = time.Hour
	claims = &atomic.Int32{}
	h.claim = func(ctx context.Context, r store.ClaimRequest) (store.Claimed, error) {
		claims.Add(1)
		return st.Claim(ctx, r)
	}
	return e, sessionOf(t, e), claims
}

func start(t *testing.T, e *Engine, id string) {
	t.Helper()
	if _, err := e.Start(t.Context(), StartRequest{Workflow: "one", ExecutionID: id}); err != nil {
		t.Fatal(err)
	}
}

func poll(t *testing.T, e *Engine, r PollRequest) []Assignment {
	t.Helper()
	p, err := e.Poll(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p.Tasks
}

func TestLull_APollThatWaitsAsksNothingAndGetsItsTask(t *testing.T) {
	e, session, claims := counting(t)
	poll(t, e, PollRequest{SessionID: session}) // in vain
	got := waitingPoll(t, e, PollRequest{SessionID: session, Wait: time.Minute})
	start(t, e, "e")
	if p := <-got; len(p.Tasks) != 1 || claims.Load() != 1 {
		t.Errorf("%d tasks and %d claims, want one of each", len(p.Tasks), claims.Load())
	}
}

func TestLull_EndsWhereATaskIsMadeReadyForNobody(t *testing.T) {
	e, session, _ := counting(t)
	poll(t, e, PollRequest{SessionID: session}) // in vain
	start(t, e, "e")
	if tasks := poll(t, e, PollRequest{SessionID: session, Wait: time.Minute}); len(tasks) != 1 {
		t.Errorf("%d tasks, want the one that is ready", len(tasks))
	}
}

func TestLull_NoPollAnswersWithNothingBeforeItHasLooked(t *testing.T) {
	e, session, claims := counting(t)
	poll(t, e, PollRequest{SessionID: session}) // in vain
	poll(t, e, PollRequest{SessionID: session, Wait: time.Millisecond})
	poll(t, e, PollRequest{SessionID: session})
	if claims.Load() != 3 {
		t.Errorf("%d claims, want one for each poll", claims.Load())
	}
}

func TestLull_ARepeatedPollGetsWhatTheFirstWasGiven(t *testing.T) {
	e, session, _ := counting(t)
	poll(t, e, PollRequest{SessionID: session}) // in vain
	got := waitingPoll(t, e, PollRequest{SessionID: session, PollID: "p", FirstTry: true, Wait: time.Minute})
	start(t, e, "e")
	first := (<-got).Tasks
	again := poll(t, e, PollRequest{SessionID: session, PollID: "p", Wait: time.Minute})
	if len(first) != 1 || len(again) != 1 || first[0].Token != again[0].Token {
		t.Errorf("%v and then %v, want the same task twice", first, again)
	}
}

func TestLull_AResultAsksForNoMoreUnlessItIsARepetition(t *testing.T) {
	e, session, claims := counting(t)
	start(t, e, "e")
	task := poll(t, e, PollRequest{SessionID: session})[0]
	poll(t, e, PollRequest{SessionID: session}) // in vain
	for i, want := range []int32{2, 3} {
		answer, err := e.Results(t.Context(), ResultsRequest{Results: []Result{{Token: task.Token}}, NextSession: session})
		if err != nil || !answer.Acks[0].Accepted || len(answer.Next) > 0 {
			t.Fatalf("%+v, %v", answer, err)
		}
		if claims.Load() != want {
			t.Errorf("after report %d: %d claims, want %d", i+1, claims.Load(), want)
		}
	}
}
