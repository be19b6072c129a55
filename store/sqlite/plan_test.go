package sqlite

import (
	"strings"
	"testing"

	"perigee/store"
)

// TestPlans_UseTheirIndexes keeps each statement that runs often on the index
// that was made for it, and lists in the order of theirs.
func TestPlans_UseTheirIndexes(t *testing.T) {
	s := newStore(t, Options{Path: Memory})
	list := func(f store.Filter) string {
		f.Limit = 10
		text, _ := listQuery(f)
		return text
	}
	for _, c := range []struct{ name, text, want string }{
		{"head", headSQL, "SEARCH executions USING INDEX sqlite_autoindex_executions_1 (id=?)"},
		{"events", eventsAfterSQL, "SEARCH events USING PRIMARY KEY (execution_id=? AND seq>?)"},
		{"reported", reportedSQL, "SEARCH tasks USING INDEX tasks_execution (execution_id=? AND state=?)"},
		{"overdue attempts", dueTasksSQL, "SEARCH t USING INDEX tasks_execution (execution_id=? AND state=? AND due_at<?)"},
		{"candidates", candidatesSQL, "SEARCH tasks USING INDEX tasks_queue (queue=?)"},
		{"held under a key", heldUnderSQL, "SEARCH tasks USING INDEX tasks_session (session=? AND claim_key=?)"},
		{"held", heldSQL, "SEARCH tasks USING INDEX tasks_session (session=?)"},
		{"due heads", dueSQL, "SEARCH executions USING INDEX executions_due (due_at>? AND due_at<?)"},
		{"due tasks", dueSQL, "SEARCH tasks USING INDEX tasks_due (due_at>? AND due_at<?)"},
		{"due reports", dueSQL, "SEARCH tasks USING COVERING INDEX tasks_reported (reported_at>? AND reported_at<?)"},
		{"next moment", outlookSQL, "SEARCH executions USING INDEX executions_due (due_at>?)"},
		{"oldest ready", oldestReadySQL, "SEARCH t USING COVERING INDEX tasks_queue (queue=?)"},
		{"messages", outboxSQL, "SCAN outbox USING INDEX outbox_created"},
		{"messages of a source", outboxOfSQL, "SEARCH outbox USING INDEX outbox_source (source=?)"},
		{"active", countActiveSQL, "SCAN executions USING INDEX executions_active"},
		{"all", list(store.Filter{}), "SCAN e USING INDEX executions_created"},
		{"a page", list(store.Filter{AfterID: "e"}), "SEARCH e USING INDEX executions_created ((created_at,id)<(?,?))"},
		{"of a status", list(store.Filter{Status: "FAILED"}), "SEARCH e USING INDEX executions_status (status=?)"},
		{"of a workflow", list(store.Filter{Workflow: "w"}), "SEARCH e USING INDEX executions_workflow (workflow=?)"},
		{"of a parent", list(store.Filter{ParentID: "p"}), "SEARCH e USING INDEX executions_parent (parent_id=?)"},
		{"errored", list(store.Filter{ErroredOnly: true}), "SCAN e USING INDEX executions_errored"},
		{"by tag", list(store.Filter{Tags: map[string]string{"k": "v"}}), "SEARCH t USING PRIMARY KEY (name=? AND value=?)"},
	} {
		plan := explain(t, s, c.text)
		if !strings.Contains(plan, c.want) {
			t.Errorf("%s: want %q in the plan\n%s", c.name, c.want, plan)
		}
		sorted := strings.Contains(plan, "TEMP B-TREE FOR ORDER BY")
		if small := strings.Contains(c.name, "due") || c.name == "reported" || strings.HasPrefix(c.name, "held") || c.name == "overdue attempts"; sorted && !small {
			t.Errorf("%s: is sorted, want the index's order\n%s", c.name, plan)
		}
	}
}

func explain(t *testing.T, s *Store, text string) string {
	t.Helper()
	var lines []string
	err := s.writer.submit(t.Context(), &job{plain: true, done: make(chan struct{}), run: func(c *conn) error {
		rows, err := c.raw.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, make([]any, strings.Count(text, "?"))...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				return err
			}
			lines = append(lines, detail)
		}
		return rows.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
