-- +goose NO TRANSACTION
-- +goose Up
-- Counting active top-level executions up to a limit: they have no parent, and
-- stand together as those without a finish.
CREATE INDEX ASYNC IF NOT EXISTS executions_active ON executions (parent_id, finished_at);
