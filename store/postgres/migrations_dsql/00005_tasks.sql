-- +goose NO TRANSACTION
-- +goose Up
-- Units that are ready or with a worker; states as in store.TaskState.
CREATE TABLE IF NOT EXISTS tasks (
    key                  text    NOT NULL PRIMARY KEY,
    execution_id         text    NOT NULL,
    unit                 text    NOT NULL,
    state                integer NOT NULL,
    queue                text    NOT NULL,
    ready_at             bigint  NOT NULL,
    ready_seq            bigint  NOT NULL,
    due_at               bigint,
    task_name            text    NOT NULL,
    contract_version     text    NOT NULL,
    workflow             text    NOT NULL,
    workflow_version     text    NOT NULL,
    input                text    NOT NULL,
    attempt              bigint  NOT NULL,
    redelivery           boolean NOT NULL,
    timeout_ms           bigint  NOT NULL,
    session              text    NOT NULL,
    worker_id            text    NOT NULL,
    claim_key            text    NOT NULL,
    secret               text    NOT NULL,
    token_hash           text    NOT NULL,
    dispatched_at        bigint  NOT NULL,
    deadline_at          bigint  NOT NULL,
    suspect_at           bigint  NOT NULL,
    stop                 boolean NOT NULL,
    reported_at          bigint,
    reported_success     boolean,
    reported_payload     text,
    reported_retry_after bigint
);
