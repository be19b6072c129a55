-- +goose NO TRANSACTION
-- +goose Up
-- Counting active top-level executions up to a limit.
CREATE INDEX IF NOT EXISTS executions_active ON executions (parent_id) WHERE finished_at IS NULL;
