package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"perigee/store"
	"perigee/store/sqlite"
)

// grow appends one event to an execution that it creates where there is none.
func grow(ctx context.Context, s store.Store, id string) error {
	return s.WithHeadLocked(ctx, store.LoadRequest{ID: id, NowMS: 1}, func(l store.Loaded) (*store.Commit, error) {
		c := store.Commit{Head: store.Head{ID: id, Incarnation: 1, CreatedAtMS: 1}}
		if l.Head != nil {
			c.Head, c.Seen = *l.Head, store.Seen{Incarnation: 1, Seq: l.Head.LastSeq}
		}
		c.Head.LastSeq++
		c.Events = []store.Event{{Seq: c.Head.LastSeq, Type: "StepSkipped", AtMS: 1, Data: "{}"}}
		return &c, nil
	})
}

func TestTwoStoresOnOneFile_LoseNothing(t *testing.T) {
	const writers, each = 4, 15
	path := newPath(t)
	first := migrated(t, sqlite.Options{Path: path})
	second := open(t, sqlite.Options{Path: path})
	var group sync.WaitGroup
	for w := range writers {
		for _, s := range []*sqlite.Store{first, second} {
			group.Go(func() {
				for range each {
					if err := grow(context.Background(), s, "e"); err != nil {
						t.Errorf("writer %d: %v", w, err)
					}
				}
			})
		}
	}
	group.Wait()
	loaded, err := first.Load(t.Context(), store.LoadRequest{ID: "e"})
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * writers * each; loaded.Head.LastSeq != uint64(want) || len(loaded.Events) != want {
		t.Errorf("want %d events, got %d under a head at %d", want, len(loaded.Events), loaded.Head.LastSeq)
	}
}

// crashPath names the file to a test binary that runs as the process to be killed.
const crashPath = "PERIGEE_TEST_CRASH_PATH"

// TestMain is the process to be killed where the environment says so: it
// writes to three executions, in groups, and prints each write that was answered.
func TestMain(m *testing.M) {
	path := os.Getenv(crashPath)
	if path == "" {
		os.Exit(m.Run())
	}
	s, err := sqlite.Open(context.Background(), sqlite.Options{Path: path})
	if err == nil {
		_, _, err = s.Migrate(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := range 3 {
		id := fmt.Sprintf("e%d", i)
		go func() {
			for {
				if err := grow(context.Background(), s, id); err != nil {
					fmt.Println(err)
					os.Exit(1)
				}
				fmt.Println(id)
			}
		}()
	}
	select {}
}

func TestCrash_LeavesWhatWasAnsweredAndNoHalves(t *testing.T) {
	path := newPath(t)
	answered := map[string]int{}
	for round := range 3 {
		process := exec.Command(os.Args[0])
		process.Env = append(os.Environ(), crashPath+"="+path)
		out, err := process.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 100+round && lines.Scan(); n++ {
			if !strings.HasPrefix(lines.Text(), "e") {
				t.Fatal(lines.Text())
			}
			answered[lines.Text()]++
		}
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		var died *exec.ExitError
		if err := process.Wait(); !errors.As(err, &died) {
			t.Fatalf("want a process that was killed, got %v", err)
		}
	}
	s := migrated(t, sqlite.Options{Path: path})
	total := 0
	for id, n := range answered {
		loaded, err := s.Load(t.Context(), store.LoadRequest{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		if uint64(len(loaded.Events)) != loaded.Head.LastSeq || len(loaded.Events) < n {
			t.Errorf("%s: %d events under a head at %d, %d were answered", id, len(loaded.Events), loaded.Head.LastSeq, n)
		}
		total += n
	}
	if total < 300 {
		t.Errorf("want the answers of three rounds, got %d", total)
	}
}
