-- +goose NO TRANSACTION
-- +goose Up
-- One row for each tag of an execution, in the order in which lists show them.
CREATE TABLE IF NOT EXISTS execution_tags (
    name         text   NOT NULL,
    value        text   NOT NULL,
    created_at   bigint NOT NULL,
    execution_id text   NOT NULL,
    PRIMARY KEY (name, value, created_at, execution_id)
);
