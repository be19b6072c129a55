-- +goose NO TRANSACTION
-- +goose Up
-- Registered workflow versions. A row is never replaced.
CREATE TABLE IF NOT EXISTS definitions (
    name       TEXT    NOT NULL,
    version    TEXT    NOT NULL,
    hash       TEXT    NOT NULL UNIQUE,
    canonical  TEXT    NOT NULL,
    children   TEXT    NOT NULL,
    tasks      TEXT    NOT NULL,
    extensions TEXT    NOT NULL,
    retired    INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (name, version)
) STRICT;
