-- +goose NO TRANSACTION
-- +goose Up
-- Rows whose moment comes, earliest first; those without come last.
CREATE INDEX ASYNC IF NOT EXISTS tasks_due ON tasks (due_at, execution_id);
