package postgres_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perigee/store"
	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
)

func TestOpen_SaysWhatIsWrongWithTheURLAndNeverShowsThePassword(t *testing.T) {
	for _, url := range []string{
		"postgres://u:hunter2@host:port/db",
		"postgres://u:hunter2@host:70000/db",
		"postgres://u:hun%zzter2@host/db",
		"postgres://u:hunter2@[::1/db",
		"postgres://u:hunter2@host/db?sslmode=sometimes",
		"postgres://u:hunter2@host/db?connect_timeout=soon",
		"host=h password=hunter2 port=x",
		"hunter2",
	} {
		_, err := postgres.Open(t.Context(), postgres.Options{URL: url})
		if err == nil {
			t.Errorf("%s: want an error", url)
			continue
		}
		text := err.Error()
		if strings.Contains(text, "hunter2") || strings.Contains(text, "ter2") {
			t.Errorf("%s: the password is shown: %s", url, text)
		}
		if !strings.Contains(text, "want postgres://") || strings.Contains(text, "\n") {
			t.Errorf("%s: want one line that says what is expected, got %s", url, text)
		}
	}
}

func TestOpen_ChecksItsOptions(t *testing.T) {
	for want, o := range map[string]postgres.Options{
		"URL is empty":    {},
		`Mode is "fast"`:  {URL: "postgres://h/d", Mode: "fast"},
		"MaxConns is -1;": {URL: "postgres://h/d", MaxConns: -1},
	} {
		_, err := postgres.Open(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// wantUnavailable wants one line, without the password of the URL.
func wantUnavailable(t *testing.T, err error, password string) {
	t.Helper()
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("want store.ErrUnavailable, got %v", err)
	}
	if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), password) {
		t.Errorf("want one line without the password, got %s", err)
	}
}

func TestConnect_FailuresAreUnavailability(t *testing.T) {
	t.Parallel()
	good, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody listens there now
	refused, wrong, absent := *good, *good, *good
	refused.Host = l.Addr().String()
	wrong.User = url.UserPassword("perigee", "not-the-password")
	absent.Path = "/no_such_database"
	for name, u := range map[string]url.URL{"refused": refused, "wrong password": wrong, "no database": absent} {
		t.Run(name, func(t *testing.T) {
			s := open(t, postgres.Options{URL: u.String()})
			password, _ := u.User.Password()
			wantUnavailable(t, s.Ping(t.Context()), password)
			wantUnavailable(t, s.Commit(t.Context(), store.Commit{}), password)
			_, _, err := s.Migrate(t.Context())
			wantUnavailable(t, err, password)
		})
	}
}

func TestConnect_TimesOutWithItsContext(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s := open(t, postgres.Options{URL: "postgres://u:pw@" + silent.Addr().String() + "/d?sslmode=disable"})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = s.Ping(ctx)
	wantUnavailable(t, err, "pw@")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want the context's error, too, got %v", err)
	}
}

func TestConnect_PasswordsMayBeMadeForEachConnection(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(pgtest.Migrated(t))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	u.User = url.User(u.User.Username())
	var made atomic.Int64
	s := open(t, postgres.Options{URL: u.String(), BeforeConnect: func(_ context.Context, config *pgx.ConnConfig) error {
		made.Add(1)
		config.Password = password
		return nil
	}})
	if err := s.CheckSchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if made.Load() < 2 {
		t.Errorf("made %d passwords, want one for the call and one for the migration", made.Load())
	}
}

func TestNoLocks_RefusesReadCommitted(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{URL: pgtest.URL(t), NoLocks: true})
	err := s.Ping(t.Context())
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "default_transaction_isolation") {
		t.Errorf("want an error that names the setting, got %v", err)
	}
}

func TestUnmigrated_SaysSo(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{URL: pgtest.URL(t)})
	_, err := s.Load(t.Context(), store.LoadRequest{ID: "e1"})
	if !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "perigee migrate") {
		t.Errorf("want store.ErrSchema that names the command, got %v", err)
	}
}

func TestReadOnlyServer_IsUnavailable(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{URL: pgtest.Migrated(t) + "&default_transaction_read_only=on"})
	wantUnavailable(t, s.Commit(t.Context(), creation("e1")), "?")
}

// TestTerminatedSessions: the server ends idle sessions, as at a restart. What
// it certainly did not do is done again on a new connection.
func TestTerminatedSessions_AreReplaced(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	s := open(t, postgres.Options{URL: url, MaxConns: 1})
	commit(t, s, creation("e1"))
	for range 3 {
		exec(t, url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		if _, err := s.Load(t.Context(), store.LoadRequest{ID: "e1"}); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	// The first write to a connection that the other side has closed may or
	// may not be noticed; a lost outcome is told, and nothing is written twice.
	err := s.Commit(t.Context(), creation("e2"))
	if err != nil && !errors.Is(err, store.ErrUnknownOutcome) {
		t.Fatal(err)
	}
}

// TestLockedTransaction_EndsWithItsConnection: the connection is lost between
// load and commit, and nothing was written.
func TestLockedTransaction_EndsWithItsConnection(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	s := open(t, postgres.Options{URL: url})
	commit(t, s, creation("e1"))
	err := s.WithHeadLocked(t.Context(), store.LoadRequest{ID: "e1"}, func(l store.Loaded) (*store.Commit, error) {
		exec(t, url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		return following(*l.Head), nil
	})
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknownOutcome) {
		t.Fatalf("want the loss to be told, got %v", err)
	}
	wantLastSeq(t, s, "e1", 2)
}

// cutter is a proxy that can lose a connection at the worst moment.
type cutter struct {
	listener net.Listener
	server   string
	cut      atomic.Int32 // cutNever, cutAnswer or cutRequest; back to cutNever once done
}

const (
	cutNever   int32 = iota
	cutAnswer        // the server has done what it was sent, and its answer is lost
	cutRequest       // what the client sent is lost
)

// newCutter gives the URL of the same database through the proxy.
func newCutter(t *testing.T, direct string) (*cutter, string) {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: l, server: u.Host}
	go c.serve()
	t.Cleanup(func() { l.Close() })
	u.Host = l.Addr().String()
	return c, u.String()
}

func (c *cutter) serve() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", c.server)
		if err != nil {
			client.Close()
			return
		}
		go c.pump(client, server, cutRequest)
		go c.pump(server, client, cutAnswer)
	}
}

// pump copies until its end is cut.
func (c *cutter) pump(from, to net.Conn, cut int32) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || c.cut.CompareAndSwap(cut, cutNever) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func TestLostConnection_LeavesTheOutcomeOfACommitOpen(t *testing.T) {
	t.Parallel()
	for _, mode := range []postgres.Mode{postgres.ModeDirect, postgres.ModePooled} {
		for cut, wantSeq := range map[int32]uint64{cutAnswer: 3, cutRequest: 2} {
			direct := pgtest.Migrated(t)
			proxy, url := newCutter(t, direct)
			s := open(t, postgres.Options{URL: url, Mode: mode, MaxConns: 1})
			commit(t, s, creation("e1"))
			commit(t, s, creation("e0"))
			commit(t, s, *following(creation("e0").Head)) // every statement has been prepared
			proxy.cut.Store(cut)
			err := s.Commit(t.Context(), *following(creation("e1").Head))
			if !errors.Is(err, store.ErrUnknownOutcome) {
				t.Fatalf("%s, cut %d: want store.ErrUnknownOutcome, got %v", mode, cut, err)
			}
			wantLastSeq(t, s, "e1", wantSeq)
		}
	}
}

func TestLostConnection_IsNoMatterForALoad(t *testing.T) {
	t.Parallel()
	proxy, url := newCutter(t, pgtest.Migrated(t))
	s := open(t, postgres.Options{URL: url, MaxConns: 1})
	commit(t, s, creation("e1"))
	for _, cut := range []int32{cutAnswer, cutRequest} {
		wantLastSeq(t, s, "e1", 2)
		proxy.cut.Store(cut)
		wantLastSeq(t, s, "e1", 2)
	}
}

func TestCancelledCommit_LeavesTheOutcomeOpen(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	s := open(t, postgres.Options{URL: url})
	commit(t, s, creation("e1"))
	entered, release := make(chan struct{}), make(chan struct{})
	holder := make(chan error, 1)
	go func() {
		holder <- s.WithHeadLocked(context.Background(), store.LoadRequest{ID: "e1"}, func(store.Loaded) (*store.Commit, error) {
			close(entered)
			<-release
			return nil, nil
		})
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := s.Commit(ctx, *following(creation("e1").Head))
	if !errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want store.ErrUnknownOutcome and the context's error, got %v", err)
	}
	close(release)
	if err := <-holder; err != nil {
		t.Fatal(err)
	}
}

// creation is the commit that creates an execution with two events.
func creation(id string) store.Commit {
	return store.Commit{
		Head:   store.Head{ID: id, Incarnation: 1, Status: "RUNNING", LastSeq: 2, LastAtMS: 1, CreatedAtMS: 1},
		Events: []store.Event{{Seq: 1, Type: "WorkflowCreated", AtMS: 1, Data: "{}"}, {Seq: 2, Type: "WorkflowStarted", AtMS: 1, Data: "{}"}},
	}
}

// following is a commit of one more event upon a head.
func following(h store.Head) *store.Commit {
	c := &store.Commit{Seen: store.Seen{Incarnation: h.Incarnation, Seq: h.LastSeq}, Head: h}
	c.Head.LastSeq++
	c.Events = []store.Event{{Seq: c.Head.LastSeq, Type: "StepSkipped", AtMS: 1, Data: "{}"}}
	return c
}

func commit(t testing.TB, s store.Store, c store.Commit) {
	t.Helper()
	if err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func wantLastSeq(t *testing.T, s store.Store, id string, want uint64) {
	t.Helper()
	l, err := s.Load(t.Context(), store.LoadRequest{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	if l.Head == nil || l.Head.LastSeq != want || len(l.Events) != int(want) {
		t.Fatalf("%s: want %d events, got %+v with %d", id, want, l.Head, len(l.Events))
	}
}
