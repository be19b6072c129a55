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
// itself: what comes while others are written goes with the next.
//
// How many groups are written at once follows from how long they take. Where the
// disk is near, a group is work from beginning to end, and a second one beside it
// would only make both of them smaller. Where it is slow or far away nearly all of
// a group's time is waiting, and those who come meanwhile would wait for nothing.
// One that takes very long, because it waits for a lock, is not counted.
//
// A group is written whole or not at all. Where one of its members has lost its
// race nobody can say which, so each is written again alone.

const (
	// groupWork is about what a group costs both sides in processor time. What the
	// quickest groups last beyond that they wait.
	groupWork = 500 * time.Microsecond
	// groupsAtOnce bounds the groups that are written at once and not for long: half
	// of the connections that a server has unless it is told otherwise.
	groupsAtOnce = 4
	// groupAlone is how long a group counts among them.
	groupAlone = 5 * time.Millisecond
	// A group holds so many commits and about so many bytes at most.
	groupCommits = 64
	groupBytes   = 1 << 20
	// groupTimeout bounds a group, whose members' own times may be longer.
	groupTimeout = 20 * time.Second
)

// groups lines up the commits of a process.
type groups struct {
	store  *Store
	off    bool          // each commit goes alone
	atOnce int           // groupsAtOnce
	alone  time.Duration // groupAlone

	mu       sync.Mutex
	underWay map[*group]bool
	quickest time.Duration // of the last groups; 0 before the first
	waiting  []*member
}

// group is one that is written, or a commit that goes alone.
type group struct{ began time.Time }

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
	if len(g.waiting) == 0 && g.room() {
		own := g.begin()
		g.mu.Unlock()
		defer func() { g.end(own, err) }()
		return g.store.commitAlone(ctx, c)
	}
	m := &member{ctx: ctx, commit: c, done: make(chan error, 1)}
	g.waiting = append(g.waiting, m)
	g.start()
	g.mu.Unlock()
	return g.await(m)
}

// room reports whether another group may be written now.
func (g *groups) room() bool {
	now, prompt := time.Now(), 0
	for u := range g.underWay {
		if now.Sub(u.began) < g.alone {
			prompt++
		}
	}
	return prompt < min(max(1, int(g.quickest/groupWork)), g.atOnce)
}

func (g *groups) begin() *group {
	u := &group{time.Now()}
	g.underWay[u] = true
	return u
}

// end notes that a group was written, and has the next one written.
func (g *groups) end(u *group, err error) {
	g.mu.Lock()
	delete(g.underWay, u)
	if err == nil {
		g.quickest = quicker(g.quickest, time.Since(u.began))
	}
	g.start()
	g.mu.Unlock()
}

// start has the next group written, if somebody waits and there is room. Its
// caller holds mu, as those of room and begin do.
func (g *groups) start() {
	if len(g.waiting) == 0 || !g.room() {
		return
	}
	members, u := g.next(), g.begin()
	go func() { g.end(u, g.together(members)) }()
}

// await waits for a member's group, and has it written when those under way take
// long. Whoever gives up before it was formed has written nothing; after that
// nobody knows.
func (g *groups) await(m *member) error {
	patience := time.NewTicker(g.alone)
	defer patience.Stop()
	for {
		select {
		case err := <-m.done:
			return err
		case <-patience.C:
			g.mu.Lock()
			g.start()
			g.mu.Unlock()
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

// next forms a group of those who wait, no execution twice.
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
func (g *groups) together(members []*member) error {
	if len(members) == 1 {
		m := members[0]
		err := g.store.commitAlone(m.ctx, m.commit)
		m.done <- err
		return err
	}
	commits := make([]*store.Commit, len(members))
	for i, m := range members {
		commits[i] = m.commit
	}
	ctx, cancel := context.WithTimeout(context.Background(), groupTimeout)
	defer cancel()
	err := g.store.commitTogether(ctx, commits)
	for _, m := range members {
		if err != nil && !errors.Is(err, store.ErrUnknownOutcome) {
			go func() { m.done <- g.store.commitAlone(m.ctx, m.commit) }()
			continue
		}
		m.done <- err
	}
	return err
}

// quicker keeps about the shortest of the last some hundred durations: it grows by
// and by, until another is as short.
func quicker(quickest, took time.Duration) time.Duration {
	if quickest == 0 {
		return took
	}
	return min(took, quickest+quickest/512)
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
