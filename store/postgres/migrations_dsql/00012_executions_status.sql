-- +goose NO TRANSACTION
-- +goose Up
-- Lists by status.
CREATE INDEX ASYNC IF NOT EXISTS executions_status ON executions (status, created_at, id);
