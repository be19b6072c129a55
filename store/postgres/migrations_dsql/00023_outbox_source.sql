-- +goose NO TRANSACTION
-- +goose Up
-- Messages of one source.
CREATE INDEX ASYNC IF NOT EXISTS outbox_source ON outbox (source, created_at, id);
