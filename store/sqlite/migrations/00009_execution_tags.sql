-- +goose NO TRANSACTION
-- +goose Up
-- One row for each tag of an execution, in the order in which lists show them.
CREATE TABLE IF NOT EXISTS execution_tags (
    name         TEXT    NOT NULL,
    value        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    execution_id TEXT    NOT NULL,
    PRIMARY KEY (name, value, created_at, execution_id)
) STRICT, WITHOUT ROWID;
