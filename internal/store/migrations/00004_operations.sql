-- +goose Up

-- One act on many jobs. Its items are its scope: what was previewed is what runs.
CREATE TABLE operations (
    id          INTEGER PRIMARY KEY,
    kind        TEXT    NOT NULL,           -- replay, discard, restore
    state       TEXT    NOT NULL,           -- collecting, preview, running, paused, finished, aborted
    why         TEXT    NOT NULL DEFAULT '',-- it paused or ended: canary, relapse, a person
    filter      TEXT    NOT NULL,           -- as job.Filter.String writes it; '' for jobs that were ticked
    until       INTEGER NOT NULL,           -- jobs that changed later are not in its scope
    cursor      TEXT    NOT NULL DEFAULT '',-- while it collects: where it is
    rate        REAL    NOT NULL DEFAULT 0, -- jobs a second, 0: as fast as it goes
    canary      INTEGER NOT NULL DEFAULT 0, -- pause after so many, 0: do not
    guard       INTEGER NOT NULL DEFAULT 1, -- 1: pause by itself when replays keep failing as before
    created_at  INTEGER NOT NULL,
    created_by  TEXT    NOT NULL,
    started_at  INTEGER NOT NULL DEFAULT 0,
    finished_at INTEGER NOT NULL DEFAULT 0,
    total       INTEGER NOT NULL DEFAULT 0, -- = pending + done + skipped + failed
    pending     INTEGER NOT NULL DEFAULT 0,
    done        INTEGER NOT NULL DEFAULT 0,
    skipped     INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    succeeded   INTEGER NOT NULL DEFAULT 0, -- of those done: the replayed run succeeded
    relapsed    INTEGER NOT NULL DEFAULT 0, -- or failed for good again
    key         TEXT    NOT NULL DEFAULT '' -- idempotency key
) STRICT;

CREATE UNIQUE INDEX operations_key ON operations (key) WHERE key <> '';

CREATE TABLE operation_items (
    operation_id INTEGER NOT NULL,
    n            INTEGER NOT NULL,           -- the order of work, from 1
    job_seq      INTEGER NOT NULL,
    run          INTEGER NOT NULL,           -- as the person saw it
    state        TEXT    NOT NULL,           -- pending, done, skipped, failed
    why          TEXT    NOT NULL DEFAULT '',
    at           INTEGER NOT NULL DEFAULT 0, -- when it was done or skipped
    outcome      TEXT    NOT NULL DEFAULT '',-- of the replayed run: succeeded, relapsed
    same         INTEGER NOT NULL DEFAULT 0, -- 1: it failed in the same group as before
    ended_at     INTEGER NOT NULL DEFAULT 0, -- of the replayed run
    PRIMARY KEY (operation_id, n)
) STRICT, WITHOUT ROWID;

CREATE INDEX operation_items_state ON operation_items (operation_id, state, n);
CREATE INDEX operation_items_ended ON operation_items (operation_id, ended_at) WHERE ended_at <> 0;
CREATE INDEX operation_items_job   ON operation_items (job_seq);

PRAGMA user_version = 4;
