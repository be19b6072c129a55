-- +goose NO TRANSACTION
-- +goose Up
-- Executions whose decision errs.
CREATE INDEX ASYNC IF NOT EXISTS executions_errored ON executions (error_count);
