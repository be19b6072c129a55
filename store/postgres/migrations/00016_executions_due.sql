-- +goose NO TRANSACTION
-- +goose Up
-- Executions with work, earliest first.
CREATE INDEX IF NOT EXISTS executions_due ON executions (due_at, id) WHERE due_at IS NOT NULL;
