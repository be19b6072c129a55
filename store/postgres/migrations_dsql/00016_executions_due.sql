-- +goose NO TRANSACTION
-- +goose Up
-- Executions with work, earliest first; those without come last.
CREATE INDEX ASYNC IF NOT EXISTS executions_due ON executions (due_at, id);
