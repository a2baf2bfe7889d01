-- +goose Up

-- From which source a job was mirrored; '' when it is Redrive's own. Until now, only the name of
-- its queue said so, which ends with an at sign and the name of the source.
ALTER TABLE jobs ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE group_queues ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE operation_scope ADD COLUMN source TEXT NOT NULL DEFAULT '';

-- These indexes are made again below, with the new column, when the jobs have it: they would
-- have to follow each change until then.
DROP INDEX jobs_source;
DROP INDEX jobs_handed;
DROP INDEX jobs_letter_source;
DROP INDEX jobs_letter_own;
DROP VIEW executions;

-- A statement of its own: no index has this column yet, and those of the states are left alone.
UPDATE jobs SET source = substr(queue, instr(queue, '@') + 1) WHERE instr(queue, '@') > 1;
UPDATE group_queues SET source = substr(queue, instr(queue, '@') + 1) WHERE instr(queue, '@') > 1;
UPDATE operation_scope SET source = substr(queue, instr(queue, '@') + 1) WHERE instr(queue, '@') > 1;

-- What a source has back is a state of its own, and so is what it has still to be told of.
-- Pending is the Open Job Spec's word for a job that waits to be activated.
UPDATE jobs SET state = CASE worker WHEN '' THEN 'returning' ELSE 'returned' END,
        list_state = CASE worker WHEN '' THEN 'returning' ELSE 'returned' END
    WHERE list_state = 'pending' AND list_state <> '';
UPDATE operations SET filter = replace(filter, 'state:pending', 'state:returned') WHERE instr(filter, 'state:pending') > 0;
DELETE FROM depths WHERE status = 'pending';
INSERT INTO depths (queue, status, n)
    SELECT queue, state, count(*) FROM jobs WHERE state IN ('returning', 'returned') AND list_state <> '' GROUP BY queue, state;

-- Jobs of one source, by the time of their last change: all, its dead letters, and those that it
-- has back, of which it is asked where the system keeps what has succeeded.
CREATE INDEX jobs_source ON jobs (source, changed_at, seq) WHERE source <> '';
CREATE INDEX jobs_letter_source ON jobs (source, changed_at, seq) WHERE letter = 'stored' AND source <> '';
CREATE INDEX jobs_returned ON jobs (source, changed_at, seq) WHERE state = 'returned';

-- Dead letters that are held here alone, the oldest first. The source is in the index because
-- SQLite evaluates its own condition again, and would sort another index that has it.
CREATE INDEX jobs_letter_own ON jobs (changed_at, seq, source) WHERE letter = 'stored' AND source = '';

CREATE VIEW executions AS
    SELECT job_seq, execution, run, number, worker, started_at, finished_at, outcome, error_type, error_message,
        action, decided_by, delay, note, trace
    FROM attempts
    UNION ALL
    SELECT seq, execution, run, attempts, worker, started_at, finished_at, 'succeeded', '', '',
        'complete', 'handler:success', '', '', ''
    FROM jobs WHERE state = 'completed' AND source = '';

-- The types of each source are told apart beside those of Redrive's own jobs.
ALTER TABLE labels RENAME TO labels_before;
CREATE TABLE labels (
    kind   TEXT NOT NULL, -- queue, type
    source TEXT NOT NULL, -- whose queue or type it is; '' when it is Redrive's own
    name   TEXT NOT NULL,
    PRIMARY KEY (kind, source, name)
) STRICT, WITHOUT ROWID;
INSERT INTO labels (kind, source, name)
    SELECT 'type', substr(kind, 6), name FROM labels_before WHERE substr(kind, 1, 5) = 'type@'
    UNION ALL SELECT 'type', '', name FROM labels_before WHERE kind = 'type'
    UNION ALL SELECT 'queue', CASE WHEN instr(name, '@') > 1 THEN substr(name, instr(name, '@') + 1) ELSE '' END, name
        FROM labels_before WHERE kind = 'queue';
DROP TABLE labels_before;

PRAGMA user_version = 27;
