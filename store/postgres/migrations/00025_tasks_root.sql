-- +goose NO TRANSACTION
-- +goose Up
-- The same of the execution whose task it is, since a poll reads no heads.
ALTER TABLE tasks ADD COLUMN IF NOT EXISTS root_id text COLLATE "C";
