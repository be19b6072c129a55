package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"perigee/store"
	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
)

// populateSQL makes a database that has been in use: many finished executions
// and their events, a long queue (most of it of one wide fan-out), attempts
// under way, a few reports and messages.
var populateSQL = []string{
	`INSERT INTO executions
	SELECT 'e' || n, 1, 'order', '1', 'd', CASE WHEN n % 20 = 0 THEN 'RUNNING' ELSE 'COMPLETED' END, 10, n, CASE WHEN n % 20 = 0 THEN 1000000 + n END,
		'', '', '{}', n, CASE WHEN n % 20 <> 0 THEN n END, 0
	FROM generate_series(1, 30000) n`,
	`INSERT INTO execution_tags SELECT 'region', 'r' || n % 50, n, 'e' || n FROM generate_series(1, 30000) n`,
	`INSERT INTO events SELECT 'e' || n, seq, 'StepSkipped', n, '{"step":"a","reason":"r"}' FROM generate_series(1, 8000) n, generate_series(1, 10) seq`,
	`INSERT INTO events SELECT 'e20000', seq, 'StepSkipped', seq, '{"step":"a","reason":"r"}' FROM generate_series(1, 10) seq`,
	`INSERT INTO snapshots SELECT 'e' || n, 5, 1, '{}' FROM generate_series(1, 2000) n`,
	`INSERT INTO tasks
	SELECT 'e' || x || '/a[' || n || ']', 'e' || x, 'a[' || n || ']', state, 'q' || n % 20, 500000 + n, n, CASE WHEN n % 2 = 0 THEN 1000000 + n END, 't', '1', 'order', '1', '{}', 1, FALSE, 60000,
		CASE WHEN state > 0 THEN 's' || n % 100 ELSE '' END, 'w', 'k' || n, 'secret', 'h' || n, n, n, 0, FALSE,
		CASE WHEN state = 2 THEN 900000 + n END, CASE WHEN state = 2 THEN TRUE END, CASE WHEN state = 2 THEN '{}' END
	FROM (SELECT n, CASE WHEN n < 15000 THEN 20000 ELSE n END AS x, CASE WHEN n % 1000 = 0 THEN 2 WHEN n % 10 = 0 THEN 1 ELSE 0 END AS state
		FROM generate_series(1, 30000) n) AS rows`,
	`INSERT INTO worker_sessions SELECT 's' || n, 'w' || n, 'go', '', '[]', n, n FROM generate_series(1, 2000) n`,
	`INSERT INTO outbox SELECT 'm' || n, 'e' || n, 'ended', 'p', '', '{}', n FROM generate_series(1, 5000) n`,
}

// populated is a database of which no table fits into a few pages.
// Its statistics are of now, or of the time when it was empty.
func populated(t *testing.T, analyzed bool) (url string) {
	t.Helper()
	url = pgtest.URL(t)
	s := open(t, postgres.Options{URL: url})
	if _, _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"executions", "execution_tags", "events", "snapshots", "tasks", "worker_sessions", "outbox"} {
		exec(t, url, `ALTER TABLE `+table+` SET (autovacuum_enabled = off)`)
	}
	exec(t, url, `ANALYZE`)
	for _, sql := range populateSQL {
		exec(t, url, sql)
	}
	if analyzed {
		exec(t, url, `ANALYZE`)
	}
	return url
}

// hotCalls are the calls that must not get slower as the database grows.
var hotCalls = []struct {
	name string
	call func(ctx context.Context, s *postgres.Store) error
}{
	{"Load", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Load(ctx, store.LoadRequest{ID: "e20000", Known: store.Seen{Incarnation: 1, Seq: 8}, DueTasks: true, NowMS: 900_000})
		return err
	}},
	{"Commit", func(ctx context.Context, s *postgres.Store) error {
		return s.Commit(ctx, store.Commit{
			Seen:   store.Seen{Incarnation: 1, Seq: 10},
			Head:   store.Head{ID: "e20000", Incarnation: 1, Status: "RUNNING", LastSeq: 11, LastAtMS: 900_000},
			Events: []store.Event{{Seq: 11, Type: "StepSkipped", AtMS: 900_000, Data: "{}"}},
			Removed: []store.TaskRemoval{{Key: "e20000/a[1]", Guard: store.Guard{State: store.TaskReady}},
				{Key: "e20000/a[2]", Guard: store.Guard{State: store.TaskReady}}},
			Marked:    []store.TaskMark{{Key: "e20000/a[3]", Guard: store.Guard{State: store.TaskReady}}},
			Inserted:  []store.Task{{Key: "e20000/z", ExecutionID: "e20000", Unit: "z", Queue: "q1", Input: "{}"}},
			Snapshot:  &store.Snapshot{Seq: 10, Format: 1, Data: "{}"},
			Outbox:    []store.Message{{ID: "m0", Payload: "{}"}},
			Delivered: []string{"m1", "m2"},
		})
	}},
	{"Step", func(ctx context.Context, s *postgres.Store) error {
		return s.Commit(ctx, store.Commit{
			Seen:     store.Seen{Incarnation: 1, Seq: 10},
			Head:     store.Head{ID: "e20020", Incarnation: 1, Status: "RUNNING", LastSeq: 11, LastAtMS: 900_000},
			Events:   []store.Event{{Seq: 11, Type: "StepSkipped", AtMS: 900_000, Data: "{}"}},
			Removed:  []store.TaskRemoval{{Key: "e20020/a[20020]", Guard: store.Guard{State: store.TaskDispatched, TokenHash: "h20020"}}},
			Inserted: []store.Task{{Key: "e20020/z", ExecutionID: "e20020", Unit: "z", Queue: "q1", Input: "{}"}},
		})
	}},
	{"Group", func(ctx context.Context, s *postgres.Store) error {
		var group []*store.Commit
		for _, id := range []string{"20040", "20060"} {
			group = append(group, &store.Commit{
				Seen:     store.Seen{Incarnation: 1, Seq: 10},
				Head:     store.Head{ID: "e" + id, Incarnation: 1, Status: "RUNNING", LastSeq: 11, LastAtMS: 900_000},
				Events:   []store.Event{{Seq: 11, Type: "StepSkipped", AtMS: 900_000, Data: "{}"}},
				Removed:  []store.TaskRemoval{{Key: "e" + id + "/a[" + id + "]", Guard: store.Guard{State: store.TaskDispatched, TokenHash: "h" + id}}},
				Inserted: []store.Task{{Key: "e" + id + "/z", ExecutionID: "e" + id, Unit: "z", Queue: "q1", Input: "{}"}},
			})
		}
		return s.CommitTogether(ctx, group)
	}},
	{"Claim", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Claim(ctx, store.ClaimRequest{Session: "s1", WorkerID: "w1", Queues: []string{"q1", "q2", "q3"}, ClaimKey: "k",
			Secrets: []string{"a", "b"}, SessionTimeoutMS: 30_000, NowMS: 900_000})
		return err
	}},
	{"Report", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Report(ctx, store.Report{Key: "e20000/a[10]", TokenHash: "h10", Payload: "{}", NowMS: 900_000})
		return err
	}},
	{"Sight", func(ctx context.Context, s *postgres.Store) error {
		return s.Sight(ctx, []store.Sighting{{Key: "e20000/a[20]", TokenHash: "h20", DueAtMS: 1}})
	}},
	{"Due", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Due(ctx, store.DueRequest{NowMS: 1_000_100, Limit: 100, ReportedAgeMS: 1_000})
		return err
	}},
	{"TouchSession", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.TouchSession(ctx, "s1", 900_000, 5_000)
		return err
	}},
	{"Task", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Task(ctx, "e20000/a[30]")
		return err
	}},
	{"Outbox", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Outbox(ctx, "e7", 10)
		return err
	}},
	{"OutboxOfAll", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Outbox(ctx, "", 10)
		return err
	}},
	{"DeleteMessages", func(ctx context.Context, s *postgres.Store) error {
		return s.DeleteMessages(ctx, []string{"m7", "m8"})
	}},
	{"History", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.History(ctx, "e7", 3, 100, 1_000)
		return err
	}},
	{"CountActive", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.CountActive(ctx, 100)
		return err
	}},
	{"Executions", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Executions(ctx, store.Filter{Limit: 50, AfterCreatedMS: 20_000, AfterID: "e20000"})
		return err
	}},
	{"ExecutionsByStatus", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Executions(ctx, store.Filter{Status: "RUNNING", Limit: 50})
		return err
	}},
	{"ExecutionsByWorkflow", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Executions(ctx, store.Filter{Workflow: "order", Limit: 50})
		return err
	}},
	{"ExecutionsByTag", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Executions(ctx, store.Filter{Tags: map[string]string{"region": "r7"}, Limit: 50})
		return err
	}},
	{"ExecutionsErrored", func(ctx context.Context, s *postgres.Store) error {
		_, err := s.Executions(ctx, store.Filter{ErroredOnly: true, Limit: 50})
		return err
	}},
}

// TestHotStatements_ReadByIndexAlone looks at the plans of all statements of
// the hot calls, made for their arguments and for any arguments (the server
// chooses between the two from the sixth use on).
func TestHotStatements_ReadByIndexAlone(t *testing.T) {
	for name, analyzed := range map[string]bool{"Analyzed": true, "AnalyzedWhileEmpty": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := populated(t, analyzed)
			s := open(t, postgres.Options{URL: url})
			for _, hot := range hotCalls {
				t.Run(hot.name, func(t *testing.T) {
					for _, st := range statementsOf(t, s, hot.call) {
						for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
							if fault := slowPlan(explain(t, url, mode, st.sql, st.args)); fault != "" {
								t.Errorf("%s: %s%s", mode, fault, st.sql)
							}
						}
					}
				})
			}
		})
	}
}

type statement struct {
	sql  string
	args []any
}

// statementsOf are the statements that a call sends, but for BEGIN and COMMIT.
func statementsOf(t *testing.T, s *postgres.Store, call func(context.Context, *postgres.Store) error) (sent []statement) {
	t.Helper()
	s.Watch(func(sql string, args []any) {
		if !strings.HasPrefix(sql, "BEGIN") && sql != "COMMIT" {
			sent = append(sent, statement{sql, args})
		}
	})
	if err := call(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return sent
}

// slowPlan says what in a plan gets slower as the database grows.
func slowPlan(plan string) string {
	for fault, sign := range map[string]string{
		"a whole table is read":         "Seq Scan on",
		"the queue is read and sorted":  "Bitmap Index Scan on tasks_queue",
		"all of an execution is locked": "Index Scan using tasks_execution on tasks t_", // in the claim's loop
	} {
		if strings.Contains(plan, sign) {
			return fault + "\n" + plan + "\n"
		}
	}
	return ""
}

// explain is the server's plan of a statement.
func explain(t *testing.T, url, mode, sql string, args []any) string {
	t.Helper()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	prepared, err := conn.Prepare(ctx, "hot", sql)
	if err != nil {
		t.Fatal(err)
	}
	literals := make([]string, len(args))
	for i, arg := range args {
		text, err := conn.TypeMap().Encode(prepared.ParamOIDs[i], pgx.TextFormatCode, arg, nil)
		if err != nil {
			t.Fatal(err)
		}
		literals[i] = "NULL"
		if text != nil {
			literals[i] = "'" + strings.ReplaceAll(string(text), "'", "''") + "'"
		}
	}
	execute := "EXECUTE hot"
	if len(args) > 0 {
		execute += "(" + strings.Join(literals, ", ") + ")"
	}
	if _, err := conn.Exec(ctx, "SET plan_cache_mode = "+mode); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(ctx, "EXPLAIN "+execute, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
