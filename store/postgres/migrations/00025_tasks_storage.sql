-- +goose NO TRANSACTION
-- +goose Up
-- A queue is mostly dead rows: they are cleared early, and without a pause.
ALTER TABLE tasks SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
