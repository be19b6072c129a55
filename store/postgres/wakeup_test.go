package postgres_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/store"
	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
)

func TestWakeUp_OneOfThoseThatSetItAtOnceHasSetIt(t *testing.T) {
	for name, s := range map[string]*postgres.Store{
		"Postgres": open(t, postgres.Options{URL: pgtest.Migrated(t), MaxConns: 8}),
		"as DSQL":  open(t, postgres.Options{URL: repeatableRead(migratedAsDSQL(t)), NoLocks: true, MaxConns: 8}),
	} {
		t.Run(name, func(t *testing.T) {
			seen, err := s.WakeUp(t.Context())
			if diff := cmp.Diff(store.WakeUp{}, seen); diff != "" || err != nil {
				t.Fatalf("%v; of a new database (-want +got):\n%s", err, diff)
			}
			for round := range int64(3) {
				var setters sync.WaitGroup
				var sets, at atomic.Int64
				for i := range int64(8) {
					setters.Go(func() {
						mine := 100*round + i + 1
						set, err := s.SetWakeUp(t.Context(), seen, mine)
						if err != nil {
							t.Error(err)
						}
						if set {
							sets.Add(1)
							at.Store(mine)
						}
					})
				}
				setters.Wait()
				if seen, err = s.WakeUp(t.Context()); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(store.WakeUp{AtMS: at.Load(), Version: round + 1}, seen); diff != "" || sets.Load() != 1 {
					t.Errorf("%d have set it; (-want +got):\n%s", sets.Load(), diff)
				}
			}
		})
	}
}
