-- +goose NO TRANSACTION
-- +goose Up
-- One row: the oldest release that works with this schema, by the version of
-- its own. Migrate writes it.
CREATE TABLE IF NOT EXISTS oldest_release (
    id      INTEGER NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT;
