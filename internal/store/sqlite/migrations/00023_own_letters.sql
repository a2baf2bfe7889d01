-- +goose Up

-- Dead letters that are held here alone, the oldest first. Retention counts and removes
-- these, and a source can have a million beside them. The queue is in the index because
-- SQLite evaluates its own condition again, and would sort another index that has it.
CREATE INDEX jobs_letter_own ON jobs (changed_at, seq, queue) WHERE letter = 'stored' AND instr(queue, '@') = 0;

-- The types of a source are told apart under a kind of their own, 'type@' and its name, so
-- that they take no place from others. Those that have open dead letters keep a label, and
-- these are counted again where they belong now.
INSERT INTO labels (kind, name)
    SELECT 'type@' || source, type FROM (
        SELECT source, type, row_number() OVER (PARTITION BY source ORDER BY type) AS place FROM (
            SELECT DISTINCT substr(queue, instr(queue, '@') + 1) AS source, type FROM jobs
            WHERE letter = 'stored' AND instr(queue, '@') > 0 AND type <> 'other'))
    WHERE place <= 100;
DELETE FROM reasons;
INSERT INTO reasons (queue, type, reason, n)
    SELECT CASE WHEN queue IN (SELECT name FROM labels WHERE kind = 'queue') THEN queue ELSE 'other' END,
        CASE WHEN EXISTS (SELECT 1 FROM labels WHERE name = type AND kind = CASE instr(queue, '@') WHEN 0 THEN 'type'
            ELSE 'type@' || substr(queue, instr(queue, '@') + 1) END) THEN type ELSE 'other' END, reason, count(*)
    FROM jobs WHERE letter = 'stored' GROUP BY 1, 2, 3;

-- Which source brought the group; '' when it was a failure of our own. Each source has a
-- number of groups of its own.
ALTER TABLE groups ADD COLUMN source TEXT NOT NULL DEFAULT '';
UPDATE groups SET source = one.name
    FROM (SELECT group_id, min(name) AS name
        FROM (SELECT group_id, CASE instr(queue, '@') WHEN 0 THEN '' ELSE substr(queue, instr(queue, '@') + 1) END AS name FROM group_queues)
        GROUP BY group_id HAVING min(name) = max(name)) AS one
    WHERE one.group_id = groups.id AND groups.fingerprint <> 'other';

-- The time that retention goes by: see retention.Clock.
CREATE TABLE retention_clock (
    trusted_at INTEGER NOT NULL, -- the newest time that is believed, 0 when none was written yet
    hold       INTEGER NOT NULL  -- for how many microseconds more nothing is removed, 0 when the clock is believed
) STRICT;
INSERT INTO retention_clock (trusted_at, hold) VALUES (0, 0);

PRAGMA user_version = 23;
