-- +goose NO TRANSACTION
-- +goose Up
-- A poll descends here once for each queue. A row that is dispatched leaves it.
CREATE INDEX IF NOT EXISTS tasks_queue ON tasks (queue, ready_at, ready_seq, key) WHERE state = 0;
