-- +goose NO TRANSACTION
-- +goose Up
-- Units that are ready or with a worker; states as in store.TaskState.
CREATE TABLE IF NOT EXISTS tasks (
    key                  text    COLLATE "C" NOT NULL PRIMARY KEY,
    execution_id         text    COLLATE "C" NOT NULL,
    unit                 text    COLLATE "C" NOT NULL,
    state                integer NOT NULL,
    queue                text    COLLATE "C" NOT NULL,
    ready_at             bigint  NOT NULL,
    ready_seq            bigint  NOT NULL,
    due_at               bigint,
    task_name            text    COLLATE "C" NOT NULL,
    contract_version     text    COLLATE "C" NOT NULL,
    workflow             text    COLLATE "C" NOT NULL,
    workflow_version     text    COLLATE "C" NOT NULL,
    input                text    NOT NULL,
    attempt              bigint  NOT NULL,
    redelivery           boolean NOT NULL,
    timeout_ms           bigint  NOT NULL,
    session              text    COLLATE "C" NOT NULL,
    worker_id            text    COLLATE "C" NOT NULL,
    claim_key            text    COLLATE "C" NOT NULL,
    secret               text    COLLATE "C" NOT NULL,
    token_hash           text    COLLATE "C" NOT NULL,
    dispatched_at        bigint  NOT NULL,
    deadline_at          bigint  NOT NULL,
    suspect_at           bigint  NOT NULL,
    stop                 boolean NOT NULL,
    reported_at          bigint,
    reported_success     boolean,
    reported_payload     text,
    reported_retry_after bigint
);
