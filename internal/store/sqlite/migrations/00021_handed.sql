-- +goose Up

-- The jobs that a source has and of whose runs nothing is known since, the newest first:
-- where the system keeps what has succeeded, it is asked for them.
CREATE INDEX jobs_handed ON jobs (substr(queue, instr(queue, '@') + 1), changed_at, seq)
    WHERE state = 'pending' AND worker <> '' AND instr(queue, '@') > 0;

-- The row of a completed job is the record of its last attempt, except of a job of a source.
-- That one can die again, so its success has a row of its own.
DROP VIEW executions;
CREATE VIEW executions AS
    SELECT job_seq, execution, run, number, worker, started_at, finished_at, outcome, error_type, error_message,
        action, decided_by, delay, note, trace
    FROM attempts
    UNION ALL
    SELECT seq, execution, run, attempts, worker, started_at, finished_at, 'succeeded', '', '',
        'complete', 'handler:success', '', '', ''
    FROM jobs WHERE state = 'completed' AND instr(queue, '@') = 0;

PRAGMA user_version = 21;
