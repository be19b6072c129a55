-- +goose NO TRANSACTION
-- +goose Up
-- SQLite has no settings of how heads are stored.
SELECT 1;
