package storetest

import (
	"fmt"
	"strings"
	"testing"

	"perigee/store"
)

func newMessage(id, source string, createdAt int64) store.Message {
	return store.Message{ID: id, Kind: "ended", Source: source, Target: "p1", Unit: "sub", Payload: `{"n":1}`, CreatedAtMS: createdAt}
}

var outboxRules = []rule{
	{"ListsTheOldestFirst", func(t *testing.T, s store.Store) {
		a, b, c, d := newMessage("m1", "e1", epoch+3), newMessage("m3", "e2", epoch+1), newMessage("m2", "e1", epoch+1), newMessage("m0", "e1", epoch+2)
		first, second := creation("e1"), creation("e2")
		first.Outbox, second.Outbox = []store.Message{a, c, d}, []store.Message{b}
		commit(t, s, first)
		commit(t, s, second)
		equal(t, "all, of one moment by id", []store.Message{c, b, d, a}, got(s.Outbox(t.Context(), "", 10))(t))
		equal(t, "two", []store.Message{c, b}, got(s.Outbox(t.Context(), "", 2))(t))
		equal(t, "of one source", []store.Message{c, d, a}, got(s.Outbox(t.Context(), "e1", 10))(t))
		equal(t, "of none", 0, len(got(s.Outbox(t.Context(), "e3", 10))(t)))
	}},
	{"WritingAMessageTwiceIsOneMessage", func(t *testing.T, s store.Store) {
		c := creation("e1")
		c.Outbox = []store.Message{newMessage("m1", "e1", epoch)}
		commit(t, s, c)
		again := following(c.Head, 1)
		again.Outbox = []store.Message{newMessage("m1", "e1", epoch+5), newMessage("m2", "e1", epoch+5)}
		commit(t, s, again)
		equal(t, "messages", []store.Message{c.Outbox[0], again.Outbox[1]}, got(s.Outbox(t.Context(), "", 10))(t))
	}},
	{"TakesInWithTheCommit", func(t *testing.T, s store.Store) {
		c := creation("e1")
		c.Outbox = []store.Message{newMessage("m1", "e1", epoch), newMessage("m2", "e1", epoch)}
		commit(t, s, c)
		target := create(t, s, "p1")
		stale := following(target, 1)
		stale.Seen.Seq--
		stale.Delivered = []string{"m1"}
		wantLost(t, s.Commit(t.Context(), stale), "")
		equal(t, "after a lost race", 2, len(got(s.Outbox(t.Context(), "", 10))(t)))
		delivery := following(target, 1)
		delivery.Delivered = []string{"m1", "gone"}
		commit(t, s, delivery)
		equal(t, "left", c.Outbox[1:], got(s.Outbox(t.Context(), "", 10))(t))
	}},
	{"DeletesWhatNeedsNoDelivery", func(t *testing.T, s store.Store) {
		c := creation("e1")
		c.Outbox = []store.Message{newMessage("m1", "e1", epoch), newMessage("m2", "e1", epoch), newMessage("m3", "e1", epoch)}
		commit(t, s, c)
		must(t, s.DeleteMessages(t.Context(), []string{"m1", "gone", "m3"}))
		must(t, s.DeleteMessages(t.Context(), nil))
		equal(t, "left", c.Outbox[1:2], got(s.Outbox(t.Context(), "", 10))(t))
	}},
}

var historyRules = []rule{
	{"PagesByNumberOfEvents", func(t *testing.T, s store.Store) {
		c := creation("e1")
		c.Head.LastSeq, c.Events = 9, newEvents(1, 9, epoch)
		commit(t, s, c)
		create(t, s, "e10")
		for _, page := range []struct {
			after    uint64
			limit    int
			from, to int
		}{{0, 4, 0, 4}, {4, 4, 4, 8}, {8, 4, 8, 9}, {9, 4, 9, 9}, {0, 0, 0, 9}} {
			equal(t, fmt.Sprint(page), c.Events[page.from:page.to], got(s.History(t.Context(), "e1", page.after, page.limit, 0))(t))
		}
		equal(t, "of none", 0, len(got(s.History(t.Context(), "e2", 0, 10, 0))(t)))
	}},
	{"PagesByBytesOfData", func(t *testing.T, s store.Store) {
		c := creation("e1")
		c.Head.LastSeq, c.Events = 4, newEvents(1, 4, epoch)
		for i, size := range []int{10, 10, 50, 10} {
			c.Events[i].Data = `"` + strings.Repeat("x", size-2) + `"`
		}
		commit(t, s, c)
		for _, page := range []struct {
			after    uint64
			maxBytes int
			from, to int
		}{{0, 20, 0, 2}, {0, 69, 0, 2}, {0, 70, 0, 3}, {2, 20, 2, 3}, {0, 1, 0, 1}, {0, 80, 0, 4}} {
			equal(t, fmt.Sprint(page), c.Events[page.from:page.to], got(s.History(t.Context(), "e1", page.after, 100, page.maxBytes))(t))
		}
	}},
}

// list creates executions one millisecond apart, from e0 on, as change says.
func list(t *testing.T, s store.Store, n int, change func(i int, h *store.Head)) {
	t.Helper()
	for i := range n {
		c := creation(fmt.Sprintf("e%d", i))
		c.Head.CreatedAtMS = epoch + int64(i)
		change(i, &c.Head)
		commit(t, s, c)
	}
}

var executionRules = []rule{
	{"AreListedNewestFirst", func(t *testing.T, s store.Store) {
		list(t, s, 5, func(i int, h *store.Head) {
			h.CreatedAtMS = epoch + int64(i/2)
			h.Tags = map[string]string{"i": fmt.Sprint(i)}
			if i == 4 {
				h.ParentID, h.ParentStep, h.RootID = "p1", "sub", "r1"
			}
		})
		heads := got(s.Executions(t.Context(), store.Filter{Limit: 10}))(t)
		equal(t, "heads; of one moment by id, last first", []string{"e4", "e3", "e2", "e1", "e0"}, ids(heads))
		equal(t, "head", *load(t, s, "e4").Head, heads[0])
	}},
	{"ArePagedWithoutGapsUnderInserts", func(t *testing.T, s store.Store) {
		list(t, s, 7, func(i int, h *store.Head) { h.CreatedAtMS = epoch + int64(i/3) })
		var all []string
		filter := store.Filter{Limit: 2}
		for n := 0; ; n++ {
			heads := got(s.Executions(t.Context(), filter))(t)
			if len(heads) == 0 {
				break
			}
			all = append(all, ids(heads)...)
			last := heads[len(heads)-1]
			filter.AfterCreatedMS, filter.AfterID = last.CreatedAtMS, last.ID
			newer := creation(fmt.Sprintf("n%d", n))
			newer.Head.CreatedAtMS = epoch + minute
			commit(t, s, newer)
		}
		equal(t, "pages", []string{"e6", "e5", "e4", "e3", "e2", "e1", "e0"}, all)
	}},
	{"AreFilteredByEachMember", func(t *testing.T, s store.Store) {
		list(t, s, 6, func(i int, h *store.Head) {
			h.Status = []string{"RUNNING", "FAILED"}[i%2]
			h.Workflow = []string{"order", "refund"}[i/3]
			h.Version = []string{"1", "2", "1"}[i%3]
			h.Tags = map[string]string{"region": []string{"eu", "us"}[i%2], "n": fmt.Sprint(i)}
			if i == 4 {
				h.ParentID, h.ParentStep, h.RootID, h.ErrorCount = "p1", "sub", "r1", 2
			}
		})
		for _, c := range []struct {
			name   string
			filter store.Filter
			want   []string
		}{
			{"status", store.Filter{Status: "FAILED"}, []string{"e5", "e3", "e1"}},
			{"workflow", store.Filter{Workflow: "order"}, []string{"e2", "e1", "e0"}},
			{"version", store.Filter{Workflow: "order", Version: "2"}, []string{"e1"}},
			{"one tag", store.Filter{Tags: map[string]string{"region": "us"}}, []string{"e5", "e3", "e1"}},
			{"two tags", store.Filter{Tags: map[string]string{"region": "us", "n": "3"}}, []string{"e3"}},
			{"tags that exclude each other", store.Filter{Tags: map[string]string{"region": "us", "n": "2"}}, nil},
			{"parent", store.Filter{ParentID: "p1"}, []string{"e4"}},
			{"created from, up to", store.Filter{CreatedAfterMS: epoch + 2, CreatedBeforeMS: epoch + 4}, []string{"e3", "e2"}},
			{"errored", store.Filter{ErroredOnly: true}, []string{"e4"}},
			{"several", store.Filter{Status: "RUNNING", Workflow: "refund", Tags: map[string]string{"region": "eu"}}, []string{"e4"}},
			{"after", store.Filter{Status: "FAILED", AfterCreatedMS: epoch + 3, AfterID: "e3"}, []string{"e1"}},
			{"after, by tag", store.Filter{Tags: map[string]string{"region": "us"}, AfterCreatedMS: epoch + 3, AfterID: "e3"}, []string{"e1"}},
		} {
			c.filter.Limit = 10
			equal(t, c.name, c.want, ids(got(s.Executions(t.Context(), c.filter))(t)))
		}
	}},
	{"ActiveOnesAreCountedUpToALimit", func(t *testing.T, s store.Store) {
		list(t, s, 6, func(i int, h *store.Head) {
			switch i {
			case 0:
				h.Status, h.FinishedAtMS = "COMPLETED", epoch
			case 1:
				h.ParentID, h.ParentStep = "p1", "sub"
			case 2:
				h.Status = "COMPENSATING"
			}
		})
		equal(t, "all", 4, got(s.CountActive(t.Context(), 10))(t))
		equal(t, "up to three", 3, got(s.CountActive(t.Context(), 3))(t))
	}},
}
