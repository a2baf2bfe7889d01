-- +goose Up

-- Conventions: times are microseconds since 1970 in UTC, 0 or less when not
-- known; texts are '' when there is nothing to say; a column that grows comes
-- last in its row.

CREATE TABLE policies (
    id      INTEGER PRIMARY KEY,
    policy  TEXT NOT NULL, -- as job.EncodePolicy writes it
    origins TEXT NOT NULL, -- job.Origins as JSON: where each field comes from; '' when there is nothing to say
    UNIQUE (policy, origins) -- jobs with equal policies share a row
) STRICT;

-- A time that is filled in later is eight bytes wide from the beginning: rows
-- that grow split their pages, and every page of a commit has its price. What
-- a claim wrote is left behind when the job moves on; it counts while the job is
-- active, and worker and started_at again when it is completed.
CREATE TABLE jobs (
    seq           INTEGER PRIMARY KEY,            -- order of enqueueing
    id            TEXT    NOT NULL UNIQUE,        -- UUIDv7
    queue         TEXT    NOT NULL,
    type          TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    shelf         TEXT    NOT NULL,               -- the state again, '' for available, active and completed
    letter        TEXT    NOT NULL DEFAULT '',    -- where a discarded job lies: '', stored, refused, trashed
    group_id      INTEGER NOT NULL DEFAULT 0,     -- of the newest failure in this run; groups.id, 0 when none
    held          INTEGER NOT NULL DEFAULT 0,     -- 1: available, but no handler knows the type
    run           INTEGER NOT NULL DEFAULT 1,
    attempts      INTEGER NOT NULL DEFAULT 0,     -- completed cycles in this run
    execution     INTEGER NOT NULL DEFAULT 0,     -- claims so far, never reset: with id and run the fencing token
    priority      INTEGER NOT NULL,               -- higher first
    policy_id     INTEGER NOT NULL,               -- policies.id; not declared as a reference, the check would cost each insert a lookup
    ttr           INTEGER NOT NULL,               -- longest execution, microseconds
    run_at        INTEGER NOT NULL,               -- not before
    enqueued_at   INTEGER NOT NULL,
    started_at    INTEGER NOT NULL DEFAULT -9223372036854775808,     -- of the newest execution
    finished_at   INTEGER NOT NULL DEFAULT -9223372036854775808,     -- when the run ended
    changed_at    INTEGER NOT NULL,               -- when the job entered its state; an active one did at started_at, a completed one at finished_at
    worker        TEXT    NOT NULL DEFAULT '',    -- who holds it, or held it last
    lease_until   INTEGER NOT NULL DEFAULT -9223372036854775808,     -- while active
    last_seen     INTEGER NOT NULL DEFAULT -9223372036854775808,     -- the worker's last sign of life, while active
    reason        TEXT    NOT NULL DEFAULT '',    -- why the run ended without success
    error_type    TEXT    NOT NULL DEFAULT '',    -- of the newest failed attempt in this run
    error_message TEXT    NOT NULL DEFAULT '',
    key           TEXT    NOT NULL DEFAULT ''     -- idempotency key
) STRICT;

-- What a job brings along and what never changes: apart from the rows that
-- change with every step of a job, so that a large payload is written once.
CREATE TABLE bodies (
    job_seq    INTEGER PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    trace_id   TEXT    NOT NULL,
    message_id TEXT    NOT NULL, -- of the envelope
    note       TEXT    NOT NULL, -- of its enqueueing
    meta       BLOB,             -- a JSON object as it came, or NULL
    payload    BLOB    NOT NULL, -- exactly the bytes that came
    envelope   BLOB              -- exactly the bytes that came, or NULL
) STRICT;

CREATE INDEX bodies_message ON bodies (message_id) WHERE message_id <> '';

-- An idempotency key names one job, for as long as that is kept.
CREATE UNIQUE INDEX jobs_key ON jobs (key) WHERE key <> '';

-- A claim takes the first of these.
CREATE INDEX jobs_claim ON jobs (queue, priority DESC, run_at, seq) WHERE state = 'available' AND held = 0;

-- What waits for its time. As for the other indexes on two states, a query has
-- to repeat the condition beside the state that it wants.
CREATE INDEX jobs_due ON jobs (queue, shelf, run_at, seq) WHERE shelf IN ('scheduled', 'retryable');

-- Lists, newest first. Every index that names a column costs each change of it,
-- also for jobs that it does not hold, so the indexes of lists keep away from
-- what changes in each job's life: they go by the shelf, not the state, and a
-- claim and a completion leave shelf and changed_at alone. That saves a fifth of
-- their time. The three states that every job passes through are kept as cheap as
-- can be: active jobs are few; available ones are listed by the order of their
-- enqueueing, and so are completed ones, which need no index for that: most jobs
-- are completed. Queries repeat an index's condition beside the shelf that they
-- want.
CREATE INDEX jobs_active    ON jobs (started_at, seq) WHERE state = 'active';
CREATE INDEX jobs_available ON jobs (seq) WHERE state = 'available';
CREATE INDEX jobs_shelf     ON jobs (shelf, changed_at, seq) WHERE shelf <> '';
CREATE INDEX jobs_letter  ON jobs (letter, changed_at, seq) WHERE letter <> '';
CREATE INDEX jobs_held    ON jobs (changed_at, seq) WHERE held = 1;
CREATE INDEX jobs_failed_queue ON jobs (queue, shelf, changed_at, seq) WHERE shelf IN ('discarded', 'retryable');
CREATE INDEX jobs_group ON jobs (group_id, shelf, changed_at, seq) WHERE group_id <> 0;
CREATE INDEX jobs_failed_type  ON jobs (type, shelf, changed_at, seq)  WHERE shelf IN ('discarded', 'retryable');

-- One row for each execution that ended without success, written once.
CREATE TABLE attempts (
    job_seq       INTEGER NOT NULL,
    execution     INTEGER NOT NULL,
    run           INTEGER NOT NULL,
    number        INTEGER NOT NULL, -- the cycle that it completed, 0 when it did not count
    worker        TEXT    NOT NULL,
    started_at    INTEGER NOT NULL,
    finished_at   INTEGER NOT NULL,
    outcome       TEXT    NOT NULL,
    error_type    TEXT    NOT NULL,
    error_message TEXT    NOT NULL,
    action        TEXT    NOT NULL, -- what became of the job; '' when it did not count
    decided_by    TEXT    NOT NULL, -- stable code of who chose the action
    delay         TEXT    NOT NULL, -- the delay's whole calculation as JSON, '' without one
    note          TEXT    NOT NULL, -- what else a person should know
    trace         TEXT    NOT NULL,
    PRIMARY KEY (job_seq, execution)
) STRICT, WITHOUT ROWID;

-- Every execution that ended. A completed job never changes again, so its row
-- records the attempt that succeeded; all the others have rows of their own.
CREATE VIEW executions AS
    SELECT job_seq, execution, run, number, worker, started_at, finished_at, outcome, error_type, error_message,
        action, decided_by, delay, note, trace
    FROM attempts
    UNION ALL
    SELECT seq, execution, run, attempts, worker, started_at, finished_at, 'succeeded', '', '',
        'complete', 'handler:success', '', '', ''
    FROM jobs WHERE state = 'completed';

-- Runs that ended in the dead-letter queue, or should have. History: a row is
-- completed by what became of the letter, and goes only with its whole job, when
-- the retention of the dead-letter queue has passed.
CREATE TABLE dead_letters (
    job_seq      INTEGER NOT NULL,
    run          INTEGER NOT NULL,
    open         INTEGER NOT NULL,           -- 1: stored, neither replayed nor discarded
    refused      INTEGER NOT NULL,           -- 1: asked for, not accepted
    reason       TEXT    NOT NULL,
    exception    TEXT    NOT NULL,           -- the error's type
    cause        TEXT    NOT NULL,           -- timed_out or lost when the last attempt ended so
    failed_at    INTEGER NOT NULL,
    queue        TEXT    NOT NULL,           -- where the job came from
    attempts     INTEGER NOT NULL,
    replayed_at  INTEGER NOT NULL DEFAULT 0,
    replayed_by  TEXT    NOT NULL DEFAULT '',
    discarded_at INTEGER NOT NULL DEFAULT 0,
    discarded_by TEXT    NOT NULL DEFAULT '',
    forwarded_at INTEGER NOT NULL,
    forwarded_to TEXT    NOT NULL,
    problem      TEXT    NOT NULL,           -- why it was refused
    error        TEXT    NOT NULL,
    PRIMARY KEY (job_seq, run)
) STRICT, WITHOUT ROWID;

-- With what a list shows of a letter beside its job.
CREATE INDEX dead_letters_open   ON dead_letters (failed_at, job_seq, cause, forwarded_at, forwarded_to)         WHERE open = 1;
CREATE INDEX dead_letters_queue  ON dead_letters (queue, failed_at, job_seq, cause, forwarded_at, forwarded_to)  WHERE open = 1;
CREATE INDEX dead_letters_reason ON dead_letters (reason, failed_at, job_seq, cause, forwarded_at, forwarded_to) WHERE open = 1;

-- How a run had ended when somebody replayed it. The key makes a second replay
-- of the same run impossible.
CREATE TABLE replays (
    job_seq  INTEGER NOT NULL,
    run      INTEGER NOT NULL, -- the run that was replayed; run + 1 followed
    state    TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    attempts INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    by       TEXT    NOT NULL,
    group_id     INTEGER NOT NULL, -- of the failure that ended the run, 0 when none
    operation_id INTEGER NOT NULL, -- operations.id that replayed it, 0 when a person did so alone
    PRIMARY KEY (job_seq, run)
) STRICT, WITHOUT ROWID;

-- What a run had that a person changed for the next one. There is no row for a
-- replay that changed nothing.
CREATE TABLE earlier_runs (
    job_seq    INTEGER NOT NULL,
    run        INTEGER NOT NULL, -- the run that was replayed, as in replays
    queue      TEXT    NOT NULL,
    type       TEXT    NOT NULL,
    priority   INTEGER NOT NULL,
    policy_id  INTEGER NOT NULL, -- policies.id
    ttr        INTEGER NOT NULL, -- microseconds
    trace_id   TEXT,             -- this and what follows: NULL when the next run has the same body
    message_id TEXT,
    meta       BLOB,             -- NULL too when it had none
    payload    BLOB,
    envelope   BLOB,             -- NULL too when it had none
    PRIMARY KEY (job_seq, run)
) STRICT;

CREATE TABLE queues (
    name      TEXT    NOT NULL PRIMARY KEY,
    paused_at INTEGER NOT NULL, -- 0 when it runs
    paused_by TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- Rollups. They move in the transaction of what they count, once for each
-- transaction, so that no page ever counts rows.

-- The product's counters. Past a thousand queues or types the rest is 'other'.
CREATE TABLE counters (
    queue              TEXT    NOT NULL,
    type               TEXT    NOT NULL,
    succeeded          INTEGER NOT NULL,
    failed             INTEGER NOT NULL,
    requeued           INTEGER NOT NULL,
    failed_permanently INTEGER NOT NULL,
    dlq_failed         INTEGER NOT NULL,
    replayed           INTEGER NOT NULL,
    PRIMARY KEY (queue, type)
) STRICT, WITHOUT ROWID;

-- The same counters for each minute of the last day. Types are bounded as there.
CREATE TABLE minutes (
    minute             INTEGER NOT NULL, -- minutes since 1970
    queue              TEXT    NOT NULL,
    type               TEXT    NOT NULL,
    succeeded          INTEGER NOT NULL,
    failed             INTEGER NOT NULL,
    requeued           INTEGER NOT NULL,
    failed_permanently INTEGER NOT NULL,
    dlq_failed         INTEGER NOT NULL,
    replayed           INTEGER NOT NULL,
    PRIMARY KEY (minute, queue, type)
) STRICT, WITHOUT ROWID;

-- Jobs by queue and status: the eight states, which add up to all jobs, and the
-- views dead_letter, dlq_failed and held beside them.
CREATE TABLE depths (
    queue  TEXT    NOT NULL,
    status TEXT    NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (queue, status)
) STRICT, WITHOUT ROWID;

-- Open dead letters by what they can be narrowed to. Past a thousand queues or
-- types the rest is 'other'.
CREATE TABLE reasons (
    queue  TEXT    NOT NULL,
    type   TEXT    NOT NULL,
    reason TEXT    NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (queue, type, reason)
) STRICT, WITHOUT ROWID;

-- Held jobs by queue and type.
CREATE TABLE held (
    queue TEXT    NOT NULL,
    type  TEXT    NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (queue, type)
) STRICT, WITHOUT ROWID;

-- The number of the newest commit that changed a job or a counter. It survives
-- restarts, so that a page that reconnects never takes old totals for new ones.
-- Beside it the highest seq that any job ever had: what remembers a job that is
-- gone by its seq must never come upon another.
CREATE TABLE revision (
    n      INTEGER NOT NULL,
    newest INTEGER NOT NULL
) STRICT;
INSERT INTO revision (n, newest) VALUES (0, 0);

PRAGMA application_id = 1380209238; -- "RDRV"
PRAGMA user_version = 1;
