-- +goose NO TRANSACTION
-- +goose Up
-- Histories: the truth. Clustered, so that a load reads neighbours.
CREATE TABLE IF NOT EXISTS events (
    execution_id TEXT    NOT NULL,
    seq          INTEGER NOT NULL,
    type         TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    data         TEXT    NOT NULL,
    PRIMARY KEY (execution_id, seq)
) STRICT, WITHOUT ROWID;
