-- +goose Up

-- Who did what. Append-only: each row names the hash of the one before, and the
-- triggers refuse every other change.
CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT    NOT NULL,
    address TEXT    NOT NULL,
    action  TEXT    NOT NULL, -- as job.replay
    subject TEXT    NOT NULL, -- what it was done to: a job's id, a queue, a user …
    filter  TEXT    NOT NULL, -- in words, of an act on many
    count   INTEGER NOT NULL,
    before  TEXT    NOT NULL,
    after   TEXT    NOT NULL,
    hash    BLOB    NOT NULL  -- SHA-256 over the hash before and this row
) STRICT;

CREATE INDEX audit_subject ON audit (subject, seq);
CREATE INDEX audit_actor   ON audit (actor, seq);
CREATE INDEX audit_action  ON audit (action, seq);

-- +goose StatementBegin
CREATE TRIGGER audit_keeps BEFORE UPDATE ON audit BEGIN
    SELECT raise(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_stays BEFORE DELETE ON audit BEGIN
    SELECT raise(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd

-- The hash of the newest entry once more, in one row that moves with each: an
-- end that was cut off the log is missed.
CREATE TABLE audit_head (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    seq  INTEGER NOT NULL,
    hash BLOB    NOT NULL
) STRICT;
INSERT INTO audit_head (one, seq, hash) VALUES (1, 0, x'');

-- Jobs that a person discarded, and where they were, to bring them back. Their
-- rows keep everything else: when to run again, the newest error.
CREATE TABLE trash (
    job_seq      INTEGER PRIMARY KEY,
    at           INTEGER NOT NULL,
    by           TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    letter       TEXT    NOT NULL,
    reason       TEXT    NOT NULL,
    changed_at   INTEGER NOT NULL,
    finished_at  INTEGER NOT NULL,
    operation_id INTEGER NOT NULL -- that discarded it, 0 when a person did so alone
) STRICT;

CREATE INDEX trash_at ON trash (at, job_seq);

PRAGMA user_version = 6;
