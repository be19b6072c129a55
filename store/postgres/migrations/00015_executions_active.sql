-- +goose NO TRANSACTION
-- +goose Up
-- Counting active top-level executions up to a limit.
CREATE INDEX IF NOT EXISTS executions_active ON executions (finished_at, parent_id);
