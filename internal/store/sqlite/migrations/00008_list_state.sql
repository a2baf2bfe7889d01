-- +goose Up

-- The state by which lists are kept: the state again, '' for available, active
-- and completed. Only the catalogue is written: no row changes. The index
-- jobs_shelf keeps its name, because SQLite cannot rename an index: to make it
-- anew would read every job.
ALTER TABLE jobs RENAME COLUMN shelf TO list_state;

PRAGMA user_version = 8;
