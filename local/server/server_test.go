package server_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perigee/infra/config"
	"perigee/local/database"
	"perigee/local/server"
	"perigee/sdk/go/client"
	"perigee/store"
	"perigee/store/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

const patience = 20 * time.Second

// options are those of a server on a free port, on a database of that name.
func options(t *testing.T, where string, flags ...string) server.Options {
	t.Helper()
	given := map[string]string{"listen": "127.0.0.1:0", "database": where}
	for _, f := range flags {
		name, value, _ := strings.Cut(f, "=")
		given[name] = value
	}
	settings, err := config.Load(func(name string) (string, bool) { text, ok := given[name]; return text, ok }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return server.Options{Settings: settings, Logger: slog.New(slog.DiscardHandler)}
}

// running starts a server and gives what it said when it was ready. stop ends
// it and gives what Run returned.
func running(t *testing.T, o server.Options) (where server.Running, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan server.Running, 1), make(chan error, 1)
	o.Ready = func(r server.Running) error { ready <- r; return nil }
	go func() { ended <- server.Run(ctx, o) }()
	stop = func() error { cancel(); return <-ended }
	select {
	case where = <-ready:
	case err := <-ended:
		t.Fatalf("the server did not start: %v", err)
	case <-time.After(patience):
		t.Fatal("the server was not ready in time")
	}
	return where, stop
}

func TestRun_PostgresIsChangedOnlyWhenAsked(t *testing.T) {
	url := pgtest.URL(t)
	o := options(t, url)
	o.Ready = func(server.Running) error { t.Error("it served on a database without a schema"); return nil }
	err := server.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "run `perigee migrate`") {
		t.Fatalf("got %v", err)
	}

	o.Migrate = true
	where, stop := running(t, o)
	if !strings.HasPrefix(where.Migrated, "schema made, version ") {
		t.Errorf("migrated: %q", where.Migrated)
	}
	runsAnExecution(t, where)
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestRun_ServesThroughAPooler(t *testing.T) {
	o := options(t, pgtest.PoolerURL(t), "database-mode=pooled")
	o.Migrate = true
	where, stop := running(t, o)
	runsAnExecution(t, where)
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// runsAnExecution deploys a workflow and runs it to its end.
func runsAnExecution(t *testing.T, where server.Running) {
	t.Helper()
	c, err := client.New(where.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const definition = `{"name":"nap","version":"1.0.0","timeout":"1d","steps":[{"id":"nap","sleep":"10ms"}]}`
	if _, err := c.RegisterDefinition(t.Context(), []byte(definition), client.JSON); err != nil {
		t.Fatal(err)
	}
	started, err := c.Start(t.Context(), client.StartRequest{Workflow: "nap", Wait: patience})
	if err != nil || started.Status != client.Completed {
		t.Fatalf("got %+v, %v", started, err)
	}
}

// A held poll must not keep a server from stopping.
func TestRun_StopAnswersHeldPolls(t *testing.T) {
	where, stop := running(t, options(t, filepath.Join(t.TempDir(), "p.db")))
	c, err := client.New(where.URL, client.Options{RetryFor: client.NoRetry})
	if err != nil {
		t.Fatal(err)
	}
	session, err := c.Register(t.Context(), client.RegisterRequest{WorkerID: "w", Runtime: "go", Contracts: []client.Contract{{TaskName: "a.b", ContractVersion: "1.0.0"}}})
	if err != nil {
		t.Fatal(err)
	}
	polled := make(chan error, 1)
	go func() {
		_, err := c.Poll(t.Context(), client.PollRequest{SessionID: session.WorkerSessionID, Wait: patience})
		polled <- err
	}()
	began := time.Now()
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	<-polled // answered, or refused if it came too late
}

func TestRun_WithoutTokensForeignPagesAreKeptAway(t *testing.T) {
	where, stop := running(t, options(t, filepath.Join(t.TempDir(), "p.db")))
	defer func() { _ = stop() }()
	for header, want := range map[string]int{"": 200, "https://evil.example": 403, where.URL: 200} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", where.URL+"/v1/workers", nil)
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			req.Header.Set("Origin", header)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("Origin %q: status %d, want %d", header, resp.StatusCode, want)
		}
	}
}

func TestRun_ServesInTickModeMinuteToo(t *testing.T) {
	where, stop := running(t, options(t, filepath.Join(t.TempDir(), "p.db"), "tick-mode="+config.TickMinute))
	if _, err := http.Get(where.URL + "/readyz"); err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// noTokens is a database without tokens.
type noTokens struct{}

func (noTokens) Tokens(context.Context) ([]store.Token, error) { return nil, nil }

// The first token belongs into the database that the server was given.
func TestMayListen_TheHintNamesTheDatabase(t *testing.T) {
	for where, want := range map[string]string{
		"/srv/orders.db":    "--role admin --database /srv/orders.db`",
		"/srv/my orders.db": "--role admin --database '/srv/my orders.db'`",
		"postgres://me:secret@db/x?sslmode=verify-full": "--role admin --database 'postgres://me:xxxxx@db/x?sslmode=verify-full'`",
	} {
		_, err := server.MayListen(t.Context(), noTokens{}, config.Settings{Listen: "0.0.0.0:7474", Database: where})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", where, err, want)
		}
	}
}

func TestDescribe_HidesPasswords(t *testing.T) {
	for where, want := range map[string]string{
		"postgres://me:secret@db/x?sslmode=disable&password=secret": "postgres://me:xxxxx@db/x?password=xxxxx&sslmode=disable",
		"postgres://db/x": "postgres://db/x",
		":memory:":        ":memory:",
	} {
		if got := database.Describe(where); got != want {
			t.Errorf("Describe(%s): got %s, want %s", where, got, want)
		}
	}
	if got := database.Describe("p.db"); !filepath.IsAbs(got) {
		t.Errorf("Describe(p.db): got %s, want an absolute path", got)
	}
	if got := fmt.Sprint(database.Explain("postgres://me:secret@db/x", io.EOF)); strings.Contains(got, "secret") {
		t.Errorf("Explain: %s", got)
	}
}
