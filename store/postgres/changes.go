package postgres

import (
	"cmp"
	"slices"

	"perigee/store"
)

// changes are the rows that one or more commits write, sorted by what becomes
// of them.
type changes struct {
	created   []store.Head
	moved     []movedHead
	replaced  []string // executions whose task rows are all removed
	removed   []store.TaskRemoval
	marked    []store.TaskRemoval
	inserted  []store.Task
	events    eventRows
	snapshots []snapshotRow
	children  []store.NewExecution
	outbox    []store.Message
	delivered []string
}

// movedHead is a head and where it was seen.
type movedHead struct {
	store.Head
	seen store.Seen
}

type snapshotRow struct {
	execution string
	*store.Snapshot
}

// changesOf sorts the rows of commits. Heads are in the order of their ids, in
// which all transactions that move several lock them.
func changesOf(commits []*store.Commit) *changes {
	all := &changes{}
	for _, c := range commits {
		if c.Seen.Incarnation == 0 {
			all.created = append(all.created, c.Head)
		} else {
			all.moved = append(all.moved, movedHead{c.Head, c.Seen})
		}
		if c.ReplaceTasks {
			all.replaced = append(all.replaced, c.Head.ID)
		}
		if c.Snapshot != nil {
			all.snapshots = append(all.snapshots, snapshotRow{c.Head.ID, c.Snapshot})
		}
		for _, m := range c.Marked {
			all.marked = append(all.marked, store.TaskRemoval(m))
		}
		all.events.append(c.Head.ID, c.Events)
		join(&all.removed, c.Removed)
		join(&all.inserted, c.Inserted)
		join(&all.children, c.Children)
		join(&all.outbox, c.Outbox)
		join(&all.delivered, c.Delivered)
	}
	slices.SortFunc(all.moved, func(a, b movedHead) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// join appends without copying what stands alone.
func join[R any](to *[]R, more []R) {
	if len(*to) == 0 {
		*to = more[:len(more):len(more)]
		return
	}
	*to = append(*to, more...)
}
