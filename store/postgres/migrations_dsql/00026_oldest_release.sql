-- +goose NO TRANSACTION
-- +goose Up
-- One row: the oldest release that works with this schema, by the version of
-- its own. Migrate writes it.
CREATE TABLE IF NOT EXISTS oldest_release (
    id      bigint NOT NULL PRIMARY KEY,
    version bigint NOT NULL
);
