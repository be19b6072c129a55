-- +goose NO TRANSACTION
-- +goose Up
-- What a session holds, and what it holds under a claim key.
CREATE INDEX ASYNC IF NOT EXISTS tasks_session ON tasks (session, claim_key);
