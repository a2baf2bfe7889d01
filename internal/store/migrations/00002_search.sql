-- +goose Up

-- What can be searched of jobs that failed: redacted before it comes here, so
-- that no secret can be found out by searching for it. A job's rowid is its seq,
-- so that the newest are found first without sorting.
CREATE VIRTUAL TABLE search USING fts5 (
    id, type, error, payload, meta,
    content = '', contentless_delete = 1, tokenize = 'trigram'
);

-- Jobs that failed and are not searchable yet: filled by the settling
-- transaction, emptied in the background.
CREATE TABLE search_backlog (
    job_seq INTEGER PRIMARY KEY
) STRICT;

PRAGMA user_version = 2;
