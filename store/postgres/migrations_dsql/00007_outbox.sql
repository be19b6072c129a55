-- +goose NO TRANSACTION
-- +goose Up
-- What one execution has to tell another and has not told yet.
CREATE TABLE IF NOT EXISTS outbox (
    id         text   NOT NULL PRIMARY KEY,
    source     text   NOT NULL,
    kind       text   NOT NULL,
    target     text   NOT NULL,
    unit       text   NOT NULL,
    payload    text   NOT NULL,
    created_at bigint NOT NULL
);
