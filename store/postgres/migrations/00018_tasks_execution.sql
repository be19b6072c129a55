-- +goose NO TRANSACTION
-- +goose Up
-- A load finds reports among many rows of a wide fan-out.
CREATE INDEX IF NOT EXISTS tasks_execution ON tasks (execution_id, reported_at, key) WHERE state = 2;
