package blackbox_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"perigee/sdk/go/client"
)

// long is a definition whose executions have 5 + 3 × elements events, and one
// more for each step of padding.
func long(padding int) string {
	text := fmt.Sprintf(`
name: long-%d
version: "1.0.0"
tasks: { a.step: { version: "1.0.0" } }
steps:
  - { id: each, for: input.list, task: a.step, with: { i: "${index}" } }
`, padding)
	for i := range padding {
		text += fmt.Sprintf("  - { id: pad%d, compute: \"1\" }\n", i)
	}
	return text
}

func TestScale_LongHistoryIsServedWholeByPages(t *testing.T) {
	onDatabases(t, func(t *testing.T, db testDatabase) {
		lengths := []int{1_001, 2_500}
		if db.kind == "sqlite" || fullScale {
			lengths = append(lengths, 10_001)
		}
		e := newEnv(t, targetFor(t, settings{}), db, settings{})
		for _, n := range lengths {
			padding := (n - 5) % 3
			elements := (n - 5 - padding) / 3
			e.deploy(long(padding))
			list := "[" + strings.Repeat("0,", elements-1) + "0]"
			id := e.start(fmt.Sprintf("long-%d", padding), fmt.Sprintf("long-%d-events", n), `{"list":`+list+`}`)
			e.workAll(3, "a.step", func(task *client.Task) client.Result {
				return client.Result{Token: task.Token, Output: task.Input}
			}, func() bool { return e.state(id).Status.Terminal() })
			s := e.end(id, client.Completed)
			if s.LastSeq != uint64(n) {
				e.Errorf("%s has %d events", id, s.LastSeq)
			}
			if got := len(e.history(id)); got != n { // history finds the gaps
				e.Errorf("the pages of %s have %d events", id, got)
			}
			for _, limit := range []int{1000, 333} {
				e.pagesAreWhole(id, n, limit)
			}
			e.unitsAreWhole(id, elements+1+padding)
		}
	})
}

// pagesAreWhole asserts that pages of a size follow each other without gap.
func (e *env) pagesAreWhole(id string, events, limit int) {
	e.Helper()
	after, pages := uint64(0), 0
	for {
		page, err := e.api.History(e.ctx(), client.HistoryRequest{ExecutionID: id, AfterSeq: after, Limit: limit})
		if err != nil {
			e.Fatal(err)
		}
		pages++
		for _, ev := range page.Events {
			if after++; ev.Seq != after {
				e.Fatalf("%s by pages of %d: event %d where %d is due", id, limit, ev.Seq, after)
			}
		}
		if page.NextAfterSeq == 0 {
			break
		}
		if page.NextAfterSeq != after {
			e.Fatalf("%s: the next page is after %d, this one ends at %d", id, page.NextAfterSeq, after)
		}
	}
	if want := (events + limit - 1) / limit; after != uint64(events) || pages != want {
		e.Errorf("%s: %d events on %d pages, want %d on %d", id, after, pages, events, want)
	}
}

// unitsAreWhole asserts that the pages of a state name every unit once.
func (e *env) unitsAreWhole(id string, units int) {
	e.Helper()
	seen := map[string]bool{}
	for r := (client.ExecutionRequest{ExecutionID: id}); ; {
		s, err := e.api.Execution(e.ctx(), r)
		if err != nil {
			e.Fatal(err)
		}
		for key := range s.Units {
			if seen[key] {
				e.Errorf("%s: the unit %s is on two pages", id, key)
			}
			seen[key] = true
		}
		if r.UnitsAfter = s.NextUnitsAfter; r.UnitsAfter == "" {
			break
		}
	}
	if len(seen) != units {
		e.Errorf("%s: the state has %d units, want %d", id, len(seen), units)
	}
}

func TestHistory_OverItsLimitWindsDown(t *testing.T) {
	everyDatabase(t, settings{flags: map[string]string{"max-history-events": "20"}}, func(e *env) {
		e.deploy(undoing)
		e.deploy(long(0))
		id := e.start("long-0", "", `{"list":[1,2,3,4,5,6,7,8,9,10]}`)
		session := e.register("w", "a.step", "a.undo", "a.alert")
		for e.state(id).Status == client.Running {
			p, err := e.api.Poll(e.ctx(), client.PollRequest{SessionID: session})
			if err != nil {
				e.Fatal(err)
			}
			for _, task := range p.Tasks {
				e.complete(task, `{}`)
			}
		}
		if s := e.end(id, client.Failed); s.Error.Code != "LIMIT_EXCEEDED" || !strings.Contains(s.Error.Message, "20") {
			e.Errorf("the error is %+v", s.Error)
		}
	})
}

func TestList_IsStableWhileExecutionsAreStarted(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(oneStep)
		for i := range 25 {
			e.start("one", fmt.Sprintf("e-%02d", i), "")
		}
		seen := map[string]int{}
		for r := (client.ListRequest{Limit: 4}); ; {
			page, err := e.api.List(e.ctx(), r)
			if err != nil {
				e.Fatal(err)
			}
			for _, x := range page.Executions {
				seen[x.ExecutionID]++
			}
			if r.Cursor = page.NextCursor; r.Cursor == "" {
				break
			}
			e.start("one", fmt.Sprintf("new-%d", len(seen)), "")
		}
		for i := range 25 {
			if n := seen[fmt.Sprintf("e-%02d", i)]; n != 1 {
				e.Errorf("e-%02d was listed %d times", i, n)
			}
		}
	})
}

func TestHistory_HoldsNoToken(t *testing.T) {
	everyDatabase(t, settings{}, func(e *env) {
		e.deploy(oneStep)
		id := e.start("one", "", "")
		session := e.register("w", "a.step")
		task := e.poll(session)
		_, secret, _ := strings.Cut(task.Token, ".")
		history := e.send("GET", "/v1/executions/"+id+"/history", "", "").body
		state := e.send("GET", "/v1/executions/"+id, "", "").body
		for _, text := range []string{history, state} {
			if !json.Valid([]byte(text)) || strings.Contains(text, secret) || strings.Contains(text, session) {
				e.Errorf("a secret is shown: %s", text)
			}
		}
	})
}
