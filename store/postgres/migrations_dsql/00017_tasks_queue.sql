-- +goose NO TRANSACTION
-- +goose Up
-- A poll descends here once for each queue. The state leads, so that the queues
-- that have ready rows are found by steps, too.
CREATE INDEX ASYNC IF NOT EXISTS tasks_queue ON tasks (state, queue, ready_at, ready_seq, key);
