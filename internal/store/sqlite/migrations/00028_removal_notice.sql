-- +goose Up

-- Which of Redrive's own dead letters were announced as more than there may be: the oldest ones,
-- up to a place in the order of their failures. One that comes to a place before that later
-- makes the notice end before it.
CREATE TABLE removal_notice (
    announced_at INTEGER NOT NULL, -- when they were counted; 0: they are being counted, or there is no notice
    last_at      INTEGER NOT NULL, -- the place of the last one: when it changed,
    last_seq     INTEGER NOT NULL  -- and its number
) STRICT;
INSERT INTO removal_notice (announced_at, last_at, last_seq) VALUES (0, 0, 0);

-- What the mirror knows of a record has the names by which the program and its documents call it.
ALTER TABLE mirrored RENAME COLUMN thread TO lineage;
ALTER TABLE mirrored RENAME COLUMN witness TO version_token;
ALTER TABLE mirrored RENAME COLUMN mark TO version;
ALTER TABLE mirrored RENAME COLUMN lies TO present;
DROP INDEX mirrored_thread;
DROP INDEX mirrored_lies;
CREATE INDEX mirrored_lineage ON mirrored (source, lineage);
CREATE INDEX mirrored_present ON mirrored (source, job_seq) WHERE present = 1;

PRAGMA user_version = 28;
