-- +goose NO TRANSACTION
-- +goose Up
-- Lists of all executions, newest first.
CREATE INDEX ASYNC IF NOT EXISTS executions_created ON executions (created_at, id);
