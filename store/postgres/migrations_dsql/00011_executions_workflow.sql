-- +goose NO TRANSACTION
-- +goose Up
-- Lists of one workflow's executions.
CREATE INDEX ASYNC IF NOT EXISTS executions_workflow ON executions (workflow, created_at, id);
