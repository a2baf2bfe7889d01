-- +goose Up

-- Failures with one cause, as far as can be told. Rollups: they move in the
-- transaction that settles a failure.
CREATE TABLE groups (
    id           INTEGER PRIMARY KEY,
    fingerprint  TEXT    NOT NULL UNIQUE,
    type         TEXT    NOT NULL,           -- of the jobs
    class        TEXT    NOT NULL,           -- the error's type
    message      TEXT    NOT NULL,           -- normalised
    frames       TEXT    NOT NULL,           -- the top ones of the trace, a line each
    state        TEXT    NOT NULL,           -- open, resolved, ignored
    state_at     INTEGER NOT NULL DEFAULT 0,
    state_by     TEXT    NOT NULL DEFAULT '',
    reopened_at  INTEGER NOT NULL DEFAULT 0, -- when it opened by itself after state_at,
    reopened_by  TEXT    NOT NULL DEFAULT '',-- and why: failure, date, count, rate
    until        INTEGER NOT NULL DEFAULT 0, -- ignored until this time,
    until_count  INTEGER NOT NULL DEFAULT 0, -- or until so many failures in all,
    until_rate   INTEGER NOT NULL DEFAULT 0, -- or until so many within an hour
    note         TEXT    NOT NULL DEFAULT '',
    first_seen   INTEGER NOT NULL,
    last_seen    INTEGER NOT NULL,
    sample_seq   INTEGER NOT NULL,           -- the attempt whose trace stands for all: jobs.seq
    sample_execution INTEGER NOT NULL,
    day          INTEGER NOT NULL DEFAULT 0, -- of failures: those in the 24 hours that end with the one of last_seen
    failures     INTEGER NOT NULL,           -- attempts that failed so
    dead         INTEGER NOT NULL,           -- jobs that lie in the dead-letter queue, or were refused there, for it
    retrying     INTEGER NOT NULL,           -- jobs that are not over and failed so last
    replayed     INTEGER NOT NULL,           -- runs of it that were replayed
    recovered    INTEGER NOT NULL,           -- of these, next runs that succeeded
    relapsed     INTEGER NOT NULL            -- and those that failed for good again
) STRICT;

CREATE INDEX groups_seen ON groups (state, last_seen, id);
CREATE INDEX groups_dead ON groups (state, dead, last_seen, id, retrying); -- the last for tallies
CREATE INDEX groups_day  ON groups (state, day);

-- The last month of each group.
CREATE TABLE group_hours (
    group_id INTEGER NOT NULL,
    hour     INTEGER NOT NULL, -- hours since 1970
    failures INTEGER NOT NULL,
    final    INTEGER NOT NULL, -- of these, the last attempt of a run
    PRIMARY KEY (group_id, hour)
) STRICT, WITHOUT ROWID;

CREATE TABLE group_queues (
    group_id INTEGER NOT NULL,
    queue    TEXT    NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (group_id, queue)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 3;
