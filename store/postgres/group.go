package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"perigee/store"
)

// Commits of several executions that meet in one process share a transaction:
// they touch different rows, so all that a commit costs beside its rows (setting
// statements up, the flush, the round trip) is paid once. A group forms by
// itself: what comes while others are written goes with the next. One that takes
// long, because it waits for a lock or a slow disk, holds nobody up: after a
// while the next is written beside it.
//
// A group is written whole or not at all. Where one of its members has lost its
// race nobody can say which, so each is written again alone.

const (
	// groupAlone is how long a group is written before the next is, too.
	groupAlone = 5 * time.Millisecond
	// A group holds so many commits and about so many bytes at most.
	groupCommits = 64
	groupBytes   = 1 << 20
	// groupTimeout bounds a group, whose members' own times may be longer.
	groupTimeout = 20 * time.Second
)

// groups lines up the commits of a process.
type groups struct {
	store *Store
	off   bool          // each commit goes alone
	alone time.Duration // groupAlone

	mu      sync.Mutex
	turns   int // groups so far
	turn    int // the last group, while it is written and has not been for long; else 0
	waiting []*member
}

// member is a commit that waits for its group.
type member struct {
	ctx    context.Context
	commit *store.Commit
	done   chan error
}

// write writes a commit, alone or with others.
func (g *groups) write(ctx context.Context, c *store.Commit) (err error) {
	if g.off {
		return g.store.commitAlone(ctx, c)
	}
	g.mu.Lock()
	if g.turn != 0 {
		m := &member{ctx: ctx, commit: c, done: make(chan error, 1)}
		g.waiting = append(g.waiting, m)
		turn := g.turn
		g.mu.Unlock()
		return g.await(m, turn)
	}
	turn := g.nextTurn()
	g.mu.Unlock()
	defer g.pass(turn)
	return g.store.commitAlone(ctx, c)
}

func (g *groups) nextTurn() int {
	g.turns++
	g.turn = g.turns
	return g.turn
}

// await waits for a member's group, and has it written when the one before takes
// long. Whoever gives up before it was formed has written nothing; after that
// nobody knows.
func (g *groups) await(m *member, turn int) error {
	patience := time.NewTicker(g.alone)
	defer patience.Stop()
	for {
		select {
		case err := <-m.done:
			return err
		case <-patience.C:
			turn = g.pass(turn)
		case <-m.ctx.Done():
			return g.leave(m)
		}
	}
}

func (g *groups) leave(m *member) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, m); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		return m.ctx.Err()
	}
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, m.ctx.Err())
}

// pass has the next group written, if there is one, unless that was done in this
// turn. It gives the turn that it is now.
func (g *groups) pass(turn int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.turn != turn {
		return g.turn
	}
	g.turn = 0
	if group := g.next(); len(group) > 0 {
		turn := g.nextTurn()
		go func() {
			defer g.pass(turn)
			g.together(group)
		}()
	}
	return g.turn
}

// next forms a group of those who wait, no execution twice; none of nobody.
func (g *groups) next() (group []*member) {
	taken, bytes := map[string]bool{}, 0
	left := g.waiting[:0]
	for _, m := range g.waiting {
		size := bytesOf(m.commit)
		if len(group) == groupCommits || taken[m.commit.Head.ID] || len(group) > 0 && bytes+size > groupBytes {
			left = append(left, m)
			continue
		}
		group, bytes = append(group, m), bytes+size
		taken[m.commit.Head.ID] = true
	}
	clear(g.waiting[len(left):])
	g.waiting = left
	return group
}

// rowBytes is a guess at what a row takes beside its payload.
const rowBytes = 500

// bytesOf is about what a commit sends.
func bytesOf(c *store.Commit) int {
	n := rowBytes * (1 + len(c.Removed) + len(c.Marked) + len(c.Inserted) + len(c.Events) + len(c.Children) + len(c.Outbox))
	for i := range c.Events {
		n += len(c.Events[i].Data)
	}
	for i := range c.Inserted {
		n += len(c.Inserted[i].Input)
	}
	if c.Snapshot != nil {
		n += len(c.Snapshot.Data)
	}
	return n
}

// together writes a group and tells its members.
func (g *groups) together(group []*member) {
	if len(group) == 1 {
		m := group[0]
		m.done <- g.store.commitAlone(m.ctx, m.commit)
		return
	}
	commits := make([]*store.Commit, len(group))
	for i, m := range group {
		commits[i] = m.commit
	}
	ctx, cancel := context.WithTimeout(context.Background(), groupTimeout)
	defer cancel()
	err := g.store.commitTogether(ctx, commits)
	for _, m := range group {
		if err != nil && !errors.Is(err, store.ErrUnknownOutcome) {
			go func() { m.done <- g.store.commitAlone(m.ctx, m.commit) }()
			continue
		}
		m.done <- err
	}
}

// commitAlone writes one commit.
func (s *Store) commitAlone(ctx context.Context, c *store.Commit) error {
	err := s.write(ctx, "commit", func(sc *script) { sc.err = apply(sc, c) })
	return lostOnConflict(err)
}

// commitTogether writes several commits in one transaction, in one try.
func (s *Store) commitTogether(ctx context.Context, commits []*store.Commit) error {
	sc := &script{try: 1, write: true}
	err := apply(sc, commits...)
	if err == nil {
		err = s.once(ctx, sc)
	}
	if err != nil {
		return wrap("commit", commitError(err))
	}
	s.stats.commits.Add(1)
	return nil
}
