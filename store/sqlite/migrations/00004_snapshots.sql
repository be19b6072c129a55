-- +goose NO TRANSACTION
-- +goose Up
-- The latest folded state of long histories.
CREATE TABLE IF NOT EXISTS snapshots (
    execution_id TEXT    NOT NULL PRIMARY KEY,
    seq          INTEGER NOT NULL,
    format       INTEGER NOT NULL,
    data         TEXT    NOT NULL
) STRICT;
