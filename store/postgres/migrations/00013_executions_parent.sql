-- +goose NO TRANSACTION
-- +goose Up
-- Lists of an execution's children. Most executions are nobody's.
CREATE INDEX IF NOT EXISTS executions_parent ON executions (parent_id, created_at, id) WHERE parent_id <> '';
