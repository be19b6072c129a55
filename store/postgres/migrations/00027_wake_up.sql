-- +goose NO TRANSACTION
-- +goose Up
-- One row: to which moment the schedule is set that calls the tick function, in
-- tick mode on-demand; 0: to none. version counts the times that it was set.
CREATE TABLE IF NOT EXISTS wake_up (
    id      bigint NOT NULL PRIMARY KEY,
    at      bigint NOT NULL,
    version bigint NOT NULL
);
