-- +goose NO TRANSACTION
-- +goose Up
-- Registered workflow versions. A row is never replaced.
CREATE TABLE IF NOT EXISTS definitions (
    name       text    NOT NULL,
    version    text    NOT NULL,
    hash       text    NOT NULL UNIQUE,
    canonical  text    NOT NULL,
    children   text    NOT NULL,
    tasks      text    NOT NULL,
    extensions text    NOT NULL,
    retired    boolean NOT NULL DEFAULT FALSE,
    created_at bigint  NOT NULL,
    PRIMARY KEY (name, version)
);
