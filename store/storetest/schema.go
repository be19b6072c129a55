package storetest

import (
	"fmt"
	"sync"
	"testing"

	"perigee/store"
)

// Blank is an empty database, before any Migrate.
type Blank struct {
	// Open opens a store on it, to be closed by t.Cleanup. A database that
	// only one store can reach may return the same store again.
	Open func(t *testing.T) store.Store
	// Exec runs a statement past the store, to stage what no release wrote.
	Exec func(t *testing.T, statement string)
}

// RunSchema checks the rules of Migrate and CheckSchema. Both backends keep
// versions in the table goose_db_version.
func RunSchema(t *testing.T, blank func(t *testing.T) Blank) {
	rules := []struct {
		name  string
		check func(t *testing.T, b Blank)
	}{
		{"IsMissingAtFirst", func(t *testing.T, b Blank) {
			wantError(t, b.Open(t).CheckSchema(t.Context()), store.ErrSchema)
		}},
		{"IsBroughtToThisRelease", func(t *testing.T, b Blank) {
			s := b.Open(t)
			from, to, err := s.Migrate(t.Context())
			must(t, err)
			if from != 0 || to <= 0 {
				t.Fatalf("want a migration from 0, got %d to %d", from, to)
			}
			must(t, s.CheckSchema(t.Context()))
			create(t, s, "e1")
			again, still, err := s.Migrate(t.Context())
			must(t, err)
			equal(t, "versions", [2]int64{to, to}, [2]int64{again, still})
			equal(t, "data", newHead("e1"), *load(t, s, "e1").Head)
		}},
		{"IsMigratedByManyAtOnce", func(t *testing.T, b Blank) {
			var group sync.WaitGroup
			for range 4 {
				s := b.Open(t)
				group.Go(func() {
					if _, _, err := s.Migrate(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			s := b.Open(t)
			must(t, s.CheckSchema(t.Context()))
			create(t, s, "e1")
		}},
		{"IsFinishedWhereAMigrationDied", func(t *testing.T, b Blank) {
			// Every statement was run, but the last version row was not written.
			s := b.Open(t)
			_, to, err := s.Migrate(t.Context())
			must(t, err)
			b.Exec(t, `DELETE FROM goose_db_version WHERE version_id >= 5`)
			wantError(t, s.CheckSchema(t.Context()), store.ErrSchema)
			from, again, err := s.Migrate(t.Context())
			must(t, err)
			equal(t, "versions", [2]int64{4, to}, [2]int64{from, again})
			must(t, s.CheckSchema(t.Context()))
		}},
		{"TakesRowsWithoutRootForTopLevelOnes", func(t *testing.T, b Blank) {
			// As the releases wrote them whose schema ended with version 23.
			s := b.Open(t)
			_, to, err := s.Migrate(t.Context())
			must(t, err)
			row := readyTask("e1", "a", 2)
			create(t, s, "e1", row)
			b.Exec(t, `ALTER TABLE executions DROP COLUMN root_id`)
			b.Exec(t, `ALTER TABLE tasks DROP COLUMN root_id`)
			b.Exec(t, `DELETE FROM goose_db_version WHERE version_id >= 24`)
			s = b.Open(t)
			from, again, err := s.Migrate(t.Context())
			must(t, err)
			equal(t, "versions", [2]int64{23, to}, [2]int64{from, again})
			equal(t, "head", newHead("e1"), *load(t, s, "e1").Head)
			equal(t, "tasks", []store.Task{row}, tasksOf(t, s, "e1"))
		}},
		{"IsServedWhereItIsNewerAndWorksWithThisRelease", func(t *testing.T, b Blank) {
			s := b.Open(t)
			_, release, err := s.Migrate(t.Context())
			must(t, err)
			b.Exec(t, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, TRUE)`)
			b.Exec(t, fmt.Sprintf(`UPDATE oldest_release SET version = %d`, release))
			must(t, s.CheckSchema(t.Context()))
			from, to, err := s.Migrate(t.Context())
			must(t, err)
			equal(t, "versions, left as they are", [2]int64{99999, 99999}, [2]int64{from, to})
			must(t, s.CheckSchema(t.Context()))
			create(t, s, "e1")
			// The newer release may change its mind, and is then obeyed.
			b.Exec(t, fmt.Sprintf(`UPDATE oldest_release SET version = %d`, release+1))
			wantError(t, s.CheckSchema(t.Context()), store.ErrSchema)
		}},
		{"IsRefusedWhereItIsNewerAndNotForThisRelease", func(t *testing.T, b Blank) {
			s := b.Open(t)
			_, _, err := s.Migrate(t.Context())
			must(t, err)
			b.Exec(t, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, TRUE)`)
			for _, stage := range []string{`UPDATE oldest_release SET version = 99999`, `DELETE FROM oldest_release`} {
				b.Exec(t, stage)
				wantError(t, s.CheckSchema(t.Context()), store.ErrSchema)
				_, _, err = s.Migrate(t.Context())
				wantError(t, err, store.ErrSchema)
			}
		}},
		{"SaysWhichReleaseIsTheOldest", func(t *testing.T, b Blank) {
			s := b.Open(t)
			_, release, err := s.Migrate(t.Context())
			must(t, err)
			if store.OldestRelease < store.OldestReleaseTable || store.OldestRelease > release {
				t.Fatalf("OldestRelease is %d; expected %d to %d, of releases that look for it", store.OldestRelease, store.OldestReleaseTable, release)
			}
			// A release of the past that has it lower, as one that ran before.
			b.Exec(t, `UPDATE oldest_release SET version = 1`)
			_, _, err = s.Migrate(t.Context())
			must(t, err)
			b.Exec(t, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, TRUE)`)
			must(t, s.CheckSchema(t.Context()))
			b.Exec(t, fmt.Sprintf(`DELETE FROM oldest_release WHERE version = %d`, store.OldestRelease))
			wantError(t, s.CheckSchema(t.Context()), store.ErrSchema)
		}},
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.check(t, blank(t))
		})
	}
}
