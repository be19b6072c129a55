-- +goose NO TRANSACTION
-- +goose Up
-- The top-level execution of a child's family, by which traces are named; NULL
-- for one without a parent, as for all that were created before there was the column.
ALTER TABLE executions ADD COLUMN IF NOT EXISTS root_id text;
