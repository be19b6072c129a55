-- +goose NO TRANSACTION
-- +goose Up
-- Results in the inbox, oldest first.
CREATE INDEX IF NOT EXISTS tasks_reported ON tasks (reported_at, execution_id) WHERE reported_at IS NOT NULL;
