-- +goose NO TRANSACTION
-- +goose Up
-- Workers that registered, by the hash of their session id.
CREATE TABLE IF NOT EXISTS worker_sessions (
    hash          text   NOT NULL PRIMARY KEY,
    worker_id     text   NOT NULL,
    runtime       text   NOT NULL,
    sdk           text   NOT NULL,
    contracts     text   NOT NULL,
    registered_at bigint NOT NULL,
    last_seen     bigint NOT NULL
);
