-- +goose NO TRANSACTION
-- +goose Up
-- What one execution has to tell another and has not told yet.
CREATE TABLE IF NOT EXISTS outbox (
    id         TEXT    NOT NULL PRIMARY KEY,
    source     TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    unit       TEXT    NOT NULL,
    payload    TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
