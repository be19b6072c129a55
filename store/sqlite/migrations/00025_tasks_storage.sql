-- +goose NO TRANSACTION
-- +goose Up
-- SQLite has no settings of how the queue are stored.
SELECT 1;
