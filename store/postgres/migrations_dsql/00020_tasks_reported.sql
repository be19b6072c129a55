-- +goose NO TRANSACTION
-- +goose Up
-- Results in the inbox, oldest first; rows without come last.
CREATE INDEX ASYNC IF NOT EXISTS tasks_reported ON tasks (reported_at, execution_id);
