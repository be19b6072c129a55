-- +goose NO TRANSACTION
-- +goose Up
-- A poll descends here once for each queue.
CREATE INDEX IF NOT EXISTS tasks_queue ON tasks (queue, state, ready_at, ready_seq, key);
