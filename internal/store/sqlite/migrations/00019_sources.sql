-- +goose Up

-- What lies dead at a source, or lay there, and the job that shows it. A row stays as
-- long as its job.
CREATE TABLE mirrored (
    job_seq  INTEGER PRIMARY KEY,
    source   TEXT    NOT NULL, -- as redrive.yaml names it
    key      TEXT    NOT NULL, -- source.Record.Key
    thread   TEXT    NOT NULL,
    place    TEXT    NOT NULL,
    witness  TEXT    NOT NULL,
    mark     INTEGER NOT NULL, -- source.Record.Mark
    lies     INTEGER NOT NULL, -- 1: as far as it is known, the record lies there
    seen_at  INTEGER NOT NULL, -- when it was read first in this run
    warnings TEXT    NOT NULL, -- a JSON array of sentences
    raw      BLOB,             -- the record as the source keeps it, where an act needs it
    UNIQUE (source, key)
) STRICT;

CREATE INDEX mirrored_thread ON mirrored (source, thread);
CREATE INDEX mirrored_lies ON mirrored (source, job_seq) WHERE lies = 1;

-- The ledger of sources: one row for each act, written before it and completed after.
CREATE TABLE source_acts (
    id           INTEGER PRIMARY KEY,
    source       TEXT    NOT NULL,
    job_seq      INTEGER NOT NULL,
    run          INTEGER NOT NULL, -- that a replay began, or that a discard ended
    kind         TEXT    NOT NULL, -- source.Kind
    mode         TEXT    NOT NULL, -- source.Mode of a replay
    state        TEXT    NOT NULL, -- source.State
    asked_at     INTEGER NOT NULL,
    ended_at     INTEGER NOT NULL DEFAULT -9223372036854775808,
    by           TEXT    NOT NULL,
    operation_id INTEGER NOT NULL, -- operations.id, 0 when a person asked
    why          TEXT    NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX source_acts_open ON source_acts (source, state, id) WHERE state IN ('asked', 'begun', 'unknown');
CREATE INDEX source_acts_job ON source_acts (job_seq, id);
CREATE INDEX source_acts_newest ON source_acts (source, id);

-- Dead letters of one source, the newest first. The queue of a source's job ends with
-- an at sign and the name of the source, and no other queue has one.
CREATE INDEX jobs_letter_source ON jobs (substr(queue, instr(queue, '@') + 1), changed_at, seq)
    WHERE letter = 'stored' AND instr(queue, '@') > 0;

PRAGMA user_version = 19;
