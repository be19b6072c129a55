-- +goose NO TRANSACTION
-- +goose Up
-- Lists by status.
CREATE INDEX IF NOT EXISTS executions_status ON executions (status, created_at, id);
