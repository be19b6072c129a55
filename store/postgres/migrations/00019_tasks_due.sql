-- +goose NO TRANSACTION
-- +goose Up
-- Ready and dispatched rows whose moment comes, earliest first.
CREATE INDEX IF NOT EXISTS tasks_due ON tasks (due_at, execution_id) WHERE due_at IS NOT NULL;
