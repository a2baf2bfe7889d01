-- +goose Up

-- One act on many jobs. Its items are its scope: what was previewed is what runs.
CREATE TABLE operations (
    id          INTEGER PRIMARY KEY,
    kind        TEXT    NOT NULL,           -- replay, discard, restore
    state       TEXT    NOT NULL,           -- collecting, preview, running, paused, finished, aborted
    why         TEXT    NOT NULL DEFAULT '',-- it paused or ended
    filter      TEXT    NOT NULL,           -- as job.Filter.String writes it; '' for jobs that were named
    source      INTEGER NOT NULL,           -- operations.id whose replays that failed again are its scope, 0: the filter
    until       INTEGER NOT NULL,           -- jobs that changed later are not in its scope
    cursor      TEXT    NOT NULL,           -- while it collects: where it is
    start       INTEGER NOT NULL,           -- 1: run as soon as the scope is known
    rate        REAL    NOT NULL,           -- jobs a second, 0: as fast as it goes
    spread      INTEGER NOT NULL,           -- microseconds over which all of it goes, 0: the rate counts
    canary      INTEGER NOT NULL,           -- pause after so many, 0: do not, less: what suits the size
    canary_at   INTEGER NOT NULL DEFAULT 0, -- when it paused for that
    guard       INTEGER NOT NULL,           -- 1: pause by itself when replays keep failing as before
    created_at  INTEGER NOT NULL,
    created_by  TEXT    NOT NULL,
    started_at  INTEGER NOT NULL DEFAULT 0,
    started_by  TEXT    NOT NULL DEFAULT '',
    resumed_at  INTEGER NOT NULL DEFAULT 0, -- or started: the guard looks at what ended since
    finished_at INTEGER NOT NULL DEFAULT 0,
    total       INTEGER NOT NULL DEFAULT 0, -- = pending + done + skipped + failed
    pending     INTEGER NOT NULL DEFAULT 0,
    done        INTEGER NOT NULL DEFAULT 0,
    skipped     INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    succeeded   INTEGER NOT NULL DEFAULT 0, -- of those done: the replayed run succeeded,
    relapsed    INTEGER NOT NULL DEFAULT 0, -- or failed for good again,
    dropped     INTEGER NOT NULL DEFAULT 0, -- or a person ended it first
    key         TEXT    NOT NULL            -- idempotency key
) STRICT;

CREATE UNIQUE INDEX operations_key ON operations (key) WHERE key <> '';
CREATE INDEX operations_open ON operations (state, id) WHERE state IN ('collecting', 'preview', 'running', 'paused');

CREATE TABLE operation_items (
    operation_id INTEGER NOT NULL,
    n            INTEGER NOT NULL,           -- the order of work, from 1
    job_seq      INTEGER NOT NULL,           -- 0 when there is no such job
    run          INTEGER NOT NULL,           -- as the person saw it
    state        TEXT    NOT NULL,           -- pending, done, skipped, failed
    code         TEXT    NOT NULL DEFAULT '',-- why it was skipped, as a stable code
    why          TEXT    NOT NULL DEFAULT '',-- in words
    other        INTEGER NOT NULL DEFAULT 0, -- operations.id that was first
    at           INTEGER NOT NULL DEFAULT 0, -- when it was done or skipped
    outcome      TEXT    NOT NULL DEFAULT '',-- of the replayed run: succeeded, relapsed, dropped
    same         INTEGER NOT NULL DEFAULT 0, -- 1: it failed in the same group as before
    ended_at     INTEGER NOT NULL DEFAULT 0, -- of the replayed run
    PRIMARY KEY (operation_id, n)
) STRICT, WITHOUT ROWID;

-- Most items are done in the end, and are the first ones then: they are found by
-- their key.
CREATE INDEX operation_items_state   ON operation_items (operation_id, state, n) WHERE state <> 'done';
CREATE INDEX operation_items_outcome ON operation_items (operation_id, outcome, n) WHERE outcome <> '';
CREATE INDEX operation_items_unsettled ON operation_items (operation_id, n) WHERE state = 'done' AND outcome = '';
CREATE INDEX operation_items_ended   ON operation_items (operation_id, ended_at) WHERE ended_at <> 0;
CREATE INDEX operation_items_job     ON operation_items (job_seq);

-- Rollups of a scope: what could run when it was collected, and why the rest is
-- skipped, now.
CREATE TABLE operation_scope (
    operation_id INTEGER NOT NULL,
    queue        TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    n            INTEGER NOT NULL,
    PRIMARY KEY (operation_id, queue, type)
) STRICT, WITHOUT ROWID;

CREATE TABLE operation_skips (
    operation_id INTEGER NOT NULL,
    code         TEXT    NOT NULL,
    n            INTEGER NOT NULL,
    PRIMARY KEY (operation_id, code)
) STRICT, WITHOUT ROWID;

-- How many items were done when. The longer an operation goes on, the longer is
-- the time of a row: some hundreds of them tell of weeks.
CREATE TABLE operation_pace (
    operation_id INTEGER NOT NULL,
    second       INTEGER NOT NULL, -- since it was started
    n            INTEGER NOT NULL,
    PRIMARY KEY (operation_id, second)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 4;
