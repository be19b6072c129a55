-- +goose NO TRANSACTION
-- +goose Up
-- A head is updated with each commit, without an indexed column: with room on its
-- page the update touches no index. Dead heads are cleared early.
ALTER TABLE executions SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
