package simulation_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/simulation"
	"perigee/store"
	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
	"perigee/store/sqlite"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // ten thousand short runs: memory for time
	os.Exit(pgtest.Main(m))
}

var (
	definitions = flag.Int("definitions", 2000, "random definitions to simulate in memory")
	seeds       = flag.Int("seeds", 5, "runs of each definition")
	fileRuns    = flag.Int("file-runs", 200, "runs on SQLite in a file")
	pgRuns      = flag.Int("postgres-runs", 100, "runs on Postgres")
	only        = flag.Uint64("only", 0, "replay the run of this number")
	soak        = flag.Duration("soak", 0, "go on with new seeds for this long")
)

// run is one definition under one seed; its number names both.
func run(st store.Store, number uint64, opts simulation.Options) (*simulation.World, error) {
	definition, seed := number/1000, number%1000
	name := fmt.Sprintf("wf-%d-%d", definition, seed)
	program := simulation.Generate(rand.New(rand.NewPCG(definition, 1)), name)
	opts.Prefix = fmt.Sprintf("r%d", number)
	w, err := simulation.NewWorld(st, number, program, opts)
	if err != nil {
		return nil, err
	}
	if err := w.Run(); err != nil {
		return w, fmt.Errorf("%w\nreplay with: go test ./engine/simulation -run TestSimulation_InMemory -only %d", err, number)
	}
	return w, nil
}

func open(t *testing.T, opts sqlite.Options) store.Store {
	t.Helper()
	st, err := sqlite.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st
}

func TestSimulation_InMemory(t *testing.T) {
	memory := sqlite.Options{Path: sqlite.Memory}
	if *only > 0 {
		w, err := run(open(t, memory), *only, simulation.Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, trace(w))
		}
		return
	}
	reached := newTally()
	const lanes = 2
	for lane := range lanes {
		t.Run(fmt.Sprint("lane", lane), func(t *testing.T) {
			t.Parallel()
			var st store.Store
			for d := lane; d < *definitions; d += lanes {
				if d/lanes%10 == 0 {
					st = open(t, memory) // a store that does not grow for ever
				}
				for s := range *seeds {
					number := uint64(d+1)*1000 + uint64(s)
					w, err := run(st, number, simulation.Options{})
					if err != nil {
						t.Fatal(err)
					}
					reached.add(w)
				}
			}
		})
	}
	t.Cleanup(func() { reached.report(t, *definitions**seeds >= 10_000) })
}

func TestSimulation_OnAFile(t *testing.T) {
	t.Parallel()
	st := open(t, sqlite.Options{Path: t.TempDir() + "/sim.db"})
	for i := range *fileRuns {
		if _, err := run(st, uint64(500_000+i)*1000, simulation.Options{}); err != nil {
			t.Fatal(err)
		}
	}
}

func openPostgres(t *testing.T) store.Store {
	t.Helper()
	st, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st
}

// TestSimulation_OnPostgres runs seeds that also run in memory: both stores
// must give the same trace.
func TestSimulation_OnPostgres(t *testing.T) {
	t.Parallel()
	pg, memory := openPostgres(t), open(t, sqlite.Options{Path: sqlite.Memory})
	for i := range *pgRuns {
		number := uint64(600_000+i) * 1000
		got, err := run(pg, number, simulation.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := run(memory, number, simulation.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Trace(), got.Trace()); diff != "" {
			t.Fatalf("run %d: Postgres differs from SQLite (-sqlite +postgres):\n%s", number, diff)
		}
	}
}

func TestSimulation_SameSeedGivesTheSameTrace(t *testing.T) {
	for number := uint64(700_000_000); number < 700_003_000; number += 1000 {
		var traces [2]string
		for i := range traces {
			w, err := run(open(t, sqlite.Options{Path: sqlite.Memory}), number, simulation.Options{})
			if err != nil {
				t.Fatal(err)
			}
			traces[i] = w.Trace()
		}
		if diff := cmp.Diff(traces[0], traces[1]); diff != "" {
			t.Errorf("run %d: %s", number, diff)
		}
	}
}

// TestSoak goes on for as long as -soak says (make soak).
func TestSoak(t *testing.T) {
	end := time.Now().Add(*soak)
	first := uint64(time.Now().Unix()) * 1000
	for i := uint64(0); time.Now().Before(end); i++ {
		if _, err := run(open(t, sqlite.Options{Path: sqlite.Memory}), (first+i)*1000, simulation.Options{Turns: 80}); err != nil {
			t.Fatal(err)
		}
	}
}

func trace(w *simulation.World) string {
	if w == nil {
		return ""
	}
	return w.Trace()
}

// tally sums up what runs reached.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func newTally() *tally { return &tally{counts: map[string]int{}} }

func (a *tally) add(w *simulation.World) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for what, n := range w.Counts() {
		a.counts[what] += n
	}
}

// report shows the counts and, after a full run, asserts that every event type
// and every rule was reached.
func (a *tally) report(t *testing.T, full bool) {
	var text strings.Builder
	for _, what := range slices.Sorted(maps.Keys(a.counts)) {
		fmt.Fprintf(&text, "%8d %s\n", a.counts[what], what)
	}
	t.Logf("reached:\n%s", text.String())
	if !full {
		return
	}
	for _, what := range simulation.MustReach() {
		if a.counts[what] == 0 {
			t.Errorf("the generators never reached %q", what)
		}
	}
}
