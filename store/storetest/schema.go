package storetest

import (
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
		{"IsRefusedWhereItIsNewer", func(t *testing.T, b Blank) {
			s := b.Open(t)
			_, _, err := s.Migrate(t.Context())
			must(t, err)
			b.Exec(t, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, TRUE)`)
			wantError(t, s.CheckSchema(t.Context()), store.ErrSchema)
			_, _, err = s.Migrate(t.Context())
			wantError(t, err, store.ErrSchema)
		}},
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.check(t, blank(t))
		})
	}
}
