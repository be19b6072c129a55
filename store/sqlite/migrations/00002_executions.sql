-- +goose NO TRANSACTION
-- +goose Up
-- Heads: a projection of each history, and what commits guard on.
CREATE TABLE IF NOT EXISTS executions (
    id              TEXT    NOT NULL PRIMARY KEY,
    incarnation     INTEGER NOT NULL,
    workflow        TEXT    NOT NULL,
    version         TEXT    NOT NULL,
    definition_hash TEXT    NOT NULL,
    status          TEXT    NOT NULL,
    last_seq        INTEGER NOT NULL,
    last_at         INTEGER NOT NULL,
    due_at          INTEGER,
    parent_id       TEXT    NOT NULL,
    parent_step     TEXT    NOT NULL,
    tags            TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    finished_at     INTEGER,
    error_count     INTEGER NOT NULL DEFAULT 0
) STRICT;
