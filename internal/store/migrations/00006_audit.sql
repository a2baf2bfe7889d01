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

-- Jobs that a person discarded, and how to bring them back.
CREATE TABLE trash (
    job_seq INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    by      TEXT    NOT NULL,
    state   TEXT    NOT NULL, -- where the job was
    letter  TEXT    NOT NULL,
    held    INTEGER NOT NULL,
    reason  TEXT    NOT NULL,
    run_at  INTEGER NOT NULL,
    operation_id INTEGER NOT NULL -- that discarded it, 0 when a person did so alone
) STRICT;

PRAGMA user_version = 6;
