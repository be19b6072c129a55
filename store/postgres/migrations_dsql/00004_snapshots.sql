-- +goose NO TRANSACTION
-- +goose Up
-- The latest folded state of long histories.
CREATE TABLE IF NOT EXISTS snapshots (
    execution_id text    NOT NULL PRIMARY KEY,
    seq          bigint  NOT NULL,
    format       integer NOT NULL,
    data         text    NOT NULL
);
