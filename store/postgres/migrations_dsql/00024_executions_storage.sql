-- +goose NO TRANSACTION
-- +goose Up
-- Nothing to set: DSQL has no storage parameters. The number keeps both schemas
-- at one version.
SELECT 1;
