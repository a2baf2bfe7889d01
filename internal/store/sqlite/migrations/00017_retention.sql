-- +goose Up

-- What retention removed since the beginning, and how much of it the audit log
-- knows: an entry of a sweep that was cut short is written with the next one.
CREATE TABLE removals (
    kind    TEXT    NOT NULL, -- retention.Kind
    queue   TEXT    NOT NULL,
    n       INTEGER NOT NULL, -- jobs that were removed
    audited INTEGER NOT NULL, -- of these, jobs that the audit log has counted
    last_at INTEGER NOT NULL, -- when the newest of them was removed
    PRIMARY KEY (kind, queue)
) STRICT, WITHOUT ROWID;

-- What is still known of jobs that retention removed. A row stays for as long as
-- the job had been kept.
CREATE TABLE removed_jobs (
    id          BLOB    NOT NULL PRIMARY KEY, -- the 16 bytes of the job's id
    kind        TEXT    NOT NULL,             -- retention.Kind
    enqueued_at INTEGER NOT NULL,
    removed_at  INTEGER NOT NULL,
    until       INTEGER NOT NULL              -- when this row is removed too
) STRICT, WITHOUT ROWID;

CREATE INDEX removed_jobs_until ON removed_jobs (until);

-- When a database that had jobs came to this version, 0 when it had none: defaults
-- that nobody wrote down apply a day later.
CREATE TABLE retention_notice (
    since INTEGER NOT NULL
) STRICT;
INSERT INTO retention_notice (since)
    SELECT CASE WHEN EXISTS (SELECT 1 FROM jobs) THEN unixepoch() * 1000000 ELSE 0 END;

PRAGMA user_version = 17;
