package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"perigee/store"
)

var errRefused = errors.New("refused by the decision")

var inboxRules = []rule{
	{"TakesAResultOnce", func(t *testing.T, s store.Store) {
		row := dispatchedTask("e1", "a", "s1", "secret")
		create(t, s, "e1", row)
		report := store.Report{Key: row.Key, TokenHash: row.TokenHash, Success: true, Payload: `{"x":1}`, NowMS: epoch + 5}
		equal(t, "first", true, got(s.Report(t.Context(), report))(t))
		report.Payload = `{"x":2}`
		equal(t, "second", false, got(s.Report(t.Context(), report))(t))
		row.State = store.TaskReported
		row.Report = &store.Report{Key: row.Key, TokenHash: row.TokenHash, Success: true, Payload: `{"x":1}`, AtMS: epoch + 5}
		equal(t, "row", row, got(s.Task(t.Context(), row.Key))(t))
	}},
	{"TakesNoResultUnderAnotherToken", func(t *testing.T, s store.Store) {
		row, waiting := dispatchedTask("e1", "a", "s1", "secret"), readyTask("e1", "b", 2)
		create(t, s, "e1", row, waiting)
		for _, report := range []store.Report{
			{Key: row.Key, TokenHash: hashOf("older"), Success: true, Payload: "{}", NowMS: epoch},
			{Key: waiting.Key, TokenHash: "", Success: true, Payload: "{}", NowMS: epoch},
			{Key: "e1/gone", TokenHash: row.TokenHash, Success: true, Payload: "{}", NowMS: epoch},
		} {
			equal(t, report.Key, false, got(s.Report(t.Context(), report))(t))
		}
		equal(t, "rows", []store.Task{row, waiting}, tasksOf(t, s, "e1"))
	}},
	{"MakesADecisionFromBeforeLose", func(t *testing.T, s store.Store) {
		row := dispatchedTask("e1", "a", "s1", "secret")
		h := create(t, s, "e1", row)
		equal(t, "reported", true, got(s.Report(t.Context(), store.Report{
			Key: row.Key, TokenHash: row.TokenHash, Success: true, Payload: "{}", NowMS: epoch}))(t))
		c := following(h, 1)
		c.Removed = []store.TaskRemoval{{Key: row.Key, Guard: store.Guard{State: store.TaskDispatched, TokenHash: row.TokenHash}}}
		wantLost(t, s.Commit(t.Context(), c), row.Key)
		c.Removed[0].Guard.State = store.TaskReported
		commit(t, s, c)
	}},
	{"AResultAndADecisionExcludeEachOther", func(t *testing.T, s store.Store) {
		for i := range 40 {
			id := fmt.Sprintf("e%02d", i)
			row := dispatchedTask(id, "a", "s1", "secret-"+id)
			h := create(t, s, id, row)
			c := following(h, 1)
			c.Removed = []store.TaskRemoval{{Key: row.Key, Guard: store.Guard{State: store.TaskDispatched, TokenHash: row.TokenHash}}}
			var accepted bool
			var reportErr, commitErr error
			var group sync.WaitGroup
			group.Go(func() {
				accepted, reportErr = s.Report(t.Context(), store.Report{
					Key: row.Key, TokenHash: row.TokenHash, Success: true, Payload: "{}", NowMS: epoch})
			})
			group.Go(func() { commitErr = s.Commit(t.Context(), c) })
			group.Wait()
			must(t, reportErr)
			if commitErr != nil {
				wantLost(t, commitErr, row.Key)
			}
			if accepted == (commitErr == nil) {
				t.Fatalf("%s: accepted %v and removed %v", id, accepted, commitErr == nil)
			}
			equal(t, "rows left", accepted, len(tasksOf(t, s, id)) == 1)
		}
	}},
}

// appendOne is a decision that appends one event after what was loaded.
func appendOne(l store.Loaded) (*store.Commit, error) {
	c := following(*l.Head, 1)
	return &c, nil
}

// lockRules are the rules of WithHeadLocked and, where they are the same, of TryDrain.
func lockRules(traits []Trait) []rule {
	type locked func(s store.Store) func(t *testing.T, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error
	ways := []struct {
		name string
		call locked
	}{
		{"WithHeadLocked", func(s store.Store) func(*testing.T, store.LoadRequest, func(store.Loaded) (*store.Commit, error)) error {
			return func(t *testing.T, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
				return s.WithHeadLocked(t.Context(), r, decide)
			}
		}},
		{"TryDrain", func(s store.Store) func(*testing.T, store.LoadRequest, func(store.Loaded) (*store.Commit, error)) error {
			return func(t *testing.T, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
				return s.TryDrain(t.Context(), r, decide)
			}
		}},
	}
	rules := []rule{
		{"LosesNothingUnderContention", func(t *testing.T, s store.Store) {
			losesNothingUnderContention(t, s, slices.Contains(traits, Lockless))
		}},
		{"FanInLosesNothing", fanInLosesNothing},
		{"TryDrainDoesNotWait", func(t *testing.T, s store.Store) { tryDrainWhileHeld(t, s, traits) }},
	}
	for _, way := range ways {
		rules = append(rules,
			rule{way.name + "WritesWhatIsDecided", func(t *testing.T, s store.Store) {
				row := dispatchedTask("e1", "a", "s1", "secret")
				h := create(t, s, "e1", row)
				equal(t, "reported", true, got(s.Report(t.Context(), store.Report{
					Key: row.Key, TokenHash: row.TokenHash, Success: true, Payload: "{}", NowMS: epoch}))(t))
				var seen store.Loaded
				must(t, way.call(s)(t, store.LoadRequest{ID: "e1", Known: seenOf(h), NowMS: epoch + 1}, func(l store.Loaded) (*store.Commit, error) {
					seen = l
					c := following(*l.Head, 1)
					c.Removed = []store.TaskRemoval{{Key: row.Key, Guard: store.Guard{State: store.TaskReported, TokenHash: row.TokenHash}}}
					return &c, nil
				}))
				report := store.Report{Key: row.Key, TokenHash: row.TokenHash, Success: true, Payload: "{}", AtMS: epoch}
				equal(t, "seen", store.Loaded{NowMS: epoch + 1, Head: &h, Reported: []store.Report{report}}, seen)
				equal(t, "last seq", uint64(3), load(t, s, "e1").Head.LastSeq)
				equal(t, "rows", 0, len(tasksOf(t, s, "e1")))
			}},
			rule{way.name + "WritesNothingForNil", func(t *testing.T, s store.Store) {
				h := create(t, s, "e1")
				must(t, way.call(s)(t, store.LoadRequest{ID: "e1"}, func(store.Loaded) (*store.Commit, error) { return nil, nil }))
				equal(t, "head", h, *load(t, s, "e1").Head)
			}},
			rule{way.name + "WritesNothingOnAnError", func(t *testing.T, s store.Store) {
				h := create(t, s, "e1")
				wantError(t, way.call(s)(t, store.LoadRequest{ID: "e1"}, func(l store.Loaded) (*store.Commit, error) {
					c, _ := appendOne(l)
					return c, errRefused
				}), errRefused)
				equal(t, "head", h, *load(t, s, "e1").Head)
			}},
			rule{way.name + "GuardsRowsToo", func(t *testing.T, s store.Store) {
				h := create(t, s, "e1", readyTask("e1", "a", 2))
				wantLost(t, way.call(s)(t, store.LoadRequest{ID: "e1"}, func(l store.Loaded) (*store.Commit, error) {
					c := following(*l.Head, 1)
					c.Removed = []store.TaskRemoval{{Key: "e1/a", Guard: store.Guard{State: store.TaskDispatched, TokenHash: "x"}}}
					return &c, nil
				}), "e1/a")
				equal(t, "head", h, *load(t, s, "e1").Head)
			}},
			rule{way.name + "ShowsThatThereIsNothing", func(t *testing.T, s store.Store) {
				var seen store.Loaded
				must(t, way.call(s)(t, store.LoadRequest{ID: "e1", NowMS: epoch}, func(l store.Loaded) (*store.Commit, error) {
					seen = l
					return nil, nil
				}))
				equal(t, "seen", store.Loaded{NowMS: epoch}, seen)
			}},
			rule{way.name + "MayCreate", func(t *testing.T, s store.Store) {
				must(t, way.call(s)(t, store.LoadRequest{ID: "e1"}, func(store.Loaded) (*store.Commit, error) {
					c := creation("e1")
					return &c, nil
				}))
				equal(t, "head", newHead("e1"), *load(t, s, "e1").Head)
			}},
		)
	}
	return rules
}

// losesNothingUnderContention: writers that lock the head make a queue, and
// every one of them gets its event in. Without locks one may lose, and come again.
func losesNothingUnderContention(t *testing.T, s store.Store, lockless bool) {
	const writers, each = 16, 4
	create(t, s, "e1")
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := 0; i < each; i++ {
				err := s.WithHeadLocked(t.Context(), store.LoadRequest{ID: "e1", NowMS: epoch}, func(l store.Loaded) (*store.Commit, error) {
					c := following(*l.Head, 1)
					c.Events[0].Data = fmt.Sprintf(`{"writer":%d,"turn":%d}`, w, i)
					return &c, nil
				})
				if _, lost := errors.AsType[*store.LostError](err); lost && lockless {
					i--
				} else if err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	group.Wait()
	wantGapless(t, s, "e1")
	turns := map[string]int{}
	for _, e := range load(t, s, "e1").Events[2:] {
		turns[e.Data]++
	}
	equal(t, "distinct events", writers*each, len(turns))
}

// fanInLosesNothing: results that come at once go into the inbox, and whoever
// gets the head takes in all that wait, until none is left.
func fanInLosesNothing(t *testing.T, s store.Store) {
	const width = 60
	var rows []store.Task
	for i := range width {
		rows = append(rows, dispatchedTask("e1", fmt.Sprintf("a[%02d]", i), "s1", fmt.Sprint("secret", i)))
	}
	create(t, s, "e1", rows...)
	takeIn := func(l store.Loaded) (*store.Commit, error) {
		if len(l.Reported) == 0 {
			return nil, nil
		}
		c := following(*l.Head, uint64(len(l.Reported)))
		for i, report := range l.Reported {
			c.Events[i].Data = report.Payload
			c.Removed = append(c.Removed, store.TaskRemoval{Key: report.Key, Guard: store.Guard{State: store.TaskReported, TokenHash: report.TokenHash}})
		}
		return &c, nil
	}
	var group sync.WaitGroup
	for _, row := range rows {
		group.Go(func() {
			taken, err := s.Report(t.Context(), store.Report{Key: row.Key, TokenHash: row.TokenHash, Success: true, Payload: `"` + row.Key + `"`, NowMS: epoch})
			if err != nil || !taken {
				t.Errorf("%s: reported %v, %v", row.Key, taken, err)
				return
			}
			err = store.ErrBusy
			for n := 0; errors.Is(err, store.ErrBusy) && n < 10_000; n++ {
				err = s.TryDrain(t.Context(), store.LoadRequest{ID: "e1", NowMS: epoch}, takeIn)
			}
			if err != nil {
				t.Errorf("%s: drain: %v", row.Key, err)
			}
		})
	}
	group.Wait()
	equal(t, "rows", 0, len(tasksOf(t, s, "e1")))
	wantGapless(t, s, "e1")
	taken := map[string]bool{}
	for _, e := range load(t, s, "e1").Events[2:] {
		taken[e.Data] = true
	}
	equal(t, "results taken in", width, len(taken))
}

// tryDrainWhileHeld: while another decision holds the head, TryDrain answers
// ErrBusy at once; a serial store decides after it and sees what it wrote; a
// lockless one decides, and the other has to decide again.
func tryDrainWhileHeld(t *testing.T, s store.Store, traits []Trait) {
	create(t, s, "e1")
	entered, release := make(chan struct{}), make(chan struct{})
	holder, drained := make(chan error, 1), make(chan error, 1)
	var once sync.Once
	go func() {
		holder <- s.WithHeadLocked(t.Context(), store.LoadRequest{ID: "e1", NowMS: epoch}, func(l store.Loaded) (*store.Commit, error) {
			once.Do(func() { close(entered) })
			<-release
			return appendOne(l)
		})
	}()
	<-entered
	var seen uint64
	go func() {
		drained <- s.TryDrain(t.Context(), store.LoadRequest{ID: "e1", NowMS: epoch}, func(l store.Loaded) (*store.Commit, error) {
			seen = l.Head.LastSeq
			return appendOne(l)
		})
	}()
	switch {
	case slices.Contains(traits, Serial):
		close(release)
		must(t, <-holder)
		must(t, <-drained)
		equal(t, "seen", uint64(3), seen)
	case slices.Contains(traits, Lockless):
		must(t, <-drained)
		close(release)
		must(t, <-holder)
		equal(t, "seen", uint64(2), seen)
	default:
		wantError(t, <-drained, store.ErrBusy)
		close(release)
		must(t, <-holder)
		equal(t, "decided", uint64(0), seen)
		must(t, s.TryDrain(t.Context(), store.LoadRequest{ID: "e1", NowMS: epoch}, appendOne))
	}
	equal(t, "last seq", uint64(4), load(t, s, "e1").Head.LastSeq)
}
