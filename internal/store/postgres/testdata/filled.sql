-- Fills the tables that grow, as years of work leave them: 60,000 jobs of 15 states and
-- statuses, which came 40 seconds apart until the time of the contract (package storetest).

CREATE TEMPORARY TABLE made AS
SELECT n::bigint AS n, n % 100 AS kind, 1772600767000000 - (60000 - n)::bigint * 40000000 AS at,
    CASE n % 8 WHEN 0 THEN 'orders' WHEN 1 THEN 'email' ELSE 'queue-' || n % 8 END AS queue,
    CASE n % 5 WHEN 0 THEN 'email.send' ELSE 'type.' || n % 25 END AS type
FROM generate_series(1, 60000) AS all_jobs(n);

INSERT INTO policies (policy, origins) SELECT '{"max_attempts":' || n || '}', '' FROM generate_series(1, 3000) AS p(n);

INSERT INTO jobs (seq, id, queue, type, state, list_state, letter, group_id, held, run, attempts, execution, priority, policy_id, ttr,
    run_at, enqueued_at, started_at, finished_at, changed_at, worker, reason, error_type, error_message, source, lease_until)
SELECT n, '019cb5' || lpad(to_hex(n), 30, '0'), CASE WHEN source THEN 'shop:' ELSE '' END || queue, type, state,
    CASE WHEN state IN ('available', 'active', 'completed') THEN '' ELSE state END, letter,
    CASE WHEN state IN ('discarded', 'retryable') THEN n % 3000 + 1 ELSE 0 END, CASE WHEN kind = 98 AND n % 7 = 0 THEN 1 ELSE 0 END,
    1 + n % 3 / 2, 2, 2, n % 3, n % 3000 + 1, 60000000, at, at, at, at + 1000000, at + 2000000, 'w', CASE WHEN letter <> '' THEN 'attempts_exhausted' ELSE '' END,
    CASE WHEN letter <> '' THEN 'class.' || n % 300 ELSE '' END, 'message ' || n, CASE WHEN source THEN 'shop' ELSE '' END, at + 60000000
FROM (SELECT *, kind IN (91, 92, 93) AS source, CASE
        WHEN kind IN (90, 91, 92, 94, 95) OR kind = 99 AND n % 500 = 99 THEN 'discarded' WHEN kind = 93 THEN 'returned'
        WHEN kind = 96 THEN 'retryable' WHEN kind = 97 THEN 'scheduled' WHEN kind = 98 THEN 'available'
        WHEN kind = 99 AND n % 500 = 199 THEN 'active' WHEN kind = 99 THEN 'cancelled' ELSE 'completed' END AS state,
    CASE WHEN kind IN (90, 91, 92) THEN 'stored' WHEN kind = 94 THEN 'trashed' WHEN kind = 95 AND n % 500 = 95 THEN 'refused' ELSE '' END AS letter
    FROM made) AS states;

INSERT INTO bodies (job_seq, expires_at, trace_id, message_id, note, meta, payload)
SELECT n, 0, '', CASE WHEN kind < 10 THEN 'message-' || n ELSE '' END, '', convert_to('{}', 'UTF8'), convert_to('{"n":' || n || '}', 'UTF8') FROM made;

INSERT INTO attempts SELECT n, execution, 1, execution, 'w', at, at + 1000000, 'failed', 'class.' || n % 300, 'message ' || n,
    CASE execution WHEN 1 THEN 'retry' ELSE 'dead_letter' END, 'policy', '', '', '' FROM made, generate_series(1, 2) AS e(execution) WHERE kind >= 80;
INSERT INTO dead_letters (job_seq, run, open, refused, reason, exception, cause, failed_at, queue, attempts, forwarded_at, forwarded_to, problem, error)
SELECT n, 1 + n % 3 / 2, 1, 0, 'attempts_exhausted', 'class', '', at + 2000000, queue, 2, 0, '', '', 'message' FROM made WHERE kind BETWEEN 80 AND 95;
INSERT INTO replays SELECT n, 1, 'discarded', 'attempts_exhausted', 2, at, 'eve', n % 3000 + 1, n % 40 + 1 FROM made WHERE kind >= 80;
INSERT INTO earlier_runs (job_seq, run, queue, type, priority, policy_id, ttr) SELECT n, 1, queue, type, 0, 1, 60000000 FROM made WHERE kind >= 80;
INSERT INTO trash SELECT n, at, 'eve', 'discarded', 'stored', 'attempts_exhausted', at, at, 0 FROM made WHERE kind = 94;
INSERT INTO trash SELECT n, at, 'eve', 'discarded', 'stored', 'attempts_exhausted', at, at, 0 FROM made WHERE kind < 10;
INSERT INTO job_keys SELECT n, 'caller', 'key-' || n, '' FROM made;
INSERT INTO removed_jobs SELECT decode(md5(n::text), 'hex'), 'completed', at, at, at + 9000000000000 FROM made;
INSERT INTO search_texts SELECT n, '019cb5' || lpad(to_hex(n), 30, '0'), type, 'message ' || n || ' timeout', '{}', '{"n":' || n || '}' FROM made WHERE kind >= 80;
INSERT INTO search_backlog SELECT n, 1 FROM made WHERE kind >= 80;

INSERT INTO groups (id, fingerprint, type, class, message, frames, state, first_seen, last_seen, sample_seq, sample_execution, day,
    failures, dead, retrying, replayed, recovered, relapsed)
SELECT n, md5(n::text), 'email.send', 'class.' || n % 300, 'message', '', CASE n % 10 WHEN 0 THEN 'resolved' WHEN 1 THEN 'ignored' ELSE 'open' END,
    1770000000000000, 1772600767000000 - n::bigint * 1000000, n, 1, n % 50, 20, n % 20, 0, 0, 0, 0 FROM generate_series(1, 3000) AS g(n);
INSERT INTO group_hours SELECT g, 492389 - h, 3, 1 FROM generate_series(1, 3000) AS g, generate_series(1, 10) AS h;
INSERT INTO group_queues SELECT g, 'queue-' || q, 3, '' FROM generate_series(1, 3000) AS g, generate_series(2, 5) AS q;

INSERT INTO operations (kind, state, filter, source, until, cursor, start, rate, spread, canary, guard, created_at, created_by, key)
SELECT 'replay', CASE WHEN n % 1000 = 7 THEN 'running' ELSE 'finished' END, '', 0, 0, '', 0, 1, 0, 0, 0, 1772600767000000 - n::bigint * 1000000, 'eve',
    CASE WHEN n % 3 = 0 THEN 'key-' || n ELSE '' END FROM generate_series(1, 3000) AS o(n);
INSERT INTO operation_items (operation_id, n, job_seq, run, state, at, outcome, ended_at)
SELECT n % 40 + 1, n, n, 1, CASE n / 3000 WHEN 0 THEN 'skipped' WHEN 19 THEN 'pending' WHEN 20 THEN 'pending' ELSE 'done' END, at,
    CASE WHEN n / 3000 BETWEEN 1 AND 17 THEN 'succeeded' ELSE '' END, CASE WHEN n / 3000 BETWEEN 1 AND 17 THEN at ELSE 0 END FROM made;
INSERT INTO operation_causes SELECT o, c, 'email.send', 10, c FROM generate_series(1, 1000) AS o, generate_series(1, 10) AS c;
INSERT INTO operation_scope SELECT o, 'queue-' || q, 'email.send', 10, '' FROM generate_series(1, 3000) AS o, generate_series(2, 5) AS q;
INSERT INTO operation_skips SELECT o, 'code-' || c, 10 FROM generate_series(1, 3000) AS o, generate_series(1, 3) AS c;
INSERT INTO operation_pace SELECT o, s, 10 FROM generate_series(1, 3000) AS o, generate_series(1, 5) AS s;

INSERT INTO sessions SELECT decode(md5(n::text), 'hex'), 'eve', at, at, '' FROM made WHERE n % 20 = 0;
INSERT INTO audit SELECT n, at, CASE n % 50 WHEN 0 THEN 'eve' ELSE 'user-' || n % 50 END, '', CASE n % 30 WHEN 0 THEN 'login' ELSE 'job.replay' END,
    'subject-' || n, '', 1, '', '', convert_to('hash', 'UTF8') FROM made WHERE n % 2 = 0;
INSERT INTO minutes SELECT 29543345 - m, 'queue-' || q, 'email.send', 1, 1, 1, 1, 1, 1 FROM generate_series(1, 1440) AS m, generate_series(1, 8) AS q;
INSERT INTO mirrored SELECT n, 'shop', 'key-' || n, 'lineage-' || n, '', '', 1, CASE WHEN kind IN (91, 92) THEN 1 ELSE 0 END, at, '', NULL FROM made WHERE kind >= 80;
INSERT INTO source_acts (source, job_seq, run, kind, mode, state, asked_at, by, operation_id)
SELECT 'shop', n, 1, 'replay', '', CASE WHEN n % 1000 = 91 THEN 'asked' ELSE 'done' END, at, 'eve', 0 FROM made WHERE kind >= 80;

-- What is left of as many jobs again, which are not there.
INSERT INTO replays SELECT 100000 + n, 1, 'discarded', 'attempts_exhausted', 2, at, 'eve', n % 3000 + 1, 0 FROM made;
INSERT INTO dead_letters (job_seq, run, open, refused, reason, exception, cause, failed_at, queue, attempts, forwarded_at, forwarded_to, problem, error)
SELECT 100000 + n, 1, 1, 0, 'attempts_exhausted', 'class', '', at + 2000000, queue, 2, 0, '', '', 'message' FROM made;
INSERT INTO mirrored SELECT 100000 + n, 'shop', 'key-' || 100000 + n, 'lineage-' || 100000 + n, '', '', 1, 1, at, '', NULL FROM made;
INSERT INTO search_texts SELECT 100000 + n, '019cb5' || lpad(to_hex(100000 + n), 30, '0'), type, 'message ' || n || ' failed', '{}', '{"n":' || n || '}' FROM made WHERE n % 2 = 0;

INSERT INTO depths SELECT queue, state, count(*) FROM jobs GROUP BY 1, 2;
INSERT INTO depths SELECT queue, CASE letter WHEN 'stored' THEN 'dead_letter' WHEN 'refused' THEN 'dlq_failed' ELSE 'trashed' END, count(*)
    FROM jobs WHERE letter <> '' GROUP BY 1, 2;
INSERT INTO reasons SELECT queue, type, reason, count(*) FROM jobs WHERE letter = 'stored' GROUP BY 1, 2, 3;
UPDATE revision SET n = 60000, newest = 60000;
DROP TABLE made
