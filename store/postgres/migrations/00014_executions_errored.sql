-- +goose NO TRANSACTION
-- +goose Up
-- Executions whose decision errs.
CREATE INDEX IF NOT EXISTS executions_errored ON executions (error_count) WHERE error_count > 0;
