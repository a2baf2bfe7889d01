-- +goose Up

-- The names of queues and types by which counters, open dead letters and metrics
-- are told apart: the first thousand of each that came. Everything else is counted
-- as 'other'. A name keeps its label, so that it is counted out where it was
-- counted in.
CREATE TABLE labels (
    kind TEXT NOT NULL, -- queue, type
    name TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- Whoever was told apart until now stays so; what is left is for others that had
-- jobs.
INSERT INTO labels (kind, name)
    SELECT 'queue', queue FROM (
        SELECT queue, 1 AS place FROM counters
        UNION ALL SELECT queue, 2 FROM reasons WHERE n > 0
        UNION ALL SELECT queue, 3 FROM depths)
    WHERE queue <> 'other' GROUP BY queue ORDER BY min(place), queue LIMIT 1000;
INSERT INTO labels (kind, name)
    SELECT 'type', type FROM (
        SELECT type, 1 AS place FROM counters
        UNION ALL SELECT type, 2 FROM reasons WHERE n > 0)
    WHERE type <> 'other' GROUP BY type ORDER BY min(place), type LIMIT 1000;

-- A letter could be counted in as 'other' and out under its own name: count them
-- anew.
DELETE FROM reasons;
INSERT INTO reasons (queue, type, reason, n)
    SELECT CASE WHEN queue IN (SELECT name FROM labels WHERE kind = 'queue') THEN queue ELSE 'other' END,
        CASE WHEN type IN (SELECT name FROM labels WHERE kind = 'type') THEN type ELSE 'other' END, reason, count(*)
    FROM (SELECT j.queue, j.type, l.reason FROM dead_letters AS l JOIN jobs AS j ON j.seq = l.job_seq WHERE l.open = 1)
    GROUP BY 1, 2, 3;

-- Types that nothing waits for any more are no longer kept there.
DELETE FROM held WHERE n = 0;

PRAGMA user_version = 10;
