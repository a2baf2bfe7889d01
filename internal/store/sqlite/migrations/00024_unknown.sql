-- +goose Up

-- Of the items that are done: it is unknown whether the job's source began the replayed run.
ALTER TABLE operations ADD COLUMN unknown INTEGER NOT NULL DEFAULT 0;

-- Jobs of one source, by the time of their last change.
CREATE INDEX jobs_source ON jobs (substr(queue, instr(queue, '@') + 1), changed_at, seq) WHERE instr(queue, '@') > 0;

-- Until now, a job of a source had what its source had not said: the time of its death as the
-- time of its enqueueing, a time limit of a minute, and "attempts exhausted" as the reason even
-- where no attempts are counted.
UPDATE jobs SET ttr = 0 WHERE instr(queue, '@') > 0;
UPDATE jobs SET enqueued_at = 0 WHERE instr(queue, '@') > 0
    AND enqueued_at = (SELECT failed_at FROM dead_letters WHERE job_seq = seq AND dead_letters.run = 1);
UPDATE jobs SET run_at = 0 WHERE instr(queue, '@') > 0 AND enqueued_at = 0 AND jobs.run = 1;
UPDATE attempts SET started_at = 0 WHERE job_seq IN (SELECT seq FROM jobs WHERE instr(queue, '@') > 0);
UPDATE attempts SET number = 0 WHERE number = 1 AND action <> '' AND (job_seq, run) IN (SELECT job_seq, run
    FROM dead_letters WHERE attempts = 0 AND instr(queue, '@') > 0);
UPDATE replays SET reason = 'unknown' WHERE attempts = 0 AND reason = 'attempts_exhausted'
    AND job_seq IN (SELECT seq FROM jobs WHERE instr(queue, '@') > 0);
UPDATE dead_letters SET reason = 'unknown' WHERE attempts = 0 AND reason = 'attempts_exhausted' AND instr(queue, '@') > 0;
UPDATE jobs SET reason = 'unknown' WHERE attempts = 0 AND reason = 'attempts_exhausted' AND instr(queue, '@') > 0;

-- The counts of open dead letters by reason follow.
DELETE FROM reasons;
INSERT INTO reasons (queue, type, reason, n)
    SELECT CASE WHEN queue IN (SELECT name FROM labels WHERE kind = 'queue') THEN queue ELSE 'other' END,
        CASE WHEN EXISTS (SELECT 1 FROM labels WHERE name = type AND kind = CASE instr(queue, '@') WHEN 0 THEN 'type'
            ELSE 'type@' || substr(queue, instr(queue, '@') + 1) END) THEN type ELSE 'other' END, reason, count(*)
    FROM jobs WHERE letter = 'stored' GROUP BY 1, 2, 3;

PRAGMA user_version = 24;
