-- +goose Up

-- What a replay at a source changes: the time before which the job shall not run, and its
-- payload.
ALTER TABLE source_acts ADD COLUMN due INTEGER NOT NULL DEFAULT -9223372036854775808;
ALTER TABLE source_acts ADD COLUMN payload BLOB;

PRAGMA user_version = 20;
