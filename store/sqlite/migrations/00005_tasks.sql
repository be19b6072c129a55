-- +goose NO TRANSACTION
-- +goose Up
-- Units that are ready or with a worker; states as in store.TaskState. Payloads
-- come last, so that the other columns are read without walking them.
CREATE TABLE IF NOT EXISTS tasks (
    key                  TEXT    NOT NULL PRIMARY KEY,
    execution_id         TEXT    NOT NULL,
    unit                 TEXT    NOT NULL,
    state                INTEGER NOT NULL,
    queue                TEXT    NOT NULL,
    ready_at             INTEGER NOT NULL,
    ready_seq            INTEGER NOT NULL,
    due_at               INTEGER,
    task_name            TEXT    NOT NULL,
    contract_version     TEXT    NOT NULL,
    workflow             TEXT    NOT NULL,
    workflow_version     TEXT    NOT NULL,
    attempt              INTEGER NOT NULL,
    redelivery           INTEGER NOT NULL,
    timeout_ms           INTEGER NOT NULL,
    session              TEXT    NOT NULL,
    worker_id            TEXT    NOT NULL,
    claim_key            TEXT    NOT NULL,
    secret               TEXT    NOT NULL,
    token_hash           TEXT    NOT NULL,
    dispatched_at        INTEGER NOT NULL,
    deadline_at          INTEGER NOT NULL,
    suspect_at           INTEGER NOT NULL,
    stop                 INTEGER NOT NULL,
    reported_at          INTEGER,
    reported_success     INTEGER,
    reported_retry_after INTEGER,
    input                TEXT    NOT NULL,
    reported_payload     TEXT
) STRICT;
