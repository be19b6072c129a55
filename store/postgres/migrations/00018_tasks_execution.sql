-- +goose NO TRANSACTION
-- +goose Up
-- A load finds reports and overdue attempts among many rows of a wide fan-out.
CREATE INDEX IF NOT EXISTS tasks_execution ON tasks (execution_id, state, due_at);
