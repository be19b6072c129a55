package postgres

import (
	"context"
	"math/rand/v2"
	"time"

	"perigee/store"
)

const conflictSQL = `DO $$ BEGIN RAISE EXCEPTION 'a conflict of the test' USING ERRCODE = '40001'; END $$`

// DisturbWithConflicts makes about every second transaction that writes fail at
// its end, at the first try, as a database without locks does.
func (s *Store) DisturbWithConflicts() {
	s.disturb = func(sc *script) {
		if sc.write && sc.try == 1 && rand.N(2) == 0 {
			sc.add(conflictSQL, nil)
		}
	}
}

// Statements are the longest statements of the store by name.
var Statements = map[string]string{
	"claim": claimSQL, "claim without locks": claimWithoutLocksSQL, "insert tasks": insertTasksSQL.many, "create heads": createHeadsSQL.many,
}

// Watch shows each statement that the store sends from now on.
func (s *Store) Watch(see func(sql string, args []any)) {
	s.disturb = func(sc *script) {
		for _, query := range sc.batch.QueuedQueries {
			see(query.SQL, query.Arguments)
		}
	}
}

// Groups sets how many groups of commits are written at once, and how long each of
// them counts.
func (s *Store) Groups(atOnce int, alone time.Duration) {
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	s.groups.atOnce, s.groups.alone = atOnce, alone
}

// GroupsTake has groups last so many times as long as what they cost.
func (s *Store) GroupsTake(times int) {
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	s.groups.quickest = time.Duration(times) * groupWork
}

// Waiting is how many commits wait for their group.
func (s *Store) Waiting() int {
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	return len(s.groups.waiting)
}

// CommitTogether writes commits as a group.
func (s *Store) CommitTogether(ctx context.Context, group []*store.Commit) error {
	return s.commitTogether(ctx, group)
}
