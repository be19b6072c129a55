-- +goose NO TRANSACTION
-- +goose Up
-- What one execution has to tell another and has not told yet.
CREATE TABLE IF NOT EXISTS outbox (
    id         text   COLLATE "C" NOT NULL PRIMARY KEY,
    source     text   COLLATE "C" NOT NULL,
    kind       text   COLLATE "C" NOT NULL,
    target     text   COLLATE "C" NOT NULL,
    unit       text   COLLATE "C" NOT NULL,
    payload    text   NOT NULL,
    created_at bigint NOT NULL
);
