package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/store"
)

const at = int64(1_700_000_000_000)

var errInjected = errors.New("injected")

// newStore is a migrated store in a new file.
func newStore(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "perigee.db")
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func head(id string) store.Head {
	return store.Head{ID: id, Incarnation: 1, Status: "RUNNING", LastSeq: 1, LastAtMS: at, CreatedAtMS: at}
}

// growth is a commit of one event, from seq seen; seen 0 creates the execution.
func growth(id string, seen uint64) store.Commit {
	c := store.Commit{Head: head(id), Events: []store.Event{{Seq: seen + 1, Type: "StepSkipped", AtMS: at, Data: "{}"}}}
	if seen > 0 {
		c.Seen, c.Head.LastSeq = store.Seen{Incarnation: 1, Seq: seen}, seen+1
	}
	return c
}

// inOneGroup runs calls so that the writer finds them all waiting: it is kept
// busy by a decision until the last is in the queue. Answers are in order.
func inOneGroup(t *testing.T, s *Store, calls ...func() error) []error {
	t.Helper()
	release := hold(t, s)
	answers := make([]chan error, len(calls))
	for i, call := range calls {
		answers[i] = make(chan error, 1)
		go func() { answers[i] <- call() }()
		waitForQueue(s, i+1)
	}
	release()
	errs := make([]error, len(calls))
	for i := range answers {
		errs[i] = <-answers[i]
	}
	return errs
}

// hold keeps the writer busy until the function that it returns is called.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	entered, leave, left := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		left <- s.WithHeadLocked(context.Background(), store.LoadRequest{ID: "holder"}, func(store.Loaded) (*store.Commit, error) {
			close(entered)
			<-leave
			return nil, nil
		})
	}()
	<-entered
	return func() {
		close(leave)
		if err := <-left; err != nil {
			t.Errorf("holder: %v", err)
		}
	}
}

func waitForQueue(s *Store, n int) {
	for len(s.writer.queue) < n {
		runtime.Gosched()
	}
}

func committing(s *Store, c store.Commit) func() error {
	return func() error { return s.Commit(context.Background(), c) }
}

// failTimes makes a control statement fail, the first n times.
func failTimes(s *Store, text string, n int) {
	s.writer.fault = func(statement string) error {
		if statement == text && n > 0 {
			n--
			return errInjected
		}
		return nil
	}
}

// lastSeqs are the heads' last sequence numbers, 0 where there is none.
func lastSeqs(t *testing.T, s *Store, ids ...string) map[string]uint64 {
	t.Helper()
	seqs := map[string]uint64{}
	for _, id := range ids {
		l, err := s.Load(t.Context(), store.LoadRequest{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		if l.Head != nil {
			seqs[id] = l.Head.LastSeq
		}
		if uint64(len(l.Events)) != seqs[id] {
			t.Errorf("%s: %d events under a head at %d", id, len(l.Events), seqs[id])
		}
	}
	return seqs
}

func isLost(err error) bool {
	_, lost := errors.AsType[*store.LostError](err)
	return lost
}

func TestWriter_AGroupIsOneCommit(t *testing.T) {
	s := newStore(t, Options{})
	before := s.Stats().Commits
	var calls []func() error
	for i := range 20 {
		calls = append(calls, committing(s, growth(fmt.Sprintf("e%d", i), 0)))
	}
	for i, err := range inOneGroup(t, s, calls...) {
		if err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if commits := s.Stats().Commits - before; commits != 1 {
		t.Errorf("want one commit for 20 writes, got %d", commits)
	}
}

func TestWriter_WithoutGroupsEachWriteIsACommit(t *testing.T) {
	s := newStore(t, Options{NoGroupCommit: true})
	before := s.Stats().Commits
	inOneGroup(t, s, committing(s, growth("a", 0)), committing(s, growth("b", 0)), committing(s, growth("c", 0)))
	if commits := s.Stats().Commits - before; commits != 3 {
		t.Errorf("want three commits, got %d", commits)
	}
}

func TestWriter_ALoserInAGroupTakesNobodyAlong(t *testing.T) {
	s := newStore(t, Options{})
	errs := inOneGroup(t, s,
		committing(s, growth("a", 0)), committing(s, growth("a", 0)), committing(s, growth("a", 1)), committing(s, growth("b", 0)))
	if errs[0] != nil || !isLost(errs[1]) || errs[2] != nil || errs[3] != nil {
		t.Errorf("want only the second to lose, got %v", errs)
	}
	if diff := cmp.Diff(map[string]uint64{"a": 2, "b": 1}, lastSeqs(t, s, "a", "b")); diff != "" {
		t.Error(diff)
	}
}

func TestWriter_ACommitThatFailsIsToldToAllMembers(t *testing.T) {
	for _, path := range []string{"", Memory} {
		s := newStore(t, Options{Path: path})
		failTimes(s, commitSQL, 2) // of the holder's transaction, which wrote nothing, and the group's
		s.writer.fault = after(s, 1, s.writer.fault)
		errs := inOneGroup(t, s, committing(s, growth("a", 0)), committing(s, growth("a", 7)), committing(s, growth("b", 0)))
		for i, err := range errs {
			// The loser, too: what it lost against did not happen.
			if !errors.Is(err, store.ErrUnknownOutcome) || isLost(err) {
				t.Errorf("member %d: want ErrUnknownOutcome, got %v", i, err)
			}
		}
		s.writer.fault = nil
		if diff := cmp.Diff(map[string]uint64{}, lastSeqs(t, s, "a", "b")); diff != "" {
			t.Error(diff)
		}
		if err := s.Commit(t.Context(), growth("a", 0)); err != nil {
			t.Errorf("the next write: %v", err)
		}
	}
}

// after lets the first n COMMITs pass the fault.
func after(s *Store, n int, fault func(string) error) func(string) error {
	return func(text string) error {
		if text == commitSQL && n > 0 {
			n--
			return nil
		}
		return fault(text)
	}
}

// halfway is a growth that fails after its head is written.
func halfway(id string, seen uint64) store.Commit {
	c := growth(id, seen)
	c.Removed = []store.TaskRemoval{{Key: id + "/none"}}
	return c
}

func TestWriter_AGroupWhoseMemberFailsHalfWayIsRunAgainOneByOne(t *testing.T) {
	for _, path := range []string{"", Memory} {
		s := newStore(t, Options{Path: path})
		runs := map[string]int{}
		counted := func(name string, c store.Commit) func() error {
			return func() error {
				return s.WithHeadLocked(context.Background(), store.LoadRequest{ID: c.Head.ID}, func(store.Loaded) (*store.Commit, error) {
					runs[name]++
					return &c, nil
				})
			}
		}
		before := s.Stats().Commits
		errs := inOneGroup(t, s, counted("a after 0", growth("a", 0)), counted("loser", halfway("a", 1)),
			counted("b after 0", growth("b", 0)), counted("a after 1", growth("a", 1)))
		if errs[0] != nil || !isLost(errs[1]) || errs[2] != nil || errs[3] != nil {
			t.Errorf("want only the second to lose, got %v", errs)
		}
		// What came after the loser was not run in the lost transaction.
		want := map[string]int{"a after 0": 2, "loser": 2, "b after 0": 1, "a after 1": 1}
		if diff := cmp.Diff(want, runs); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]uint64{"a": 2, "b": 1}, lastSeqs(t, s, "a", "b")); diff != "" {
			t.Error(diff)
		}
		if commits := s.Stats().Commits - before; commits != 3 {
			t.Errorf("want a commit for each of three writes, got %d", commits)
		}
	}
}

func TestWriter_AMemberIsRunAgainOnceOnly(t *testing.T) {
	s := newStore(t, Options{})
	s.writer.fault = func(text string) error {
		if text == rollbackSQL {
			return errInjected
		}
		return nil
	}
	errs := inOneGroup(t, s, committing(s, halfway("a", 0)), committing(s, growth("a", 0)), committing(s, halfway("a", 1)))
	if !isLost(errs[0]) || errs[1] != nil || !isLost(errs[2]) {
		t.Errorf("want the first and the last to lose, got %v", errs)
	}
	if diff := cmp.Diff(map[string]uint64{"a": 1}, lastSeqs(t, s, "a")); diff != "" {
		t.Error(diff)
	}
}

func TestWriter_ABeginThatFailsWritesNothing(t *testing.T) {
	s := newStore(t, Options{})
	failTimes(s, beginSQL, 1)
	if err := s.Commit(t.Context(), growth("a", 0)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("want ErrUnavailable, got %v", err)
	}
	if err := s.Commit(t.Context(), growth("a", 0)); err != nil {
		t.Errorf("the next write: %v", err)
	}
}

func TestWriter_AFullDiskFailsOnlyWhoFillsIt(t *testing.T) {
	// A bound on the file stands for a full disk. It is the connection's, and a
	// lost group costs the writer its connection: each BEGIN sets it anew.
	s := newStore(t, Options{})
	pages := 100
	s.writer.fault = func(text string) error {
		if text != beginSQL {
			return nil
		}
		_, err := s.writer.c.raw.ExecContext(context.Background(), fmt.Sprintf("PRAGMA max_page_count = %d", pages))
		return err
	}
	large := growth("large", 0)
	large.Events[0].Data = `"` + strings.Repeat("x", 1<<20) + `"`
	errs := inOneGroup(t, s, committing(s, growth("a", 0)), committing(s, large), committing(s, growth("b", 0)))
	if errs[0] != nil || !errors.Is(errs[1], store.ErrUnavailable) || errs[2] != nil {
		t.Errorf("want only the second to fail, got %v", errs)
	}
	pages = 1 << 20
	if err := s.Commit(t.Context(), large); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if diff := cmp.Diff(map[string]uint64{"a": 1, "b": 1, "large": 1}, lastSeqs(t, s, "a", "b", "large")); diff != "" {
		t.Error(diff)
	}
}

func TestWriter_ACallerWhoGivesUpWhileWaitingWritesNothing(t *testing.T) {
	s := newStore(t, Options{})
	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() { answer <- s.Commit(ctx, growth("a", 0)) }()
	waitForQueue(s, 1)
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) { // before the writer is free
		t.Errorf("want context.Canceled, got %v", err)
	}
	release()
	if diff := cmp.Diff(map[string]uint64{}, lastSeqs(t, s, "a")); diff != "" {
		t.Error(diff)
	}
}

func TestWriter_APanicBelongsToItsCaller(t *testing.T) {
	s := newStore(t, Options{})
	func() {
		defer func() {
			if r := recover(); r != "oops" {
				t.Errorf("want the panic of the decision, got %v", r)
			}
		}()
		_ = s.WithHeadLocked(t.Context(), store.LoadRequest{ID: "a"}, func(store.Loaded) (*store.Commit, error) { panic("oops") })
	}()
	if err := s.Commit(t.Context(), growth("a", 0)); err != nil {
		t.Errorf("the next write: %v", err)
	}
}

func TestClose_AnswersWhatWaits(t *testing.T) {
	s := newStore(t, Options{})
	release := hold(t, s)
	answer, closed := make(chan error, 1), make(chan error, 1)
	go func() { answer <- s.Commit(context.Background(), growth("a", 0)) }()
	waitForQueue(s, 1)
	go func() { closed <- s.Close() }()
	release()
	if err := <-answer; err != nil {
		t.Errorf("the write that waited: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	_, loadErr := s.Load(t.Context(), store.LoadRequest{ID: "a"})
	for _, err := range []error{loadErr, s.Commit(t.Context(), growth("b", 0)), s.Ping(t.Context())} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("after closing: want ErrUnavailable, got %v", err)
		}
	}
}

func TestWriter_AnotherProcessKeepsItWaitingForAWhileOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "perigee.db")
	first := newStore(t, Options{Path: path})
	second := newStore(t, Options{Path: path, BusyTimeout: 1})
	release := hold(t, first)
	err := second.Commit(t.Context(), growth("a", 0))
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "another process keeps the database locked") {
		t.Errorf("want ErrUnavailable that tells of the other process, got %v", err)
	}
	if diff := cmp.Diff(map[string]uint64{}, lastSeqs(t, second, "a")); diff != "" { // reading goes on
		t.Error(diff)
	}
	release()
	if err := second.Commit(t.Context(), growth("a", 0)); err != nil {
		t.Errorf("when it is free: %v", err)
	}
	if diff := cmp.Diff(map[string]uint64{"a": 1}, lastSeqs(t, first, "a")); diff != "" {
		t.Error(diff)
	}
}

func TestMigrate_LeavesTheWriterFlushingEachCommit(t *testing.T) {
	s := newStore(t, Options{})
	for range 2 {
		if _, _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		err := s.writer.submit(t.Context(), &job{plain: true, done: make(chan struct{}), run: func(c *conn) error {
			for _, name := range []string{"synchronous", "journal_mode"} {
				var value string
				if err := c.raw.QueryRowContext(context.Background(), "PRAGMA "+name).Scan(&value); err != nil {
					return err
				}
				got[name] = value
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"synchronous": "2", "journal_mode": "wal"}, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestStep_WritesFewPages: what a commit costs on SQLite is the pages that it
// changes. A step changes one of each tree that its rows are in: events, heads, and
// of tasks the table, its keys and the indexes of an execution's rows, of due ones
// and of a session's.
func TestStep_WritesFewPages(t *testing.T) {
	s := newStore(t, Options{})
	task := func(unit string) store.Task {
		return store.Task{Key: "e1/" + unit, ExecutionID: "e1", Unit: unit, State: store.TaskDispatched, TokenHash: "h", Session: "s", DueAtMS: at}
	}
	first := growth("e1", 0)
	first.Inserted = []store.Task{task("a")}
	if err := s.Commit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	step := growth("e1", 1)
	step.Removed = []store.TaskRemoval{{Key: "e1/a", Guard: store.Guard{State: store.TaskDispatched, TokenHash: "h"}}}
	step.Inserted = []store.Task{task("b")}
	before := walPages(t, s)
	if err := s.Commit(t.Context(), step); err != nil {
		t.Fatal(err)
	}
	if n := walPages(t, s) - before; n < 1 || n > 7 {
		t.Errorf("a step has written %d pages, want 7 at most", n)
	}
}

// walPages is how many pages the write-ahead log holds: each has 24 bytes before
// it, the log itself 32 (https://www.sqlite.org/fileformat2.html#walformat).
func walPages(t *testing.T, s *Store) int64 {
	t.Helper()
	info, err := os.Stat(s.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return (info.Size() - 32) / (24 + 4096)
}
