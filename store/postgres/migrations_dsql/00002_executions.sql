-- +goose NO TRANSACTION
-- +goose Up
-- Heads: a projection of each history, and what commits guard on.
CREATE TABLE IF NOT EXISTS executions (
    id              text    NOT NULL PRIMARY KEY,
    incarnation     bigint  NOT NULL,
    workflow        text    NOT NULL,
    version         text    NOT NULL,
    definition_hash text    NOT NULL,
    status          text    NOT NULL,
    last_seq        bigint  NOT NULL,
    last_at         bigint  NOT NULL,
    due_at          bigint,
    parent_id       text    NOT NULL,
    parent_step     text    NOT NULL,
    tags            text    NOT NULL,
    created_at      bigint  NOT NULL,
    finished_at     bigint,
    error_count     integer NOT NULL DEFAULT 0
);
