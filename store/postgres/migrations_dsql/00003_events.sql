-- +goose NO TRANSACTION
-- +goose Up
-- Histories: the truth. Rows are inserted and never changed.
CREATE TABLE IF NOT EXISTS events (
    execution_id text   NOT NULL,
    seq          bigint NOT NULL,
    type         text   NOT NULL,
    at           bigint NOT NULL,
    data         text   NOT NULL,
    PRIMARY KEY (execution_id, seq)
);
