-- +goose Up

-- An idempotency key names one job of one caller, for as long as that job is
-- kept. The column key of jobs is only shown; what repeats a request is found
-- here, so that jobs without a key pay nothing for it.
CREATE TABLE job_keys (
    job_seq INTEGER PRIMARY KEY,
    caller  TEXT,          -- whose key it is; NULL: not known, it is older than this table
    key     TEXT NOT NULL,
    content TEXT NOT NULL  -- hash of what was asked for; '': not known
) STRICT;

CREATE UNIQUE INDEX job_keys_key ON job_keys (key, caller);

INSERT INTO job_keys (job_seq, caller, key, content) SELECT seq, NULL, key, '' FROM jobs WHERE key <> '';

DROP INDEX jobs_key;

-- The same for operations, which are few.
ALTER TABLE operations ADD COLUMN key_caller TEXT;                       -- NULL: not known
ALTER TABLE operations ADD COLUMN key_content TEXT NOT NULL DEFAULT '';  -- '': not known

DROP INDEX operations_key;
CREATE UNIQUE INDEX operations_key ON operations (key, key_caller) WHERE key <> '';

PRAGMA user_version = 9;
