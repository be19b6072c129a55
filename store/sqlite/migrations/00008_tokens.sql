-- +goose NO TRANSACTION
-- +goose Up
-- Bearer tokens of the API, as hashes.
CREATE TABLE IF NOT EXISTS tokens (
    name       TEXT    NOT NULL PRIMARY KEY,
    hash       TEXT    NOT NULL UNIQUE,
    role       TEXT    NOT NULL,
    worker_ids TEXT    NOT NULL,
    tasks      TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
