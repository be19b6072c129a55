-- +goose NO TRANSACTION
-- +goose Up
-- Messages, oldest first.
CREATE INDEX ASYNC IF NOT EXISTS outbox_created ON outbox (created_at, id);
