-- +goose NO TRANSACTION
-- +goose Up
-- Lists of an execution's children.
CREATE INDEX ASYNC IF NOT EXISTS executions_parent ON executions (parent_id, created_at, id);
