-- +goose NO TRANSACTION
-- +goose Up
-- A load finds reports among many rows of a wide fan-out.
CREATE INDEX ASYNC IF NOT EXISTS tasks_execution ON tasks (execution_id, state, reported_at, key);
