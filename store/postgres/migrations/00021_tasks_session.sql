-- +goose NO TRANSACTION
-- +goose Up
-- What a session holds, and what it holds under a claim key.
CREATE INDEX IF NOT EXISTS tasks_session ON tasks (session, claim_key) WHERE state IN (1, 2);
