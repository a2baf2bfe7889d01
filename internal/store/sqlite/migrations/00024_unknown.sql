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
UPDATE trash SET reason = 'unknown' WHERE reason = 'attempts_exhausted'
    AND job_seq IN (SELECT seq FROM jobs WHERE attempts = 0 AND instr(queue, '@') > 0);

-- Jobs whose newest replay had ended as unknown were left as if their source had still to be
-- asked for it. They are the source's now, which may tell what became of them. The payload of a
-- replay that changed it is kept with the replay, so that it can be taken back.
UPDATE jobs SET worker = act.source, unbegun = 1, changed_at = max(jobs.changed_at, act.ended_at)
    FROM (SELECT source, job_seq, run, ended_at FROM source_acts WHERE kind = 'replay' AND state = 'unknown'
        AND id IN (SELECT max(id) FROM source_acts GROUP BY job_seq)) AS act
    WHERE jobs.seq = act.job_seq AND jobs.run = act.run AND jobs.state = 'pending' AND jobs.worker = '';
UPDATE source_acts SET payload = bodies.payload
    FROM jobs JOIN bodies ON bodies.job_seq = jobs.seq JOIN earlier_runs ON earlier_runs.job_seq = jobs.seq
    WHERE source_acts.job_seq = jobs.seq AND source_acts.run = jobs.run AND source_acts.kind = 'replay' AND source_acts.state = 'unknown'
        AND jobs.state = 'pending' AND jobs.worker <> '' AND jobs.unbegun = 1 AND instr(jobs.queue, '@') > 0
        AND earlier_runs.run = jobs.run - 1 AND earlier_runs.payload IS NOT NULL;
UPDATE operation_items SET outcome = 'unknown'
    FROM jobs JOIN replays ON replays.job_seq = jobs.seq AND replays.run = jobs.run - 1
    WHERE jobs.state = 'pending' AND jobs.worker <> '' AND jobs.unbegun = 1 AND instr(jobs.queue, '@') > 0
        AND operation_items.job_seq = jobs.seq AND operation_items.run = replays.run AND operation_items.operation_id = replays.operation_id
        AND operation_items.state = 'done' AND operation_items.outcome = '';
UPDATE operations SET unknown = (SELECT count(*) FROM operation_items WHERE operation_id = operations.id
    AND outcome = 'unknown' AND outcome <> '');

-- The counts of open dead letters by reason follow.
DELETE FROM reasons;
INSERT INTO reasons (queue, type, reason, n)
    SELECT CASE WHEN queue IN (SELECT name FROM labels WHERE kind = 'queue') THEN queue ELSE 'other' END,
        CASE WHEN EXISTS (SELECT 1 FROM labels WHERE name = type AND kind = CASE instr(queue, '@') WHEN 0 THEN 'type'
            ELSE 'type@' || substr(queue, instr(queue, '@') + 1) END) THEN type ELSE 'other' END, reason, count(*)
    FROM jobs WHERE letter = 'stored' GROUP BY 1, 2, 3;

PRAGMA user_version = 24;
