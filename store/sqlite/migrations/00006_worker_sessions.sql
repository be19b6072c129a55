-- +goose NO TRANSACTION
-- +goose Up
-- Workers that registered, by the hash of their session id.
CREATE TABLE IF NOT EXISTS worker_sessions (
    hash          TEXT    NOT NULL PRIMARY KEY,
    worker_id     TEXT    NOT NULL,
    runtime       TEXT    NOT NULL,
    sdk           TEXT    NOT NULL,
    contracts     TEXT    NOT NULL,
    registered_at INTEGER NOT NULL,
    last_seen     INTEGER NOT NULL
) STRICT;
