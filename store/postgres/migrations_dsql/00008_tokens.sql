-- +goose NO TRANSACTION
-- +goose Up
-- Bearer tokens of the API, as hashes.
CREATE TABLE IF NOT EXISTS tokens (
    name       text   NOT NULL PRIMARY KEY,
    hash       text   NOT NULL UNIQUE,
    role       text   NOT NULL,
    worker_ids text   NOT NULL,
    tasks      text   NOT NULL,
    created_at bigint NOT NULL
);
