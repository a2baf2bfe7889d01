-- +goose Up

-- What can be searched of jobs that failed: redacted before it comes here, so
-- that no secret can be found out by searching for it. A job's rowid is its seq,
-- so that the newest are found first without sorting.
CREATE VIRTUAL TABLE search USING fts5 (
    ident, kind, failure, content, meta_text,
    content = '', contentless_delete = 1, tokenize = 'trigram'
);

-- Each transaction that fills it adds a segment, and a search goes through all of
-- them: two of a size are joined (see Store.FillSearch).
INSERT INTO search (search, rank) VALUES ('usermerge', 2);

-- Jobs whose newest failure is not searchable yet: filled by the settling
-- transaction, emptied in the background.
CREATE TABLE search_backlog (
    job_seq   INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL -- that failed; 0 for a job that was set aside
) STRICT;

PRAGMA user_version = 2;
